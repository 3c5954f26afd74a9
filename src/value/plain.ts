/**
 * Converts plain JSON, as people write and read it, to values and back. JSON has fewer types than
 * values, so parsing follows the declared validator: an int64 is an integer or a string of digits,
 * bytes are base64url, a timestamp is ISO 8601 or a string of microseconds, an ID is a string.
 * Printed values parse to equal values under the same validator where it decides the type; where it
 * does not, `plainWriter` (plain/writer.ts) tags them. `plain-json` is a second codec because
 * programs call with it: there the validator alone decides the form, so that a schema can say it,
 * whereas people get a tag only where the text of this very value is ambiguous.
 */
import { decodeBase64Url, encodeBase64Url } from './base64url.ts'
import { isTableName, tableOfId } from './ids.ts'
import { accepts, taggedOrNull } from './plain/tags.ts'
import { isJsonObject, type Json } from './strict-json.ts'
import { parseInt64 } from './tagged.ts'
import { ValidationError } from './validation-error.ts'
import {
  changesRead,
  compileValidator,
  type FieldsJson,
  UNKNOWN_MEMBER,
  type ValidatorJson,
} from './validators.ts'
import { Timestamp, TypedId, typeOf, type Value, type ValueObject } from './values.ts'

/** Throws ValidationError with the path of the first defect and the expectation there. */
export function plainToValue(json: Json, validator: ValidatorJson, path = '$'): Value {
  return plainReader(validator)(json, path)
}

export type PlainReader = (json: Json, path?: string) => Value

/** Returns `plainToValue` of a validator, which it compiles once. */
export function plainReader(validator: ValidatorJson): PlainReader {
  return reader(validator, false)
}

function reader(validator: ValidatorJson, exact: boolean): PlainReader {
  const check = compileValidator(validator, { coerce: false, exact })
  const convert = converter(validator, exact)
  return (json, path = '$') => check(convert(json, path), path)
}

/** Parses the arguments of a Function. Throws ValidationError. */
export function plainToArguments(json: Json, fields: FieldsJson, path = '$'): Value {
  return plainToValue(json, { type: 'object', fields }, path)
}

/**
 * Prints int64 and whole float64 beyond 2^53 as strings of digits, other numbers as numbers, bytes
 * as base64url, and timestamps as ISO 8601, with microseconds unless they are zero.
 */
export function valueToPlain(value: Value): Json {
  switch (typeOf(value)) {
    case 'int64':
    case 'float64':
      return numberToPlain(value as bigint | number)
    case 'bytes':
      return encodeBase64Url(value as Uint8Array)
    case 'timestamp':
      return formatTimestamp((value as Timestamp).micros)
    case 'typed_id':
      return (value as TypedId).id
    case 'array':
      return (value as readonly Value[]).map(valueToPlain)
    case 'object':
      return Object.fromEntries(
        [...(value as ValueObject)].map(([key, item]) => [key, valueToPlain(item)]),
      )
    default:
      return value as null | boolean | string
  }
}

/** Prints a number. JSON is exact for whole numbers up to 2^53 only. */
function numberToPlain(value: bigint | number): Json {
  const number = Number(value)
  if (typeof value === 'number' && !Number.isInteger(value)) return value
  return Number.isSafeInteger(number) ? number : String(value)
}

type Convert = (json: Json, path: string) => Value

