/** The builder that `index("byChannel", (q) => ...)` passes to its function. */
import { encode } from '../encoding.ts'
import type { Range } from '../rows.ts'

const { stringify } = JSON

/** Returns the part of a range that a builder was given. */
let boundsOf: (builder: RangeBuilder) => Pick<Range, 'equal' | 'bounds'>

export class RangeBuilder {
  readonly #where: string
  readonly #fields: readonly string[]
  readonly #equal: string[] = []
  #field: string | null = null
  readonly #sides: { lower?: string; upper?: string } = {}

  static {
    boundsOf = (builder) => {
      const texts = [`"field":${stringify(builder.#field)}`]
      for (const [side, text] of Object.entries(builder.#sides)) texts.push(`"${side}":${text}`)
      return { equal: builder.#equal, bounds: builder.#field === null ? '' : texts.join() }
    }
  }

  /** `where` names the index in messages; `fields` are those of the index, in order. */
  constructor(where: string, fields: readonly string[]) {
    this.#where = where
    this.#fields = fields
  }

  eq(field: string, value: unknown): this {
    if (this.#field !== null) {
      throw new TypeError(`${this.#where}: eq stands before the bounds: put it first`)
    }
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
      throw new TypeError(`${this.#where}: "${field}" has two ${side} bounds: remove one`)
    }
    if (value === undefined) {
      const fix = 'leave the bound out, or find those without the field with eq'
      throw new TypeError(`${this.#where}: ${field} is undefined: ${fix}`)
    }
    this.#field = field
    const text = encode(value, `${this.#where}: ${field}`)
    this.#sides[side] = `{"value":${text},"inclusive":${inclusive}}`
    return this
  }

  #expect(field: string, next: string | undefined): void {
    if (field === next) return
    const fields = this.#fields.join(', ')
    const fix = next === undefined ? 'no field is left to compare' : `the next one is "${next}"`
    throw new TypeError(`${this.#where} has the fields ${fields}: ${fix}, not "${field}"`)
  }
}

export { boundsOf }
