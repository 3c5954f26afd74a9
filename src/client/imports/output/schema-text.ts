/** The source of `schema.ts` of an import. */
import type {
  FieldsJson,
  LiteralJson,
  OptionalJson,
  ValidatorJson,
} from '../../../value/validators.ts'
import type { SourceIndex } from '../documents/source-values.ts'

const COLUMNS = 100
const INDENT = '  '
const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/

export interface SchemaTable {
  readonly name: string
  readonly fields: FieldsJson
  readonly indexes: readonly SourceIndex[]
}

/** Returns the file, formatted as the samples of the documents are. */
export function schemaText(tables: readonly SchemaTable[]): string {
  const written = tables.map(({ name, fields, indexes }) => {
    const open = `${INDENT}${name}: table({`
    const lines = Object.entries(fields).map(([field, json]) => {
      return `${INDENT}${INDENT}${entry(field, json, 2)},`
    })
    const ends = indexes.map(({ name: index, fields: indexed, unique }) => {
      const list = indexed.map((field) => quoted(field)).join(', ')
      return `${unique ? '.unique' : '.index'}(${quoted(index)}, [${list}])`
    })
    const chain =
      ends.length === 1 ? ends[0]! : ends.map((end) => `\n${INDENT}${INDENT}${end}`).join('')
    return `${[open, ...lines].join('\n')}\n${INDENT}})${chain},\n`
  })
  return [
    "import { defineSchema, table, v } from 'svc'\n",
    '\nexport default defineSchema({\n',
    written.join('\n'),
    '})\n',
  ].join('')
}

function entry(name: string, json: ValidatorJson | OptionalJson, depth: number): string {
  const key = IDENTIFIER.test(name) ? name : quoted(name)
  return `${key}: ${validator(json, depth, key.length + 2)}`
}

/** `used` is the number of columns before the validator on its line, without the indent. */
function validator(json: ValidatorJson | OptionalJson, depth: number, used: number): string {
  const flat = flatText(json)
  if (depth * INDENT.length + used + flat.length + 1 <= COLUMNS) return flat
  const indent = INDENT.repeat(depth)
  const block = (parts: readonly string[]): string =>
    `\n${parts.map((part) => `${indent}${INDENT}${part},\n`).join('')}${indent}`
  switch (json.type) {
    case 'optional':
    case 'nullable':
      return `v.${json.type}(${validator(json.inner, depth, used + 12)})`
    case 'array':
      return `v.array(${validator(json.items, depth, used + 8)})`
    case 'record':
      return `v.record(${validator(json.values, depth, used + 9)})`
    case 'object':
      return `v.object({${block(
        Object.entries(json.fields).map(([name, field]) => entry(name, field, depth + 1)),
      )}})`
    case 'union':
      return `v.union(${block(json.members.map((member) => validator(member, depth + 1, 0)))})`
    default:
      return flat
  }
}

function flatText(json: ValidatorJson | OptionalJson): string {
  switch (json.type) {
    case 'optional':
    case 'nullable':
      return `v.${json.type}(${flatText(json.inner)})`
    case 'array':
      return `v.array(${flatText(json.items)})`
    case 'record':
      return `v.record(${flatText(json.values)})`
    case 'object': {
      const fields = Object.entries(json.fields).map(([name, field]) => {
        return `${IDENTIFIER.test(name) ? name : quoted(name)}: ${flatText(field)}`
      })
      return fields.length === 0 ? 'v.object({})' : `v.object({ ${fields.join(', ')} })`
    }
    case 'union':
      return `v.union(${json.members.map(flatText).join(', ')})`
    case 'id':
      return `v.id(${quoted(json.table)})`
    case 'literal':
      return `v.literal(${literalText(json.value)})`
    default:
      return `v.${json.type}()`
  }
}

function literalText(value: LiteralJson): string {
  if ('string' in value) return quoted(value.string)
  return 'boolean' in value ? String(value.boolean) : `${value.int64}n`
}

/** A literal of a string in single quotes. JSON escapes all that TypeScript reads differently. */
function quoted(text: string): string {
  const inner = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${inner.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`
}
