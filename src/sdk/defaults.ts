/** Defaults of optional fields: values of JavaScript as stored JSON (value/stored.ts). */
import { encodeStored } from '../value/stored.ts'
import type { Json } from '../value/strict-json.ts'
import { ValidationError } from '../value/validation-error.ts'
import { DEFAULT_CHARACTERS_MAX } from '../value/validator-json.ts'
import { compileValidator, type ValidatorJson } from '../value/validators.ts'
import { INT64_MAX, INT64_MIN, VALUE_DEPTH_MAX, type Value } from '../value/values.ts'
import { DefinitionError, isPlainObject } from './definition-errors.ts'

const OWNER = 'The default of v.optional(...)'

/** Returns the stored JSON of a default, with the defaults of its own fields. */
export function defaultJson(inner: ValidatorJson, given: unknown): Json {
  const text = encodeStored(checkedDefault(inner, toValue(given, '$', 0)))
  if (text.length > DEFAULT_CHARACTERS_MAX) {
    throw new DefinitionError(
      `${OWNER} has ${text.length} characters of JSON`,
      `Use at most ${DEFAULT_CHARACTERS_MAX}, or let the handler add the value`,
    )
  }
  return JSON.parse(text) as Json
}

function checkedDefault(inner: ValidatorJson, value: Value): Value {
  try {
    return compileValidator(inner, { coerce: true, unknown: 'rejected' })(value, '$')
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const rule = error.path === '$' ? error.rule : `${error.rule} at ${error.path}`
    throw new DefinitionError(
      `${OWNER} does not fit its validator, which wants ${rule}`,
      'Write a value that the validator accepts',
    )
  }
}

/** Converts a value of JavaScript, in which timestamps are bigints and IDs are strings. */
function toValue(given: unknown, path: string, depth: number): Value {
  if (depth > VALUE_DEPTH_MAX) throw invalid('an object inside itself, or too deep', path)
  switch (typeof given) {
    case 'boolean':
      return given
    case 'bigint':
      if (given < INT64_MIN || given > INT64_MAX) throw invalid('more than 64 bits', path)
      return given
    case 'number':
      if (!Number.isFinite(given)) throw invalid('a number that is not finite', path)
      return given === 0 ? 0 : given
    case 'string':
      if (!given.isWellFormed()) throw invalid('half of a surrogate pair', path)
      return given
    case 'object':
      return given === null ? null : compositeOf(given, path, depth)
    case 'undefined':
      throw new DefinitionError(
        `${OWNER} is undefined`,
        'Leave .default(...) out for a field that may be absent',
      )
    default:
      throw invalid(`a ${typeof given}`, path)
  }
}

function compositeOf(given: object, path: string, depth: number): Value {
  if (given instanceof Uint8Array) return given.slice()
  if (Array.isArray(given)) {
    return given.map((item: unknown, i) => toValue(item, `${path}[${i}]`, depth + 1))
  }
  if (!isPlainObject(given)) throw invalid('an object of a class', path)
  const object = new Map<string, Value>()
  for (const [name, item] of Object.entries(given)) {
    if (name === '__proto__' || !name.isWellFormed()) throw invalid('a key no value has', path)
    if (item !== undefined) object.set(name, toValue(item, `${path}.${name}`, depth + 1))
  }
  return object
}

function invalid(what: string, path: string): DefinitionError {
  return new DefinitionError(
    `${OWNER} has ${what}${path === '$' ? '' : ` at ${path}`}, which cannot be stored`,
    'Use null, booleans, bigints, finite numbers, strings, Uint8Array, arrays and plain objects',
  )
}
