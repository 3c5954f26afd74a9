/** Lists of documents: what `ctx.db.table(...)` builds up becomes range operations. */
import type { NextPage } from '../operations.ts'
import type { Codec } from './codec.ts'

/** Sends one operation, given as JSON text, and answers what the server replies. */
export type Operate = (op: string) => Promise<unknown>

interface Page {
  readonly documents: readonly unknown[]
  readonly done: boolean
  readonly cursor: string | null
}

export interface RangeParts {
  readonly table: string
  /** Null walks the creation order. */
  readonly index: string | null
  /** Stored JSON texts, and `{"$u":""}`, which is none, for a field that is absent. */
  readonly equal: readonly string[]
  /** `"field":"likes","lower":{...}` without braces; empty where nothing is bounded. */
  readonly bounds: string
}

interface PageRequest {
  readonly order: 'asc' | 'desc'
  readonly limit: number
  readonly cursor: string | null
  readonly next: NextPage
}

/** The JSON text of a range operation. */
export function makeRangeText() {
  const { stringify } = JSON
  return ({ table, index, equal, bounds }: RangeParts, page: PageRequest): string => {
    const from = page.cursor === null ? '' : `,"cursor":${stringify(page.cursor)}`
    return (
      `["range",{"table":${stringify(table)},"index":${stringify(index)},` +
      `"equal":[${equal.join()}]${bounds === '' ? '' : `,${bounds}`},"order":"${page.order}",` +
      `"limit":${page.limit}${from},"next":"${page.next}"}]`
    )
  }
}

/** What follows `index(...)` and `scan()`. Each method of choice answers a new list. */
export function makeRows(batchMax: number, textOf: ReturnType<typeof makeRangeText>) {
  return class Rows {
    readonly #operate: Operate
    readonly #parts: RangeParts
    readonly #order: 'asc' | 'desc'

    constructor(operate: Operate, parts: RangeParts, order: 'asc' | 'desc') {
      this.#operate = operate
      this.#parts = parts
      this.#order = order
    }

    order(direction: 'asc' | 'desc'): Rows {
      if (direction !== 'asc' && direction !== 'desc') {
        throw new TypeError('order takes "asc" or "desc"')
      }
      return new Rows(this.#operate, this.#parts, direction)
    }

    async take(count: number): Promise<unknown[]> {
      if (!Number.isSafeInteger(count) || count < 0) throw new TypeError('take needs a count')
      const found: unknown[] = []
      for (let cursor: string | null = null; found.length < count; ) {
        const limit = Math.min(count - found.length, batchMax)
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
      throw new Error(`unique: table "${this.#parts.table}" has more than one such document`)
    }

    collect(): Promise<unknown[]> {
      return this.take(Number.MAX_SAFE_INTEGER)
    }
    async paginate(options: { cursor: string | null; limit: number }) {
      const { cursor, limit } = options
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > batchMax) {
        throw new TypeError(`paginate needs a limit from 1 to ${batchMax}`)
      }
      if (cursor !== null && typeof cursor !== 'string') {
        throw new TypeError('paginate needs the cursor of the last page, or null for the first')
      }
      const page = await this.#page(limit, cursor, 'sealed')
      return { items: page.documents, cursor: page.cursor, done: page.done }
    }

    async *[Symbol.asyncIterator](): AsyncGenerator<unknown> {
      for (let cursor: string | null = null, limit = 16; ; limit = Math.min(limit * 4, batchMax)) {
        const page: Page = await this.#page(limit, cursor, 'plain')
        yield* page.documents
        if (page.done) return
        cursor = page.cursor
      }
    }

    #page(limit: number, cursor: string | null, next: NextPage): Promise<Page> {
      const op = textOf(this.#parts, { order: this.#order, limit, cursor, next })
      return this.#operate(op) as Promise<Page>
    }
  }
}

/** What `index("byChannel", (q) => ...)` gives to its function. */
export function makeRangeBuilder(encode: Codec['encode']) {
  const { stringify } = JSON

  return class RangeBuilder {
    readonly #where: string
    readonly #fields: readonly string[]
    readonly #equal: string[] = []
    #field: string | null = null
    readonly #sides: { lower?: string; upper?: string } = {}

    /** `fields` of the index, in order. */
    constructor(where: string, fields: readonly string[]) {
      this.#where = where
      this.#fields = fields
    }

    static parts(builder: RangeBuilder): Pick<RangeParts, 'equal' | 'bounds'> {
      const texts = [`"field":${stringify(builder.#field)}`]
      for (const [side, text] of Object.entries(builder.#sides)) texts.push(`"${side}":${text}`)
      return { equal: builder.#equal, bounds: builder.#field === null ? '' : texts.join() }
    }

    eq(field: string, value: unknown): this {
      if (this.#field !== null) throw new TypeError(`${this.#where}: eq stands before the bounds`)
      this.#expect(field, this.#fields[this.#equal.length])
      const absent = value === undefined
      this.#equal.push(absent ? '{"$u":""}' : encode(value, `${this.#where}: ${field}`))
      return this
    }

    gt(field: string, value: unknown): this {
      return this.#bound('lower', false, field, value)
    }

    gte(field: string, value: unknown): this {
      return this.#bound('lower', true, field, value)
    }

    lt(field: string, value: unknown): this {
      return this.#bound('upper', false, field, value)
    }

    lte(field: string, value: unknown): this {
      return this.#bound('upper', true, field, value)
    }

    #bound(side: 'lower' | 'upper', inclusive: boolean, field: string, value: unknown): this {
      this.#expect(field, this.#field ?? this.#fields[this.#equal.length] ?? '_createdAt')
      if (this.#sides[side] !== undefined) {
        throw new TypeError(`${this.#where}: "${field}" has two ${side} bounds`)
      }
      if (value === undefined) {
        const mend = 'leave the bound out, or find those without the field with eq'
        throw new TypeError(`${this.#where}: ${field} is undefined: ${mend}`)
      }
      this.#field = field
      const text = encode(value, `${this.#where}: ${field}`)
      this.#sides[side] = `{"value":${text},"inclusive":${inclusive}}`
      return this
    }

    #expect(field: string, next: string | undefined): void {
      if (field === next) return
      const fields = this.#fields.join(', ')
      const mend = next === undefined ? 'no field is left to compare' : `the next one is "${next}"`
      throw new TypeError(`${this.#where} has the fields ${fields}: ${mend}, not "${field}"`)
    }
  }
}
