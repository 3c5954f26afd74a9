/** The write buffer of one Mutation, and its merge with ranges that the store returns. */
import { indexKey, type KeyInterval } from '../../documents/keys.ts'
import type { KeyedDocument, PhysicalIndex, RangeResult } from '../../documents/store.ts'
import type { ValueObject } from '../../value/values.ts'
import type { BufferedWrite } from '../commits/document-writes.ts'
import { scannedPart } from './ranges.ts'

/** The buffered writes in one interval of an index. */
export interface OverlaidRange {
  /** Written documents whose new key lies in the interval. */
  readonly visible: readonly KeyedDocument[]
  /** The part of the interval to read from the store; null if that is all of it. */
  readonly unread: KeyInterval | null
  /** Stored versions in that part that are hidden by writes, and their UTF-16 units. */
  readonly hidden: number
  readonly hiddenUnits: number
}

const NO_WRITES: OverlaidRange = { visible: [], unread: null, hidden: 0, hiddenUnits: 0 }

interface Range {
  readonly index: number
  readonly interval: KeyInterval
  readonly order: 'asc' | 'desc'
  readonly limit: number
}

export interface MergedRange {
  readonly documents: readonly KeyedDocument[]
  readonly done: boolean
  /** The last key that was scanned; null if the whole interval was. */
  readonly scannedTo: string | null
}

export class Overlay {
  readonly #writes = new Map<string, BufferedWrite>()
  /** The encoded keys of old and new fields, by physical index. */
  #keys: Map<number, Map<ValueObject, string>> | null = null
  /**
   * The last interval, by physical index, that was found to hold only hidden documents. Without it,
   * a loop that takes the first document of a list and changes it would rescan all before it.
   */
  #hidden: Map<number, KeyInterval> | null = null
  /** The undo log: the writes that later ones replaced, while a savepoint is open. */
  readonly #replaced: { readonly id: string; readonly before: BufferedWrite | undefined }[] = []
  #savepoints = 0

  get size(): number {
    return this.#writes.size
  }

  get(id: string): BufferedWrite | undefined {
    return this.#writes.get(id)
  }

  set(write: BufferedWrite): void {
    if (this.#savepoints > 0) {
      this.#replaced.push({ id: write.id, before: this.#writes.get(write.id) })
    }
    this.#writes.set(write.id, write)
  }

  /**
   * Opens a savepoint and returns the function that ends it, which commits the writes since or
   * undoes them. Savepoints nest.
   */
  savepoint(): (commits: boolean) => void {
    const mark = this.#replaced.length
    this.#savepoints += 1
    return (commits) => {
      this.#savepoints -= 1
      if (!commits) this.#undo(mark)
      if (this.#savepoints === 0) this.#replaced.length = 0
    }
  }

  #undo(mark: number): void {
    for (const { id, before } of this.#replaced.splice(mark).reverse()) {
      if (before === undefined) this.#writes.delete(id)
      else this.#writes.set(id, before)
    }
    this.#hidden = null
  }

  writes(): readonly BufferedWrite[] {
    return [...this.#writes.values()]
  }

  /** Returns the writes that add documents to the interval or hide stored ones in it. */
  within(index: PhysicalIndex, interval: KeyInterval, order: 'asc' | 'desc'): OverlaidRange {
    if (this.#writes.size === 0) return NO_WRITES
    const unread = withoutHiddenStart(interval, order, this.#hidden?.get(index.id))
    const visible: KeyedDocument[] = []
    let hidden = 0
    let hiddenUnits = 0
    for (const write of this.#writes.values()) {
      const { table, before, after } = write
      if (table !== index.table) continue
      const stored = before === null ? null : this.#keyOf(index, write, before)
      if (stored !== null && isWithin(stored, unread)) {
        hidden += 1
        hiddenUnits += write.beforeUnits
      }
      const key = after === null ? null : this.#keyOf(index, write, after)
      if (key !== null && isWithin(key, interval)) visible.push({ key, document: write.document })
    }
    return { visible, unread, hidden, hiddenUnits }
  }

  /** Caches each key: every one of 8,192 inserts into a unique index compares all earlier keys. */
  #keyOf(index: PhysicalIndex, write: BufferedWrite, fields: ValueObject): string {
    this.#keys ??= new Map()
    let keys = this.#keys.get(index.id)
    if (keys === undefined) {
      keys = new Map()
      this.#keys.set(index.id, keys)
    }
    let key = keys.get(fields)
    if (key === undefined) {
      const { id, createdAtMicros } = write
      key = indexKey(index, { id, createdAtMicros, fields })
      keys.set(fields, key)
    }
    return key
  }

  /** Replaces the stored versions in a range by the buffered writes. */
  merge(found: RangeResult, overlaid: OverlaidRange, range: Range): MergedRange {
    if (this.#writes.size === 0) {
      const last = found.documents.at(-1)
      return {
        documents: found.documents,
        done: found.exhausted,
        scannedTo: found.exhausted || last === undefined ? null : last.key,
      }
    }
    this.#recordHidden(found.documents, range)
    const stored = found.documents.filter(({ document }) => !this.#writes.has(document.id))
    // The store was not read beyond its last key, so written documents beyond it come later.
    const horizon = found.exhausted ? null : found.documents.at(-1)!.key
    const isReached = (key: string): boolean =>
      horizon === null || (range.order === 'asc' ? key <= horizon : key >= horizon)
    const written = overlaid.visible.filter(({ key }) => isReached(key))
    const all = [...stored, ...written].sort((a, b) => {
      const ascending = a.key < b.key ? -1 : 1
      return range.order === 'asc' ? ascending : -ascending
    })
    const documents = all.slice(0, range.limit)
    const isTruncated = all.length > range.limit
    return {
      documents,
      done: found.exhausted && !isTruncated,
      scannedTo: isTruncated ? documents.at(-1)!.key : horizon,
    }
  }

  /** Records the interval of hidden documents at the start of a range. */
  #recordHidden(found: readonly KeyedDocument[], { index, interval, order }: Range): void {
    const visible = found.findIndex(({ document }) => !this.#writes.has(document.id))
    const last = found.at(visible === -1 ? -1 : visible - 1)
    if (last === undefined || visible === 0) return
    this.#hidden ??= new Map()
    this.#hidden.set(index, scannedPart(interval, order, last.key))
  }
}

function isWithin(key: string, { lower, upper }: KeyInterval): boolean {
  return key >= lower && key < upper
}

/** Returns the interval, perhaps empty, without the hidden documents at its start. */
function withoutHiddenStart(
  interval: KeyInterval,
  order: 'asc' | 'desc',
  hidden: KeyInterval | undefined,
): KeyInterval {
  if (hidden === undefined) return interval
  const { lower, upper } = interval
  if (order === 'asc') return isWithin(lower, hidden) ? { lower: hidden.upper, upper } : interval
  const startsHidden = upper > hidden.lower && upper <= hidden.upper
  return startsHidden ? { lower, upper: hidden.lower } : interval
}
