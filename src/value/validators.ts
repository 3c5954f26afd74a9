/**
 * Validators as data. `v.*` in a Workspace builds them, a manifest contains them and the server
 * runs them. One compiler serves arguments from the wire, whose types are exact, and values from a
 * runner, where JavaScript does not distinguish an ID from a string or a timestamp from an int64
 * (`coerce`).
 */

import { isOfTable } from './ids.ts'
import { matches } from './patterns/matcher.ts'
import { encodeStored, fromStoredJson } from './stored.ts'
import type { Json } from './strict-json.ts'
import { isTypedId } from './tagged.ts'
import { inPart, keyPart, ValidationError } from './validation-error.ts'
import { Timestamp, TypedId, typeOf, type Value, type ValueObject, valueEquals } from './values.ts'

/** Fields of an object validator, the only place where `optional` is allowed. */
export type FieldsJson = { readonly [name: string]: ValidatorJson | OptionalJson }
export interface OptionalJson {
  readonly type: 'optional'
  readonly inner: ValidatorJson
  /** Stored JSON of the value that an absent field has; undefined without a default. */
  readonly default?: Json
}
export type LiteralJson =
  | { readonly string: string }
  | { readonly boolean: boolean }
  | { readonly int64: string }

export type ValidatorJson =
  | { readonly type: 'null' | 'boolean' | 'timestamp' | 'any' }
  | { readonly type: 'int64'; readonly minimum?: string; readonly maximum?: string }
  | { readonly type: 'float64'; readonly minimum?: number; readonly maximum?: number }
  | {
      readonly type: 'string'
      readonly minimumLength?: number
      readonly maximumLength?: number
      /** Pattern that the whole string must match (patterns/syntax.ts). */
      readonly pattern?: string
    }
  | { readonly type: 'bytes'; readonly maximumLength?: number }
  | { readonly type: 'id'; readonly table: string }
  | { readonly type: 'literal'; readonly value: LiteralJson }
  | { readonly type: 'array'; readonly items: ValidatorJson; readonly maximumItems?: number }
  | { readonly type: 'object'; readonly fields: FieldsJson }
  | { readonly type: 'record'; readonly values: ValidatorJson; readonly maximumItems?: number }
  | { readonly type: 'union'; readonly members: readonly ValidatorJson[] }
  | { readonly type: 'nullable'; readonly inner: ValidatorJson }
  /** A union that may have members in other Releases which this one does not know. */
  | { readonly type: 'open'; readonly inner: ValidatorJson }

/** The value that a Release reads where no member of its open union accepts the stored one. */
export const UNKNOWN_MEMBER: ValueObject = new Map([['unknown', true]])

/**
 * Returns the value with the defaults of its absent fields, and with coerced types if `coerce` is
 * set. Throws ValidationError.
 */
export type Check = (value: Value, path: string) => Value

export interface CompileOptions {
  /** Converts strings to declared IDs, and int64 to declared timestamps. */
  readonly coerce: boolean
  /**
   * Decides about a value that no member of an open union accepts:
   * - `as-value`, for arguments and results: accepts `{ unknown: true }` alone, as a value
   * - `as-read`: returns `{ unknown: true }` for every such value
   * - `as-kept`, for documents that are written: as `as-value`, since `Projection.keep` decides
   *   whether it stands for a stored value
   * - `rejected`
   */
  readonly unknown?: 'as-value' | 'as-read' | 'as-kept' | 'rejected'
  /** Rejects what is not returned as it is: an absent field that has a default. */
  readonly exact?: boolean
}

interface Options extends CompileOptions {
  readonly filling?: Filling
}

/**
 * Most characters that the defaults of absent fields may add to one value: a short array of objects
 * without a field would otherwise become as many copies of its default.
 * @limit Calls: characters of stored JSON that defaults add to arguments or to a document
 */
export const FILLED_CHARACTERS_MAX = 4 * 1024 * 1024

