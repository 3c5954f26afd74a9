/** Reads schemas that an import wrote. */
import type { FieldsJson } from '../../src/value/validators.ts'

/** Evaluates the text of a schema, and returns the fields of a table. */
export function fieldsIn(schema: string, name: string): FieldsJson {
  const body = schema.replace(/^import .*\n/, '').replace('export default', 'return')
  const one = (type: string) => (more?: unknown) => ({ type, ...(more as object) })
  const v = {
    ...Object.fromEntries(
      ['null', 'boolean', 'timestamp', 'any', 'int64', 'float64', 'string', 'bytes'].map((type) => [
        type,
        one(type),
      ]),
    ),
    id: (table: string) => ({ type: 'id', table }),
    array: (items: unknown) => ({ type: 'array', items }),
    object: (fields: unknown) => ({ type: 'object', fields }),
    record: (values: unknown) => ({ type: 'record', values }),
    union: (...members: unknown[]) => ({ type: 'union', members }),
    nullable: (inner: unknown) => ({ type: 'nullable', inner }),
    optional: (inner: unknown) => ({ type: 'optional', inner }),
  }
  const table = (fields: unknown) => {
    const made = { fields, index: () => made, unique: () => made }
    return made
  }
  const evaluate = new Function('defineSchema', 'table', 'v', body)
  return evaluate((tables: unknown) => tables, table, v)[name].fields
}
