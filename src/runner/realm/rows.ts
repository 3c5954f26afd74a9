/** Lists of documents: what follows `ctx.db.table(...)` becomes range operations. */
import type { NextPage } from '../protocol/operations.ts'
import type { Call } from './calls.ts'
import { readPage } from './operations.ts'

/**
 * Documents that one range operation requests at most.
 * @limit Calls: documents of one page of `paginate`
 */
export const PAGE_DOCUMENTS_MAX = 1_024
/** Documents of the first page of an iteration; each later page has four times as many. */
const FIRST_PAGE_DOCUMENTS = 16

interface Page {
  readonly documents: readonly unknown[]
  readonly done: boolean
  readonly cursor: string | null
}

export interface Range {
  readonly table: string
  /** Null walks the creation order. */
  readonly index: string | null
  /** Stored JSON texts; `{"$u":""}`, which is not Stored JSON, stands for an absent field. */
  readonly equal: readonly string[]
  /** `"field":"likes","lower":{...}` without braces; empty if nothing is bounded. */
  readonly bounds: string
}

interface PageRequest {
  readonly order: 'asc' | 'desc'
  readonly limit: number
  readonly cursor: string | null
  readonly until: string | null
  readonly next: NextPage
}

const { stringify } = JSON

/** The JSON text of a range operation. */
function rangeText({ table, index, equal, bounds }: Range, page: PageRequest): string {
  const from = page.cursor === null ? '' : `,"cursor":${stringify(page.cursor)}`
  const to = page.until === null ? '' : `,"until":${stringify(page.until)}`
  return (
    `["range",{"table":${stringify(table)},"index":${stringify(index)},` +
    `"equal":[${equal.join()}]${bounds === '' ? '' : `,${bounds}`},"order":"${page.order}",` +
    `"limit":${page.limit}${from}${to},"next":"${page.next}"}]`
  )
}

/** The documents that `index(...)` and `scan()` select, read by one of the methods. */
export class Rows {
  readonly #call: Call
  readonly #range: Range
  readonly #order: 'asc' | 'desc'

  constructor(call: Call, range: Range, order: 'asc' | 'desc') {
    this.#call = call
    this.#range = range
    this.#order = order
  }

  order(direction: 'asc' | 'desc'): Rows {
    if (direction !== 'asc' && direction !== 'desc') {
      throw new TypeError('order takes "asc" or "desc"')
    }
    return new Rows(this.#call, this.#range, direction)
  }

  async take(count: number): Promise<unknown[]> {
    if (!Number.isSafeInteger(count) || count < 0) {
      throw new TypeError('take needs a count: a whole number from 0')
    }
    const found: unknown[] = []
    for (let cursor: string | null = null; found.length < count; ) {
      const limit = Math.min(count - found.length, PAGE_DOCUMENTS_MAX)
      const page: Page = await this.#page(limit, cursor, count > limit ? 'plain' : 'none')
      for (const document of page.documents) found.push(document)
      if (page.done) break
      cursor = page.cursor
    }
    return found
  }
  async first(): Promise<unknown> {
    return (await this.take(1))[0] ?? null
  }
  async unique(): Promise<unknown> {
    const found = await this.take(2)
    if (found.length < 2) return found[0] ?? null
    throw new Error(
      `unique: table "${this.#range.table}" has more than one such document: use first(), or ` +
        'narrow the range',
    )
  }

  collect(): Promise<unknown[]> {
    return this.take(Number.MAX_SAFE_INTEGER)
  }
  async paginate(options: { cursor: string | null; limit: number; until?: string | null }) {
    const { cursor, limit, until = null } = options
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > PAGE_DOCUMENTS_MAX) {
      throw new TypeError(`paginate needs a limit from 1 to ${PAGE_DOCUMENTS_MAX}`)
    }
    if (cursor !== null && typeof cursor !== 'string') {
      throw new TypeError('paginate needs the cursor of the last page, or null for the first')
    }
    if (until !== null) return this.#pageUntil(until, cursor)
    const page = await this.#page(limit, cursor, 'sealed')
    return { items: page.documents, cursor: page.cursor, done: page.done }
  }

  /** The page up to the document of the cursor, regardless of the number of its documents. */
  async #pageUntil(until: unknown, from: string | null) {
    if (typeof until !== 'string') {
      throw new TypeError('paginate needs the cursor that ends the page, or no until')
    }
    const items: unknown[] = []
    for (let cursor = from; ; ) {
      const page: Page = await this.#page(PAGE_DOCUMENTS_MAX, cursor, 'sealed', until)
      for (const document of page.documents) items.push(document)
      if (page.done) return { items, cursor: until, done: false }
      cursor = page.cursor
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<unknown> {
    let limit = FIRST_PAGE_DOCUMENTS
    for (let cursor: string | null = null; ; limit = Math.min(limit * 4, PAGE_DOCUMENTS_MAX)) {
      const page: Page = await this.#page(limit, cursor, 'plain')
      yield* page.documents
      if (page.done) return
      cursor = page.cursor
    }
  }

  #page(
    limit: number,
    cursor: string | null,
    next: NextPage,
    until: string | null = null,
  ): Promise<Page> {
    const op = rangeText(this.#range, { order: this.#order, limit, cursor, until, next })
    return readPage(this.#call, op) as Promise<Page>
  }
}
