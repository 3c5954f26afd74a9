/** Reads a range in pages: which page comes next, and when the range is complete. */
import { keySuccessor } from './keys.ts'
import type { KeyedDocument, RangeRequest, RangeResult } from './store.ts'

/** The parameters of the statement that reads one page. */
export interface PageRequest {
  readonly index: number
  /** Inclusive, a binary string. */
  readonly lower: string
  /** Exclusive, a binary string. */
  readonly upper: string
  readonly order: 'asc' | 'desc'
  /** Rows of the page. */
  readonly limit: number
  readonly snapshot: number
}

/** The progress of one range. It is the request of the next page itself, which saves an object. */
export class RangeWalk implements PageRequest {
  readonly index: number
  lower: string
  upper: string
  readonly order: 'asc' | 'desc'
  limit = 0
  readonly snapshot: number
  readonly documents: KeyedDocument[] = []
  /** UTF-16 units of the documents so far. */
  textUnits = 0
  readonly #documentsMax: number
  readonly #textUnitsMax: number

  constructor({ index, lower, upper, order, limit, snapshot, textUnitsMax }: RangeRequest) {
    this.index = index
    this.lower = lower
    this.upper = upper
    this.order = order
    this.snapshot = snapshot
    this.#documentsMax = limit
    this.#textUnitsMax = textUnitsMax
  }

  /** Sets the size of the next page. */
  limitPage(rowsMax: number): void {
    this.limit = Math.min(this.#documentsMax - this.documents.length, rowsMax)
  }

  /** Adds the page that was read. Returns the result once the range is complete. */
  add(page: readonly KeyedDocument[]): RangeResult | null {
    const { documents } = this
    for (const keyed of page) {
      documents.push(keyed)
      this.textUnits += keyed.document.text.length
      if (this.textUnits >= this.#textUnitsMax) return { documents, exhausted: false }
    }
    if (page.length < this.limit) return { documents, exhausted: true }
    if (documents.length === this.#documentsMax) return { documents, exhausted: false }
    const { key } = documents.at(-1)!
    if (this.order === 'asc') this.lower = keySuccessor(key)
    else this.upper = key
    return null
  }
}
