/** Parses untrusted validators, such as those of a manifest. */
import { isTableName } from './ids.ts'
import { PatternError } from './patterns/pattern-error.ts'
import { parsePattern } from './patterns/syntax.ts'
import { accepts } from './plain/tags.ts'
import { encodeStored, fromStoredJson } from './stored.ts'
import { isJsonObject, type Json } from './strict-json.ts'
import { parseInt64 } from './tagged.ts'
import { ValidationError } from './validation-error.ts'
import {
  compileValidator,
  type FieldsJson,
  UNKNOWN_MEMBER,
  type ValidatorJson,
} from './validators.ts'
import { valueEquals } from './values.ts'

/**
 * Characters of the stored JSON of a default. Each object without the field is read with it, so
 * that a large one would multiply what a small document costs.
 * @limit Workspaces and Releases: characters of stored JSON of the default of one field
 */
export const DEFAULT_CHARACTERS_MAX = 8_192
const UNION_MAX = 256
const FIELDS_MAX = 1_024
/** Nesting of validators. Values may be 64 levels deep, through `any`. */
const DEPTH_MAX = 32

/** Throws ValidationError with the path of the first defect. */
export function parseValidator(json: Json, path = '$', depth = 0): ValidatorJson {
  const { type, keys, at } = memberOf(json, path, depth)
  const only = (...allowed: string[]) => {
    const extra = keys.find((key) => key !== 'type' && !allowed.includes(key))
    if (extra !== undefined) throw new ValidationError('no unknown field', `${path}.${extra}`)
  }
  switch (type) {
    case 'null':
    case 'boolean':
    case 'timestamp':
    case 'any':
      only()
      return { type }
    case 'int64':
      only('minimum', 'maximum')
      for (const bound of ['minimum', 'maximum']) int64(at(bound), `${path}.${bound}`)
      break
    case 'float64':
      only('minimum', 'maximum')
      for (const bound of ['minimum', 'maximum']) number(at(bound), `${path}.${bound}`)
      break
    case 'string':
      only('minimumLength', 'maximumLength', 'pattern')
      for (const bound of ['minimumLength', 'maximumLength']) count(at(bound), `${path}.${bound}`)
      pattern(at('pattern'), `${path}.pattern`)
      break
    case 'bytes':
      only('maximumLength')
      count(at('maximumLength'), `${path}.maximumLength`)
      break
    case 'id': {
      only('table')
      const table = at('table')
      if (typeof table !== 'string' || !isTableName(table)) {
        throw new ValidationError('a table name', `${path}.table`)
      }
      break
    }
    case 'literal':
      only('value')
      literal(at('value'), `${path}.value`)
      break
    case 'array':
      only('items', 'maximumItems')
      count(at('maximumItems'), `${path}.maximumItems`)
      parseValidator(at('items') ?? null, `${path}.items`, depth + 1)
      break
    case 'record':
      only('values', 'maximumItems')
      count(at('maximumItems'), `${path}.maximumItems`)
      parseValidator(at('values') ?? null, `${path}.values`, depth + 1)
      break
    case 'object':
      only('fields')
      parseFields(at('fields') ?? null, `${path}.fields`, depth + 1)
      break
    case 'nullable':
      only('inner')
      parseValidator(at('inner') ?? null, `${path}.inner`, depth + 1)
      break
    case 'union':
      only('members')
      union(at('members'), `${path}.members`, depth)
      break
    case 'open':
      only('inner')
      open(at('inner') ?? null, `${path}.inner`, depth)
      break
    default:
      throw new ValidationError('a known validator', path)
  }
  return json as unknown as ValidatorJson
}

/** Parses the fields of an object or a table, where `optional` is allowed. */
export function parseFields(json: Json, path = '$', depth = 0): FieldsJson {
  if (!isJsonObject(json)) throw new ValidationError('an object of validators', path)
  const names = Object.keys(json)
  if (names.length > FIELDS_MAX) throw new ValidationError(`at most ${FIELDS_MAX} fields`, path)
  for (const name of names) {
    const field = json[name]!
    if (!name.isWellFormed()) throw new ValidationError('no lone surrogate', path)
    const at = `${path}.${name}`
    if (!isJsonObject(field) || field.type !== 'optional') {
      parseValidator(field, at, depth)
      continue
    }
    if (Object.keys(field).some((key) => !['type', 'inner', 'default'].includes(key))) {
      throw new ValidationError('no unknown field', at)
    }
    const inner = parseValidator(field.inner ?? null, `${at}.inner`, depth + 1)
    if (Object.hasOwn(field, 'default')) defaultOf(field.default!, inner, `${at}.default`, depth)
  }
  return json as unknown as FieldsJson
}