/** The characters that defaults have added in the check that runs. */
class Filling {
  characters = 0

  add(characters: number, path: string): void {
    this.characters += characters
    if (this.characters > FILLED_CHARACTERS_MAX) {
      throw new ValidationError(`at most ${FILLED_CHARACTERS_MAX} characters of defaults`, path)
    }
  }
}

export function compileValidator(json: ValidatorJson, options: CompileOptions): Check {
  if (!changesRead(json)) return compile(json, options)
  const filling = new Filling()
  const check = compile(json, { ...options, filling })
  return (value, path) => {
    filling.characters = 0
    return check(value, path)
  }
}

function compile(json: ValidatorJson, options: Options): Check {
  switch (json.type) {
    case 'any':
      return (value) => value
    case 'null':
    case 'boolean':
      return exactly(json.type)
    case 'timestamp':
      return timestamp(options)
    case 'int64':
      return int64(json)
    case 'float64':
      return float64(json)
    case 'string':
      return json.pattern === undefined ? string(json) : patterned(string(json), json.pattern)
    case 'bytes':
      return bytes(json)
    case 'id':
      return id(json.table, options)
    case 'literal':
      return literal(json.value)
    case 'array':
      return array(json, options)
    case 'object':
      return object(json.fields, options)
    case 'record':
      return record(json, options)
    case 'union':
      return union(json.members, options)
    case 'nullable': {
      const inner = compile(json.inner, options)
      return (value, path) => (value === null ? null : inner(value, path))
    }
    case 'open':
      return open(json.inner, options)
  }
}

/** Returns whether a value may be read as another: with a default, or as an unknown member. */
export function changesRead(json: ValidatorJson): boolean {
  switch (json.type) {
    case 'open':
      return true
    case 'object':
      return Object.values(json.fields).some((field) => {
        if (field.type !== 'optional') return changesRead(field)
        return field.default !== undefined || changesRead(field.inner)
      })
    case 'nullable':
      return changesRead(json.inner)
    case 'array':
      return changesRead(json.items)
    case 'record':
      return changesRead(json.values)
    case 'union':
      return json.members.some(changesRead)
    default:
      return false
  }
}

/** Returns the options that accept only what is returned as it is. */
function asItIs(options: Options): Options {
  const { unknown } = options
  return { ...options, exact: true, ...(unknown === 'as-read' && { unknown: 'as-value' }) }
}

function exactly(type: 'null' | 'boolean'): Check {
  return (value, path) => {
    if (typeOf(value) !== type) throw new ValidationError(`a ${type}`, path)
    return value
  }
}

function timestamp({ coerce }: Options): Check {
  return (value, path) => {
    if (value instanceof Timestamp) return value
    if (coerce && typeof value === 'bigint') return new Timestamp(value)
    throw new ValidationError('a timestamp (a bigint of microseconds)', path)
  }
}

function int64(json: { minimum?: string; maximum?: string }): Check {
  const minimum = json.minimum === undefined ? null : BigInt(json.minimum)
  const maximum = json.maximum === undefined ? null : BigInt(json.maximum)
  return (value, path) => {
    if (typeof value !== 'bigint') throw new ValidationError('an int64 (a bigint such as 5n)', path)
    if (minimum !== null && value < minimum) throw new ValidationError(`at least ${minimum}`, path)
    if (maximum !== null && value > maximum) throw new ValidationError(`at most ${maximum}`, path)
    return value
  }
}

function float64({ minimum, maximum }: { minimum?: number; maximum?: number }): Check {
  return (value, path) => {
    if (typeof value !== 'number') throw new ValidationError('a float64 (a number)', path)
    if (minimum !== undefined && value < minimum)
      throw new ValidationError(`at least ${minimum}`, path)
    if (maximum !== undefined && value > maximum)
      throw new ValidationError(`at most ${maximum}`, path)
    return value
  }
}

