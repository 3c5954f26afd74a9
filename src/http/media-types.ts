/** Content negotiation by the Accept header (RFC 9110, section 12.5.1). */

interface Range {
  readonly type: string
  readonly quality: number
}

/**
 * Returns the type of `offered` with the highest quality in `accept`, the first one of equal ones;
 * null if `accept` permits none. The most specific range decides for a type. Parameters other
 * than `q` are ignored.
 */
export function preferredType<T extends string>(
  accept: string | null,
  offered: readonly T[],
): T | null {
  if (accept === null) return offered[0] ?? null
  const ranges = accept.split(',').map(readRange)
  let best: T | null = null
  let bestQuality = 0
  for (const type of offered) {
    const quality = qualityOf(type, ranges)
    if (quality <= bestQuality) continue
    best = type
    bestQuality = quality
  }
  return best
}

function readRange(part: string): Range {
  const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
  const weight = parameters.find((text) => text.startsWith('q='))
  const quality = weight === undefined ? 1 : Number(weight.slice(2))
  return {
    type,
    quality: quality >= 0 && quality <= 1 ? quality : 0,
  }
}

function qualityOf(type: string, ranges: readonly Range[]): number {
  const [group] = type.split('/')
  for (const wanted of [type, `${group}/*`, '*/*']) {
    const found = ranges.filter((range) => range.type === wanted)
    if (found.length > 0) return Math.max(...found.map(({ quality }) => quality))
  }
  return 0
}