function memberOf(json: Json, path: string, depth: number) {
  if (depth > DEPTH_MAX) throw new ValidationError(`at most ${DEPTH_MAX} levels`, path)
  if (!isJsonObject(json)) throw new ValidationError('a validator', path)
  return {
    type: json.type,
    keys: Object.keys(json),
    at: (key: string): Json | undefined => (Object.hasOwn(json, key) ? json[key] : undefined),
  }
}

function union(json: Json | undefined, path: string, depth: number): void {
  if (!Array.isArray(json) || json.length === 0 || json.length > UNION_MAX) {
    throw new ValidationError(`1 to ${UNION_MAX} members`, path)
  }
  json.forEach((member, i) => {
    const at = `${path}[${i}]`
    if (isOpen(parseValidator(member, at, depth + 1))) {
      throw new ValidationError('no open union in a union', at)
    }
  })
}

function open(json: Json, path: string, depth: number): void {
  const inner = parseValidator(json, path, depth + 1)
  if (inner.type !== 'union') throw new ValidationError('a union', path)
  if (!acceptsUnknown(inner)) return
  throw new ValidationError('a union without a member that accepts { unknown: true }', path)
}

/** Returns whether a union could read `{ unknown: true }` as one of its members. */
export function acceptsUnknown(union: ValidatorJson): boolean {
  return accepts(compileValidator(union, { coerce: false, unknown: 'as-read' }), UNKNOWN_MEMBER)
}

/** Returns whether the validator is an open union with nothing but `nullable` around it. */
export function isOpen(json: ValidatorJson): boolean {
  return json.type === 'open' || (json.type === 'nullable' && isOpen(json.inner))
}

/**
 * Checks the default of a field. It is what the validator returns for it, so that reading a
 * document twice changes nothing, and its levels are counted from the root of the value.
 */
function defaultOf(json: Json, inner: ValidatorJson, path: string, depth: number): void {
  const value = fromStoredJson(json, path, depth + 1)
  if (encodeStored(value).length > DEFAULT_CHARACTERS_MAX) {
    throw new ValidationError(`at most ${DEFAULT_CHARACTERS_MAX} characters of stored JSON`, path)
  }
  const checked = compileValidator(inner, { coerce: false, unknown: 'rejected' })(value, path)
  if (!valueEquals(checked, value)) {
    throw new ValidationError('a default that has the defaults of its own fields', path)
  }
}

function literal(json: Json | undefined, path: string): void {
  if (!isJsonObject(json)) throw new ValidationError('a literal', path)
  const [[kind, content] = ['', null]] = Object.entries(json)
  const fits =
    Object.keys(json).length === 1 &&
    ((kind === 'string' && typeof content === 'string' && content.isWellFormed()) ||
      (kind === 'boolean' && typeof content === 'boolean') ||
      (kind === 'int64' && typeof content === 'string'))
  if (!fits) throw new ValidationError('a literal', path)
  if (kind === 'int64') parseInt64(content as string, path)
}

function count(json: Json | undefined, path: string): void {
  if (json === undefined) return
  if (typeof json !== 'number' || !Number.isSafeInteger(json) || json < 0) {
    throw new ValidationError('a count', path)
  }
}

function pattern(json: Json | undefined, path: string): void {
  if (json === undefined) return
  if (typeof json !== 'string' || !json.isWellFormed()) throw new ValidationError('a pattern', path)
  try {
    parsePattern(json)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw new ValidationError(`a pattern (this one has ${error.wrong})`, path)
  }
}

function int64(json: Json | undefined, path: string): void {
  if (json === undefined) return
  if (typeof json !== 'string') throw new ValidationError('a canonical int64', path)
  parseInt64(json, path)
}

function number(json: Json | undefined, path: string): void {
  if (json !== undefined && typeof json !== 'number') throw new ValidationError('a number', path)
}