/** Checks a string. Lengths count Unicode code points. */
function string(json: { minimumLength?: number; maximumLength?: number }): Check {
  const { minimumLength: minimum, maximumLength: maximum } = json
  return (value, path) => {
    if (typeof value !== 'string') throw new ValidationError('a string', path)
    if (minimum !== undefined && codePoints(value, minimum) < minimum) {
      throw new ValidationError(`at least ${minimum} characters`, path)
    }
    if (maximum !== undefined && value.length > maximum && codePoints(value, maximum) > maximum) {
      throw new ValidationError(`at most ${maximum} characters`, path)
    }
    return value
  }
}

function patterned(bounded: Check, pattern: string): Check {
  const fits = matches(pattern)
  return (value, path) => {
    if (fits(bounded(value, path) as string)) return value
    throw new ValidationError(`a string that matches /${pattern}/`, path)
  }
}

/** Counts at most `enough` + 1 code points, so that the cost of a long string is bounded. */
export function codePoints(text: string, enough: number): number {
  let count = 0
  for (const _ of text) if (++count > enough) break
  return count
}

function bytes({ maximumLength }: { maximumLength?: number }): Check {
  return (value, path) => {
    if (!(value instanceof Uint8Array)) throw new ValidationError('bytes (a Uint8Array)', path)
    if (maximumLength !== undefined && value.length > maximumLength) {
      throw new ValidationError(`at most ${maximumLength} bytes`, path)
    }
    return value
  }
}

/** Checks an ID. IDs of the table `files` have the prefix `fil_`. */
function id(table: string, { coerce }: Options): Check {
  const prefix = table === 'files' ? 'fil' : table
  return (value, path) => {
    const exact =
      value instanceof TypedId
        ? value
        : coerce && typeof value === 'string' && isTypedId(value)
          ? new TypedId(value)
          : null
    if (exact === null || !isOfTable(prefix, exact.id)) {
      throw new ValidationError(`an ID of the table ${table}`, path)
    }
    return exact
  }
}

function literal(json: LiteralJson): Check {
  const expected: Value =
    'string' in json ? json.string : 'boolean' in json ? json.boolean : BigInt(json.int64)
  const shown = typeof expected === 'string' ? JSON.stringify(expected) : String(expected)
  return (value, path) => {
    if (!valueEquals(value, expected)) throw new ValidationError(`the literal ${shown}`, path)
    return value
  }
}

function array(json: { items: ValidatorJson; maximumItems?: number }, options: Options): Check {
  const items = compile(json.items, options)
  return (value, path) => {
    if (!Array.isArray(value)) throw new ValidationError('an array', path)
    if (json.maximumItems !== undefined && value.length > json.maximumItems) {
      throw new ValidationError(`at most ${json.maximumItems} items`, path)
    }
    let checked: Value[] | null = null
    for (const [i, item] of (value as readonly Value[]).entries()) {
      const exact = checkedItem(items, item, path, i)
      if (exact === item) continue
      checked ??= [...value]
      checked[i] = exact
    }
    return checked ?? value
  }
}

function checkedItem(check: Check, item: Value, path: string, i: number): Value {
  try {
    return check(item, path)
  } catch (error) {
    throw inPart(error, path, `[${i}]`)
  }
}

