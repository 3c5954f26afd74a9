/**
 * What an invocation looked at: documents by ID, and intervals of index keys, which also stand for
 * the keys that were not there. The write log and the index tell whether a commit touches it.
 */
import type { KeyInterval } from '../../documents/keys.ts'

/** What one commit touched. */
export interface CommitWrites {
  /** Documents that were inserted, changed or deleted. */
  readonly documents: readonly string[]
  /**
   * By physical index: the keys that those documents had and have, also where a key stayed while
   * the document changed. Without the latter a reader of a range would miss the change.
   */
  readonly keys: ReadonlyMap<number, readonly string[]>
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

  /** By physical index; each list is in order, and its intervals neither overlap nor touch. */
  get intervals(): ReadonlyMap<number, readonly KeyInterval[]> {
    return this.#intervals
  }

  /** Documents and intervals. */
  get count(): number {
    return this.#documents.size + this.#intervalCount
  }

  /** Of the IDs and bounds that it holds. */
  get bytes(): number {
    return this.#bytes
  }

  addDocument(id: string): void {
    const before = this.#documents.size
    this.#documents.add(id)
    if (this.#documents.size > before) this.#bytes += id.length
  }

  /** Keys from `lower` up to but without `upper`; an empty interval adds nothing. */
  addInterval(index: number, { lower, upper }: KeyInterval): void {
    if (lower >= upper) return
    let list = this.#intervals.get(index)
    if (list === undefined) {
      list = []
      this.#intervals.set(index, list)
    }
    // Most reads continue the last one or lie behind it.
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

/** Whether one of the intervals, which are in order and apart, has the key. */
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

/** The first index where the test holds; it must hold from there on. The length if nowhere. */
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
