/** Parses untrusted validators, such as those of a manifest. */
import { isTableName } from './ids.ts'
import { PatternError } from './patterns/pattern-error.ts'
import { parsePattern } from './patterns/syntax.ts'
import { isJsonObject, type Json } from './strict-json.ts'
import { parseInt64 } from './tagged.ts'
import { ValidationError } from './validation-error.ts'
import type { FieldsJson, ValidatorJson } from './validators.ts'

const UNION_MAX = 256
const FIELDS_MAX = 1_024
/** Nesting of validators. Values may be 64 levels deep, through `any`. */
const DEPTH_MAX = 32

/** Throws ValidationError with the path of the first defect. */
export function parseValidator(json: Json, path = '$', depth = 0): ValidatorJson {
  const { type, keys, at } = open(json, path, depth)
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
    if (Object.keys(field).some((key) => key !== 'type' && key !== 'inner')) {
      throw new ValidationError('no unknown field', at)
    }
    parseValidator(field.inner ?? null, `${at}.inner`, depth + 1)
  }
  return json as unknown as FieldsJson
}

function open(json: Json, path: string, depth: number) {
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
    parseValidator(member, `${path}[${i}]`, depth + 1)
  })
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