/** Compiles a converter, whose unions try their members as a check with `exact` does. */
function converter(validator: ValidatorJson, exact: boolean): Convert {
  switch (validator.type) {
    case 'int64':
      return int64
    case 'float64':
      return float64
    case 'bytes':
      return bytes
    case 'timestamp':
      return (json, path) => new Timestamp(timestamp(json, path))
    case 'id':
      return (json, path) => id(json, validator.table, path)
    case 'literal':
      return 'int64' in validator.value ? int64 : untyped
    case 'array': {
      const convert = converter(validator.items, exact)
      return (json, path) => {
        if (!Array.isArray(json)) throw new ValidationError('an array', path)
        return json.map((item, i) => convert(item, `${path}[${i}]`))
      }
    }
    case 'object':
      return object(validator.fields, exact)
    case 'record': {
      const convert = converter(validator.values, exact)
      return (json, path) => entries(json, path, (item, _, at) => convert(item, at))
    }
    case 'union':
      return union(validator, exact)
    case 'open':
      return open(validator.inner, exact)
    case 'nullable': {
      const convert = converter(validator.inner, exact)
      return (json, path) => (json === null ? null : convert(json, path))
    }
    case 'null':
    case 'boolean':
    case 'string':
      return untyped
    case 'any':
      return anything
  }
}

/** Converts JSON whose type needs no validator: a number is a float64, as in JavaScript. */
function untyped(json: Json): Value {
  // No validator of these types accepts a composite, regardless of its contents.
  if (typeof json === 'object' && json !== null) return new Map()
  return typeof json === 'number' && json === 0 ? 0 : json
}

/** Converts JSON without a declared type, in which values may be tagged. */
function anything(json: Json, path: string): Value {
  if (typeof json !== 'object' || json === null) return untyped(json)
  if (Array.isArray(json)) return json.map((item, i) => anything(item, `${path}[${i}]`))
  const tagged = taggedOrNull(json)
  return tagged === null ? entries(json, path, (item, _, at) => anything(item, at)) : tagged.value
}

const INT64_RULE = 'an int64: an integer within 2^53, or a string of decimal digits'

function int64(json: Json, path: string): bigint {
  if (typeof json === 'number' && Number.isSafeInteger(json)) return BigInt(json)
  if (typeof json === 'string') {
    try {
      return parseInt64(json, path)
    } catch {
      throw new ValidationError(INT64_RULE, path)
    }
  }
  throw new ValidationError(INT64_RULE, path)
}

const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/

function float64(json: Json, path: string): number {
  const number = typeof json === 'string' && NUMBER.test(json) ? Number(json) : json
  if (typeof number !== 'number' || !Number.isFinite(number)) {
    throw new ValidationError('a float64: a number', path)
  }
  return number === 0 ? 0 : number
}

function bytes(json: Json, path: string): Uint8Array {
  try {
    if (typeof json === 'string') return decodeBase64Url(json)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
  }
  throw new ValidationError('bytes: a string of base64url without padding', path)
}

function id(json: Json, table: string, path: string): TypedId {
  const prefix = table === 'files' ? 'fil' : table
  if (typeof json !== 'string' || !isTableName(prefix) || tableOfId(json) !== prefix) {
    throw new ValidationError(`an ID of the table ${table}: a string such as ${prefix}_...`, path)
  }
  return new TypedId(json)
}

function object(fields: FieldsJson, exact: boolean): Convert {
  const converters = new Map(
    Object.entries(fields).map(([name, field]) => {
      return [name, converter(field.type === 'optional' ? field.inner : field, exact)]
    }),
  )
  return (json, path) =>
    entries(json, path, (item, name, at) => {
      const convert = converters.get(name)
      if (convert === undefined) throw new ValidationError(expectedField(fields), at)
      return convert(item, at)
    })
}

const FIELDS_SHOWN_MAX = 16

function expectedField(fields: FieldsJson): string {
  const names = Object.keys(fields)
  if (names.length === 0) return 'no field'
  if (names.length > FIELDS_SHOWN_MAX) return 'no undeclared field'
  return `no undeclared field, but one of ${names.join(', ')}`
}

function entries(
  json: Json,
  path: string,
  each: (item: Json, name: string, path: string) => Value,
): Value {
  if (!isJsonObject(json)) throw new ValidationError('an object', path)
  return new Map(
    Object.entries(json).map(([name, item]) => [name, each(item, name, `${path}.${name}`)]),
  )
}

