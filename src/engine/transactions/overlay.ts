/** What one Mutation wrote and nobody else can see yet, laid over what the store answers. */
import { indexKey, type KeyInterval } from '../../documents/keys.ts'
import type {
  KeyedDocument,
  PhysicalIndex,
  RangeResult,
  StoredDocument,
} from '../../documents/store.ts'
import type { ValueObject } from '../../value/values.ts'
import { examined } from './ranges.ts'

export interface PendingWrite {
  readonly id: string
  readonly table: string
  readonly createdAtMicros: bigint
  /** Fields at the snapshot; null for a new document. */
  readonly before: ValueObject | null
  /** UTF-16 units of its text at the snapshot; 0 for a new document. */
  readonly beforeUnits: number
  /** Fields from now on; null for a deleted one. */
  readonly after: ValueObject | null
  /**
   * As this invocation reads it. The commit's sequence is not known yet, so `_revision` stays that
   * of the version at the snapshot, and is 0 for a new document.
   */
  readonly document: StoredDocument
}

export interface Shadows {
  /** Documents as this invocation sees them in the interval of the index. */
  readonly visible: readonly KeyedDocument[]
  /** What of the interval has to be walked through; null where that is all of it. */
  readonly rest: KeyInterval | null
  /** Stored documents in the rest that are skipped, and the UTF-16 units of their texts. */
  readonly hidden: number
  readonly hiddenUnits: number
}

const NO_SHADOWS: Shadows = { visible: [], rest: null, hidden: 0, hiddenUnits: 0 }

interface Range {
  readonly index: number
  readonly interval: KeyInterval
  readonly order: 'asc' | 'desc'
  readonly limit: number
}

export interface MergedRange {
  readonly documents: readonly KeyedDocument[]
  readonly done: boolean
  /** The last key that was looked at; null where the whole interval was. */
  readonly examinedTo: string | null
}

export class Overlay {
  readonly #writes = new Map<string, PendingWrite>()
  /** By physical index: the keys of the fields that documents have and had. */
  #keys: Map<number, Map<ValueObject, string>> | null = null
  /**
   * By physical index: the last interval that was found to hold hidden documents alone. Whoever
   * takes the first of a list, changes it and takes the next would walk through all before it.
   */
  #hidden: Map<number, KeyInterval> | null = null
  /** What each write replaced, while there is a savepoint to go back to. */
  readonly #replaced: { readonly id: string; readonly before: PendingWrite | undefined }[] = []
  #savepoints = 0

  get size(): number {
    return this.#writes.size
  }

  get(id: string): PendingWrite | undefined {
    return this.#writes.get(id)
  }

  set(write: PendingWrite): void {
    if (this.#savepoints > 0) {
      this.#replaced.push({ id: write.id, before: this.#writes.get(write.id) })
    }
    this.#writes.set(write.id, write)
  }

  /** Answers what ends the savepoint, undoing every later write or keeping it. They nest. */
  savepoint(): (keeps: boolean) => void {
    const mark = this.#replaced.length
    this.#savepoints += 1
    return (keeps) => {
      this.#savepoints -= 1
      if (!keeps) this.#undo(mark)
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

  writes(): readonly PendingWrite[] {
    return [...this.#writes.values()]
  }

  /** Of the documents that were written, those whose key lies in the interval. */
  within(index: PhysicalIndex, interval: KeyInterval, order: 'asc' | 'desc'): Shadows {
    if (this.#writes.size === 0) return NO_SHADOWS
    const rest = behindHidden(interval, order, this.#hidden?.get(index.id))
    const visible: KeyedDocument[] = []
    let hidden = 0
    let hiddenUnits = 0
    for (const write of this.#writes.values()) {
      const { table, before, after } = write
      if (table !== index.table) continue
      const stored = before === null ? null : this.#keyOf(index, write, before)
      if (stored !== null && isWithin(stored, rest)) {
        hidden += 1
        hiddenUnits += write.beforeUnits
      }
      const key = after === null ? null : this.#keyOf(index, write, after)
      if (key !== null && isWithin(key, interval)) visible.push({ key, document: write.document })
    }
    return { visible, rest, hidden, hiddenUnits }
  }

  /** Made once: each of 8,192 inserts into a unique index looks at the keys of all before it. */
  #keyOf(index: PhysicalIndex, write: PendingWrite, fields: ValueObject): string {
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

  merge(found: RangeResult, shadows: Shadows, range: Range): MergedRange {
    if (this.#writes.size === 0) {
      const last = found.documents.at(-1)
      return {
        documents: found.documents,
        done: found.exhausted,
        examinedTo: found.exhausted || last === undefined ? null : last.key,
      }
    }
    this.#noteHidden(found.documents, range)
    const stored = found.documents.filter(({ document }) => !this.#writes.has(document.id))
    // Beyond the last stored key nothing was looked at, so own documents there must wait.
    const horizon = found.exhausted ? null : found.documents.at(-1)!.key
    const reached = (key: string): boolean =>
      horizon === null || (range.order === 'asc' ? key <= horizon : key >= horizon)
    const own = shadows.visible.filter(({ key }) => reached(key))
    const all = [...stored, ...own].sort((a, b) => {
      const ascending = a.key < b.key ? -1 : 1
      return range.order === 'asc' ? ascending : -ascending
    })
    const documents = all.slice(0, range.limit)
    const cut = all.length > range.limit
    return {
      documents,
      done: found.exhausted && !cut,
      examinedTo: cut ? documents.at(-1)!.key : horizon,
    }
  }

  #noteHidden(found: readonly KeyedDocument[], { index, interval, order }: Range): void {
    const visible = found.findIndex(({ document }) => !this.#writes.has(document.id))
    const last = found.at(visible === -1 ? -1 : visible - 1)
    if (last === undefined || visible === 0) return
    this.#hidden ??= new Map()
    this.#hidden.set(index, examined(interval, order, last.key))
  }
}

function isWithin(key: string, { lower, upper }: KeyInterval): boolean {
  return key >= lower && key < upper
}

/** What of the interval is left, perhaps nothing, where the hidden ones are at its beginning. */
function behindHidden(
  interval: KeyInterval,
  order: 'asc' | 'desc',
  hidden: KeyInterval | undefined,
): KeyInterval {
  if (hidden === undefined) return interval
  const { lower, upper } = interval
  if (order === 'asc') return isWithin(lower, hidden) ? { lower: hidden.upper, upper } : interval
  const isBehind = upper > hidden.lower && upper <= hidden.upper
  return isBehind ? { lower, upper: hidden.lower } : interval
}
