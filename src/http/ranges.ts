/** Conditions and ranges of downloads (RFC 9110, sections 13 and 14). */
export interface ByteRange {
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

/** One range: `bytes=a-b`, `bytes=a-` or `bytes=-n`. The unit is case-insensitive. */
const RANGE = /^bytes=[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*$/i
const ENTITY_TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g

/**
 * Parses the header Range of a file of `size` bytes. Returns null for the whole file, which is also
 * the response to several ranges, a malformed range and another unit, and `unsatisfiable` where the
 * range has no byte of the file.
 */
export function requestedRange(
  header: string | null,
  size: number,
): ByteRange | 'unsatisfiable' | null {
  const [, first, last, suffix] = RANGE.exec(header ?? '') ?? []
  if (first === undefined && suffix === undefined) return null
  if (suffix !== undefined) {
    const length = Number(suffix)
    if (length === 0 || size === 0) return 'unsatisfiable'
    return { start: Math.max(0, size - length), end: size }
  }
  const start = Number(first)
  const end = last === '' ? size : Math.min(Number(last) + 1, size)
  // A last position before the first one makes the range malformed, so the size does not matter.
  if (last !== '' && Number(last) < start) return null
  if (start >= size) return 'unsatisfiable'
  return { start, end }
}

/** Returns whether `If-None-Match` names the entity tag. The comparison is weak. */
export function isNotModified(header: string | null, tag: string): boolean {
  if (header === null) return false
  if (header.trim() === '*') return true
  return header.match(ENTITY_TAG)?.some((each) => each.replace(/^W\//, '') === tag) === true
}

/** Returns whether a range may be sent: `If-Range` is absent or is the entity tag exactly. */
export function allowsRange(header: string | null, tag: string): boolean {
  return header === null || header.trim() === tag
}