/** Takes a tagged value that the union accepts, otherwise the first member that does. */
function union(validator: ValidatorJson & { readonly type: 'union' }, exact: boolean): Convert {
  const check = compileValidator(validator, { coerce: false, exact })
  const all = (each: boolean) => validator.members.map((member) => reader(member, each))
  const strict = !exact && validator.members.some(changesRead) ? all(true) : []
  const members = all(exact)
  return (json, path) => {
    const tagged = taggedOrNull(json)
    if (tagged !== null && accepts(check, tagged.value)) return tagged.value
    const rules = new Set<string>()
    for (const member of [...strict, ...members]) {
      try {
        return member(json, path)
      } catch (error) {
        if (!(error instanceof ValidationError)) throw error
        if (strict.includes(member)) continue
        rules.add(error.path === path ? error.rule : `${error.path}: ${error.rule}`)
      }
    }
    throw new ValidationError([...rules].slice(0, FIELDS_SHOWN_MAX).join('; or '), path)
  }
}

/** Takes `{"unknown":true}` where the union rejects it. */
function open(inner: ValidatorJson, exact: boolean): Convert {
  const convert = converter(inner, exact)
  return (json, path) => {
    const isUnknown = isJsonObject(json) && json.unknown === true && Object.keys(json).length === 1
    return isUnknown ? UNKNOWN_MEMBER : convert(json, path)
  }
}

const ISO = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)$/
export const TIMESTAMP_RULE =
  'a timestamp: ISO 8601 with a zone such as 2026-01-31T12:00:00Z, or a string of microseconds'

function timestamp(json: Json, path: string): bigint {
  const micros = parseTimestamp(json)
  if (micros === null) throw new ValidationError(TIMESTAMP_RULE, path)
  return micros
}

/** Parses a timestamp to microseconds since the Unix epoch; returns null for other JSON. */
export function parseTimestamp(json: Json): bigint | null {
  if (typeof json !== 'string') return null
  const match = ISO.exec(json)
  try {
    if (match === null) return parseInt64(json)
    const [, year, month, day, hour, minute, second, fraction = '', zone = 'Z'] = match
    const days = daysOf(Number(year), Number(month), Number(day))
    const seconds = secondsOf(Number(hour), Number(minute), Number(second)) - zoneSeconds(zone)
    return (BigInt(days) * 86_400n + BigInt(seconds)) * 1_000_000n + BigInt(fraction.padEnd(6, '0'))
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

function secondsOf(hour: number, minute: number, second: number): number {
  if (hour > 23 || minute > 59 || second > 59) throw new ValidationError('a time of day')
  return hour * 3_600 + minute * 60 + second
}

function zoneSeconds(zone: string): number {
  if (zone === 'Z') return 0
  const seconds = secondsOf(Number(zone.slice(1, 3)), Number(zone.slice(4)), 0)
  return zone.startsWith('-') ? -seconds : seconds
}

/** Returns the days since 1970-01-01 of a Gregorian date. Internally, years begin in March. */
function daysOf(year: number, month: number, day: number): number {
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) {
    throw new ValidationError('a date')
  }
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}

function dateOf(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  )
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153)
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  }
}

const DAY_MICROS = 86_400_000_000n

/** Formats ISO 8601 in UTC; outside the years 0000 to 9999, the microseconds. */
export function formatTimestamp(micros: bigint): string {
  const microsOfDay = ((micros % DAY_MICROS) + DAY_MICROS) % DAY_MICROS
  const { year, month, day } = dateOf(Number((micros - microsOfDay) / DAY_MICROS))
  if (year < 0 || year > 9_999) return String(micros)
  const seconds = Number(microsOfDay / 1_000_000n)
  const fraction = Number(microsOfDay % 1_000_000n)
  const two = (number: number): string => String(number).padStart(2, '0')
  const date = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`
  const time = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60].map(two)
  const tail = fraction === 0 ? '' : `.${String(fraction).padStart(6, '0')}`
  return `${date}T${time.join(':')}${tail}Z`
}
