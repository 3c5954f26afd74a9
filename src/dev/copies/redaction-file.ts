/** The redaction file of `svc dev --from`: which fields of a copy get other values. */
import { Fault } from '../../errors/fault.ts'
import { isJsonObject, type Json, parseWrittenJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'

export const REDACTIONS = ['hash', 'fake', 'null'] as const
export type Redaction = (typeof REDACTIONS)[number]

/** The redaction of a field, or of the fields inside it by their names. */
export type FieldRule = Redaction | FieldRules
export type FieldRules = ReadonlyMap<string, FieldRule>

export interface RedactionFile {
  /** The fields by the names of their tables. */
  readonly tables: ReadonlyMap<string, FieldRules>
  /** False leaves out all stored files, whose names and bytes are not redacted. */
  readonly hasFiles: boolean
}

export const NO_REDACTION: RedactionFile = { tables: new Map(), hasFiles: true }

const SAMPLE = '{ "tables": { "users": { "email": "fake", "address": { "street": "null" } } } }'

/** Parses a redaction file. Throws REDACTION_INVALID with the rule that the content breaks. */
export function parseRedaction(bytes: Uint8Array): RedactionFile {
  try {
    return redactionOf(parseWrittenJson(bytes))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const rule = `it must be ${error.rule} (${error.path}), such as ${SAMPLE}`
    throw redactionFault(rule, error)
  }
}

export function redactionFault(detail: string, cause?: unknown): Fault {
  return new Fault('REDACTION_INVALID', { detail, cause })
}

function redactionOf(json: Json): RedactionFile {
  const { tables, files = 'on-demand', ...others } = objectOf(json, '$')
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new ValidationError('no unknown field', `$.${unknown}`)
  if (tables === undefined) throw new ValidationError('a required field', '$.tables')
  if (files !== 'on-demand' && files !== 'none') {
    throw new ValidationError('"on-demand" or "none"', '$.files')
  }
  const rules = Object.entries(objectOf(tables, '$.tables')).map(
    ([table, fields]) => [table, rulesOf(fields, `$.tables.${table}`)] as const,
  )
  return { tables: new Map(rules), hasFiles: files === 'on-demand' }
}

function rulesOf(json: Json, path: string): FieldRules {
  const rules = Object.entries(objectOf(json, path))
  if (rules.length === 0) throw new ValidationError('an object of at least one field', path)
  return new Map(rules.map(([name, rule]) => [name, ruleOf(rule, `${path}.${name}`)]))
}

function ruleOf(json: Json, path: string): FieldRule {
  if (isJsonObject(json)) return rulesOf(json, path)
  const redaction = REDACTIONS.find((known) => known === json)
  if (redaction !== undefined) return redaction
  throw new ValidationError('"hash", "fake", "null" or an object of fields', path)
}

function objectOf(json: Json, path: string) {
  if (!isJsonObject(json)) throw new ValidationError('an object', path)
  return json
}
