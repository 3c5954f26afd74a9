/**
 * Ranges of an index as a snapshot with pending commits sees them: the rows of the store, in which
 * the documents that those commits wrote are replaced by their pending versions.
 */
import { type KeyInterval, storedKey } from '../../documents/keys.ts'
import type {
  KeyedDocument,
  PhysicalIndex,
  RangeResult,
  StoredDocument,
} from '../../documents/store.ts'

/** Most documents that are merged into one range; with more, the reader waits for durability. */
export const PENDING_MERGED_MAX = 64

/** The documents that pending commits wrote in one interval of an index. */
export interface PendingRange {
  /** Documents with an old or a new key in the interval; the versions of the store are hidden. */
  readonly ids: ReadonlySet<string>
  /** Those whose pending version is in the interval, in no order. */
  readonly visible: readonly KeyedDocument[]
}

/** `find` returns the pending version of a document; null for a deletion. */
export function pendingRange(
  index: PhysicalIndex,
  { lower, upper }: KeyInterval,
  ids: ReadonlySet<string>,
  find: (id: string) => StoredDocument | null | undefined,
): PendingRange {
  const visible: KeyedDocument[] = []
  for (const id of ids) {
    const document = find(id)
    const key = document == null ? null : storedKey(index, document)
    if (key !== null && key >= lower && key < upper) visible.push({ key, document: document! })
  }
  return { ids, visible }
}

/**
 * Merges the rows that the store found for a request whose limit was `limit` and the number of
 * pending documents. Returns null if the rows ended early, at their size, with hidden versions
 * alone: there is no document to continue after.
 */
export function mergePending(
  { documents: rows, exhausted }: RangeResult,
  { ids, visible }: PendingRange,
  { order, limit }: { readonly order: 'asc' | 'desc'; readonly limit: number },
): RangeResult | null {
  // The store was not read beyond its last key, so pending documents beyond it come later.
  const horizon = exhausted ? null : rows.at(-1)!.key
  const isReached = ({ key }: KeyedDocument): boolean =>
    horizon === null || (order === 'asc' ? key <= horizon : key >= horizon)
  const stored = rows.filter(({ document }) => !ids.has(document.id))
  const reached = visible.filter(isReached)
  const merged = reached.length === 0 ? stored : [...stored, ...reached].sort(inOrder(order))
  if (merged.length > limit) return { documents: merged.slice(0, limit), exhausted: false }
  return merged.length === 0 && !exhausted ? null : { documents: merged, exhausted }
}

function inOrder(order: 'asc' | 'desc') {
  const sign = order === 'asc' ? 1 : -1
  return (a: KeyedDocument, b: KeyedDocument): number => (a.key < b.key ? -sign : sign)
}