function object(fields: FieldsJson, options: Options): Check {
  const declared = new Map<string, { check: Check; optional: boolean }>()
  const defaults = [...(options.exact ? [] : defaultsOf(fields))].map(([name, absent]) => {
    return { name, absent, characters: name.length + encodeStored(absent).length }
  })
  for (const [name, field] of Object.entries(fields)) {
    const isOptional = field.type === 'optional'
    declared.set(name, {
      check: compile(isOptional ? field.inner : field, options),
      optional: isOptional && !(options.exact && field.default !== undefined),
    })
  }
  return (value, path) => {
    if (!(value instanceof Map)) throw new ValidationError('an object', path)
    let checked = value as ValueObject
    let missing = declared.size
    for (const [name, item] of value as ValueObject) {
      const field = declared.get(name)
      if (field === undefined)
        throw new ValidationError('no undeclared field', path + keyPart(name))
      const exact = checkedPart(field.check, item, path, name)
      if (exact !== item) checked = withValue(checked, value as ValueObject, name, exact)
      missing--
    }
    if (missing > 0) {
      for (const [name, field] of declared) {
        if (!field.optional && !checked.has(name)) {
          throw new ValidationError('a required field', `${path}.${name}`)
        }
      }
      for (const { name, absent, characters } of defaults) {
        if (checked.has(name)) continue
        options.filling?.add(characters, path)
        checked = withValue(checked, value as ValueObject, name, absent)
      }
    }
    return checked
  }
}

function record(json: { values: ValidatorJson; maximumItems?: number }, options: Options): Check {
  const values = compile(json.values, options)
  return (value, path) => {
    if (!(value instanceof Map)) throw new ValidationError('a record', path)
    if (json.maximumItems !== undefined && value.size > json.maximumItems) {
      throw new ValidationError(`at most ${json.maximumItems} entries`, path)
    }
    let checked = value as ValueObject
    for (const [name, item] of value as ValueObject) {
      const exact = checkedPart(values, item, path, name)
      if (exact !== item) checked = withValue(checked, value as ValueObject, name, exact)
    }
    return checked
  }
}

function checkedPart(check: Check, item: Value, path: string, name: string): Value {
  try {
    return check(item, path)
  } catch (error) {
    throw inPart(error, path, keyPart(name))
  }
}

/** Replaces a value in `checked`. The first change copies the original, since most need none. */
function withValue(
  checked: ValueObject,
  original: ValueObject,
  name: string,
  exact: Value,
): ValueObject {
  const copy = checked === original ? new Map(original) : (checked as Map<string, Value>)
  return copy.set(name, exact)
}

/**
 * Applies the first member that accepts the value as it is, otherwise the first that accepts it.
 * What a union returns is thus returned unchanged when it is checked again. Its error contains no
 * detail of members.
 */
function union(members: readonly ValidatorJson[], options: Options): Check {
  const compiled = (each: Options) => members.map((json) => compile(json, each))
  const checks = compiled(options)
  if (!options.exact && members.some(changesRead)) checks.unshift(...compiled(asItIs(options)))
  const { filling } = options
  return (value, path) => {
    const before = filling?.characters ?? 0
    for (const check of checks) {
      try {
        return check(value, path)
      } catch (error) {
        if (!(error instanceof ValidationError)) throw error
        // The defaults of a rejected member are not part of the value.
        if (filling !== undefined) filling.characters = before
      }
    }
    throw new ValidationError('a member of the union', path)
  }
}

/** Returns the values that absent fields have, by the names of the fields. */
export function defaultsOf(fields: FieldsJson): ReadonlyMap<string, Value> {
  const defaults = new Map<string, Value>()
  for (const [name, field] of Object.entries(fields)) {
    if (field.type !== 'optional' || field.default === undefined) continue
    defaults.set(name, fromStoredJson(field.default))
  }
  return defaults
}

const UNKNOWN_RULE =
  'a member of the union: { unknown: true } can only be written back in a field that was read so'

/** Applies the union. Its error contains no detail of members. */
function open(inner: ValidatorJson, options: Options): Check {
  const known = compile(inner, options)
  const { unknown = 'as-value' } = options
  return (value, path) => {
    try {
      return known(value, path)
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      if (unknown === 'as-read') return UNKNOWN_MEMBER
      if (!valueEquals(value, UNKNOWN_MEMBER)) throw error
      if (unknown !== 'rejected') return value
      throw new ValidationError(UNKNOWN_RULE, path)
    }
  }
}
