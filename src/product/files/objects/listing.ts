/** Lists of objects as S3 clients know them: in the order of keys, with common prefixes. */
import { type FileDocument, rangeObjects } from '../../../engine/files/file-documents.ts'
import { keyPrefixEnd } from '../../../value/files/files.ts'
import type { FilePorts } from '../ports.ts'

export interface ListRequest {
  readonly bucket: string
  readonly prefix: string
  /** Keys with it after the prefix appear as one common prefix; empty for none. */
  readonly delimiter: string
  /** Null for the first page. */
  readonly after: ListPosition | null
  readonly limit: number
}

/** The last entry of a page. */
export interface ListPosition {
  /** A key, or a common prefix, all of whose keys are then skipped. */
  readonly name: string
  readonly isPrefix: boolean
}

export type ListEntry =
  | { readonly file: FileDocument; readonly prefix: null }
  | { readonly file: null; readonly prefix: string }

export interface ListPage {
  readonly entries: readonly ListEntry[]
  /** The position to continue after; null for the last page. */
  readonly next: ListPosition | null
}

/** Objects that are read at once where most of them may share a common prefix. */
const DELIMITED_BATCH = 32

/** Reads each batch at a snapshot of its own: a page is no transaction. Raises UNAVAILABLE. */
export async function listObjects(ports: FilePorts, request: ListRequest): Promise<ListPage> {
  const { limit, after } = request
  if (limit === 0) return { entries: [], next: null }
  const entries: ListEntry[] = []
  let lower = lowerBound(request, after)
  while (lower !== null) {
    const { files, done } = await readBatch(ports, request, lower, limit + 1 - entries.length)
    let skipped: string | null = null
    for (const file of files) {
      if (skipped !== null && file.key!.startsWith(skipped)) continue
      skipped = commonPrefix(file.key!, request)
      entries.push(skipped === null ? { file, prefix: null } : { file: null, prefix: skipped })
      if (entries.length > limit) return pageOf(entries.slice(0, limit))
    }
    if (done) break
    const name = files.at(-1)!.key!
    lower = lowerBound(request, { name: skipped ?? name, isPrefix: skipped !== null })
  }
  return { entries, next: null }
}

function readBatch(
  { documents }: FilePorts,
  { bucket, prefix, delimiter }: ListRequest,
  lower: Bound,
  wanted: number,
) {
  const limit = delimiter === '' ? wanted : Math.min(wanted, DELIMITED_BATCH)
  const range = { bucket, lower, upper: keyPrefixEnd(prefix), limit }
  return documents.read((transaction) => rangeObjects(transaction, range))
}

interface Bound {
  readonly value: string
  readonly inclusive: boolean
}

/** Returns the first key of the rest of the list; null where nothing can be left. */
function lowerBound({ prefix }: ListRequest, after: ListPosition | null): Bound | null {
  if (after === null) return { value: prefix, inclusive: true }
  const end = after.isPrefix ? keyPrefixEnd(after.name) : after.name
  if (end === null) return null
  // UTF-16 sorts some characters otherwise than the keys are sorted; only the start matters here.
  if (end.startsWith(prefix)) return { value: end, inclusive: after.isPrefix }
  const isBefore = Buffer.compare(Buffer.from(end), Buffer.from(prefix)) < 0
  return isBefore ? { value: prefix, inclusive: true } : null
}

/** Returns the key up to the first delimiter after the prefix; null without one. */
export function commonPrefix(
  key: string,
  { prefix, delimiter }: Pick<ListRequest, 'prefix' | 'delimiter'>,
): string | null {
  if (delimiter === '') return null
  const at = key.indexOf(delimiter, prefix.length)
  return at < 0 ? null : key.slice(0, at + delimiter.length)
}

function pageOf(entries: readonly ListEntry[]): ListPage {
  const { file, prefix } = entries.at(-1)!
  return { entries, next: { name: prefix ?? file.key!, isPrefix: prefix !== null } }
}
