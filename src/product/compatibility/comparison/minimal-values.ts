/** Small values that a validator accepts: the rest of a document around what it is to show. */
import type { FieldsJson, ValidatorJson } from '../../../value/validators.ts'
import { Timestamp, TypedId, type Value } from '../../../value/values.ts'
import { closestToZero } from './intervals.ts'
import type { StepBudget } from './steps.ts'
import type { TextCoverage } from './text-coverage.ts'

/** A name of a table that no schema is likely to have. */
const UNLIKELY_TABLE = 'zz'

export class MinimalValues {
  readonly #budget: StepBudget
  readonly #texts: TextCoverage

  constructor(budget: StepBudget, texts: TextCoverage) {
    this.#budget = budget
    this.#texts = texts
  }

  /** Returns null if no value was found. */
  object(fields: FieldsJson): Map<string, Value> | null {
    const object = new Map<string, Value>()
    for (const [name, field] of Object.entries(fields)) {
      this.#budget.spend(1)
      if (field.type === 'optional') continue
      const value = this.of(field)
      if (value === undefined) return null
      object.set(name, value)
    }
    return object
  }

  /** Returns undefined if no value was found. */
  of(json: ValidatorJson): Value | undefined {
    this.#budget.spend(1)
    switch (json.type) {
      case 'null':
      case 'nullable':
      case 'any':
        return null
      case 'boolean':
        return false
      case 'timestamp':
        return new Timestamp(0n)
      case 'int64': {
        const big = (text: string | undefined) => (text === undefined ? null : BigInt(text))
        return closestToZero({ minimum: big(json.minimum), maximum: big(json.maximum) }, 0n)
      }
      case 'float64':
        return closestToZero({ minimum: json.minimum ?? null, maximum: json.maximum ?? null }, 0)
      case 'string':
        return this.#texts.shortest(json) ?? undefined
      case 'bytes':
        return new Uint8Array()
      case 'id':
        return exampleId(json.table)
      case 'literal': {
        const { value } = json
        if ('string' in value) return value.string
        return 'boolean' in value ? value.boolean : BigInt(value.int64)
      }
      case 'array':
        return []
      case 'record':
        return new Map()
      case 'object':
        return this.object(json.fields) ?? undefined
      case 'open':
        return this.of(json.inner)
      case 'union':
        for (const member of json.members) {
          const value = this.of(member)
          if (value !== undefined) return value
        }
        return undefined
    }
  }
}

/** Returns an ID of the table that no document has. */
export function exampleId(table: string): TypedId {
  return new TypedId(`${table === 'files' ? 'fil' : table}_${'0'.repeat(26)}`)
}

/** Returns an ID of a table that is not in the set. */
export function otherId(tables: ReadonlySet<string>): TypedId {
  let table = UNLIKELY_TABLE
  while (tables.has(table)) table += 'z'
  return exampleId(table)
}
