/** Types of validators as people read them. */
import { valueToPlain } from '../value/plain.ts'
import { fromStoredJson } from '../value/stored.ts'
import type { FieldsJson, OptionalJson, ValidatorJson } from '../value/validators.ts'

/** Returns a type in the notation of TypeScript, such as `{ body: string, likes?: int64 }`. */
export function validatorText(json: ValidatorJson): string {
  switch (json.type) {
    case 'id':
      return `id(${json.table})`
    case 'literal':
      return 'string' in json.value
        ? JSON.stringify(json.value.string)
        : String(Object.values(json.value)[0])
    case 'array':
      return `${grouped(json.items)}[]`
    case 'object':
      return fieldsText(json.fields)
    case 'record':
      return `record(${validatorText(json.values)})`
    case 'union':
      return json.members.map(validatorText).join(' | ')
    case 'open':
      return `open(${validatorText(json.inner)})`
    case 'nullable':
      return `${validatorText(json.inner)} | null`
    default:
      return json.type
  }
}

/** Returns the type of an object with these fields. */
export function fieldsText(fields: FieldsJson): string {
  const entries = Object.entries(fields).map(([name, json]) => {
    return json.type === 'optional'
      ? `${name}?: ${validatorText(json.inner)}${defaultText(json)}`
      : `${name}: ${validatorText(json)}`
  })
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}

/** Returns the type of a field of a table, such as `optional int64 = 3`. */
export function fieldText(json: FieldsJson[string]): string {
  if (json.type !== 'optional') return validatorText(json)
  return `optional ${validatorText(json.inner)}${defaultText(json)}`
}

/** Characters of a default that a table shows. `--json` has the whole one. */
const DEFAULT_SHOWN_MAX = 40

/** Returns ` = 3` for the default of a field, as plain JSON; empty without a default. */
function defaultText(json: OptionalJson): string {
  if (json.default === undefined) return ''
  const text = JSON.stringify(valueToPlain(fromStoredJson(json.default)))
  return ` = ${text.length > DEFAULT_SHOWN_MAX ? `${text.slice(0, DEFAULT_SHOWN_MAX - 1)}…` : text}`
}

/** A type that is one of several stands in parentheses before `[]`. */
function grouped(json: ValidatorJson): string {
  const text = validatorText(json)
  return json.type === 'union' || json.type === 'nullable' ? `(${text})` : text
}
