/**
 * The read set of an attempt: documents by ID, and intervals of index keys. An interval also covers
 * keys that do not exist, so that an insert into it is a conflict (a phantom).
 */
import type { KeyInterval } from '../../documents/keys.ts'
import type { ValueObject } from '../../value/values.ts'

/** The write set of one commit. */
export interface CommitWrites {
  /** IDs of the documents that were inserted, changed or deleted. */
  readonly documents: readonly string[]
  /**
   * The old and new keys of those documents by physical index, also where the key is unchanged:
   * otherwise the reader of a range would miss a change of the document.
   */
  readonly keys: ReadonlyMap<number, readonly string[]>
  /** Changes of metadata of files, uploads and parts; absent where there are none. */
  readonly files?: readonly FileChange[]
  /** Changes of scheduled work; absent where there are none. */
  readonly scheduled?: readonly ScheduledChange[]
}

/** The fields of a piece of scheduled work before and after a commit; null for none. */
export interface ScheduledChange {
  readonly scheduledId: string
  readonly before: ValueObject | null
  readonly after: ValueObject | null
}

/** The fields of a file, a multipart upload or a part before and after a commit; null for none. */
export interface FileChange {
  /** The system table of the document. */
  readonly table: string
  readonly id: string
  readonly createdAtMicros: bigint
  readonly before: ValueObject | null
  readonly after: ValueObject | null
}

interface MutableInterval {
  lower: string
  upper: string
}

export class ReadSet {
  readonly #documents = new Set<string>()
  readonly #intervals = new Map<number, MutableInterval[]>()
  #intervalCount = 0
  #bytes = 0

  get documents(): ReadonlySet<string> {
    return this.#documents
  }

  /** Sorted lists by physical index, whose intervals neither overlap nor touch. */
  get intervals(): ReadonlyMap<number, readonly KeyInterval[]> {
    return this.#intervals
  }

  /** Number of documents and intervals. */
  get count(): number {
    return this.#documents.size + this.#intervalCount
  }

  /** Total length of the IDs and interval bounds, whose characters are one byte each. */
  get bytes(): number {
    return this.#bytes
  }

  addDocument(id: string): void {
    const before = this.#documents.size
    this.#documents.add(id)
    if (this.#documents.size > before) this.#bytes += id.length
  }

  /** Adds the keys from `lower` (inclusive) to `upper` (exclusive). Ignores an empty interval. */
  addInterval(index: number, { lower, upper }: KeyInterval): void {
    if (lower >= upper) return
    let list = this.#intervals.get(index)
    if (list === undefined) {
      list = []
      this.#intervals.set(index, list)
    }
    // Most intervals extend the last one or come after it.
    const last = list.at(-1)
    const first =
      last === undefined || lower > last.upper
        ? list.length
        : lower >= last.lower
          ? list.length - 1
          : firstIndex(list, (interval) => interval.upper >= lower)
    let end = first
    const merged = { lower, upper }
    while (end < list.length && list[end]!.lower <= upper) {
      const old = list[end++]!
      if (old.lower < merged.lower) merged.lower = old.lower
      if (old.upper > merged.upper) merged.upper = old.upper
      this.#bytes -= old.lower.length + old.upper.length
    }
    list.splice(first, end - first, merged)
    this.#intervalCount += 1 - (end - first)
    this.#bytes += merged.lower.length + merged.upper.length
  }

  coversKey(index: number, key: string): boolean {
    const list = this.#intervals.get(index)
    return list !== undefined && covers(list, key)
  }
}

/** Returns whether one of the sorted, disjoint intervals contains the key. */
export function covers(list: readonly KeyInterval[], key: string): boolean {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (list[middle]!.upper > key) high = middle
    else low = middle + 1
  }
  return low < list.length && list[low]!.lower <= key
}

/**
 * Returns the first position at which the test holds, by binary search, or the length of the list.
 * The test must hold at all later positions too.
 */
export function firstIndex<T>(list: readonly T[], test: (item: T) => boolean, from = 0): number {
  let low = from
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (test(list[middle]!)) high = middle
    else low = middle + 1
  }
  return low
}
