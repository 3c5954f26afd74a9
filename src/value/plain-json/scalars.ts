/** Reads plain JSON as values of scalar types, with the checks of their validators. */
import { decodeBase64Url } from '../base64url.ts'
import { tableOfId } from '../ids.ts'
import { matches } from '../patterns/matcher.ts'
import { parseTimestamp, TIMESTAMP_RULE } from '../plain.ts'
import type { Json } from '../strict-json.ts'
import { parseInt64 } from '../tagged.ts'
import { ValidationError } from '../validation-error.ts'
import { codePoints, type LiteralJson, type ValidatorJson } from '../validators.ts'
import { Timestamp, TypedId, type Value } from '../values.ts'
import type { Failure } from './failures.ts'

export type Of<T extends ValidatorJson['type']> = Extract<ValidatorJson, { readonly type: T }>
export type Scalar =
  | { readonly type: 'null' | 'boolean' | 'timestamp' }
  | Of<'int64' | 'float64' | 'string' | 'bytes' | 'id' | 'literal'>

/** Reads JSON at a depth of the value. Returns undefined and notes the defect of other JSON. */
export type Decode = (json: Json, depth: number, failure: Failure) => Value | undefined

/** Returns the rule that a value breaks; null for a value that is accepted. */
export type BrokenRule<T> = (value: T) => string | null

export function compileScalar(json: Scalar): Decode {
  switch (json.type) {
    case 'boolean':
      return (given, _, failure) => (typeof given === 'boolean' ? given : failure.fail('a boolean'))
    case 'int64':
      return int64(int64Rule(json))
    case 'float64':
      return float64(float64Rule(json))
    case 'string':
      return string(stringRule(json))
    case 'bytes':
      return bytes(json)
    case 'timestamp':
      return timestamp
    case 'id':
      return id(json)
    case 'literal':
      return literal(json)
    case 'null':
      return (given, _, failure) => (given === null ? null : failure.fail('null'))
  }
}

export function int64Rule({ minimum, maximum }: Of<'int64'>): BrokenRule<bigint> {
  const low = minimum === undefined ? null : BigInt(minimum)
  const high = maximum === undefined ? null : BigInt(maximum)
  return (value) => {
    if (low !== null && value < low) return `at least ${low}`
    return high !== null && value > high ? `at most ${high}` : null
  }
}

export function float64Rule({ minimum, maximum }: Of<'float64'>): BrokenRule<number> {
  return (value) => {
    if (minimum !== undefined && value < minimum) return `at least ${minimum}`
    return maximum !== undefined && value > maximum ? `at most ${maximum}` : null
  }
}

export function stringRule(json: Of<'string'>): BrokenRule<string> {
  const { minimumLength: minimum, maximumLength: maximum, pattern } = json
  const fits = pattern === undefined ? null : matches(pattern)
  return (value) => {
    if (minimum !== undefined && codePoints(value, minimum) < minimum) {
      return `at least ${minimum} characters`
    }
    if (maximum !== undefined && value.length > maximum && codePoints(value, maximum) > maximum) {
      return `at most ${maximum} characters`
    }
    return fits === null || fits(value) ? null : `a string that matches /${pattern}/`
  }
}

/** Returns the value of a literal. */
export function literalOf(json: LiteralJson): string | boolean | bigint {
  if ('string' in json) return json.string
  return 'boolean' in json ? json.boolean : BigInt(json.int64)
}

/** Returns the prefix of the IDs of a table. */
export function idPrefix({ table }: Of<'id'>): string {
  return table === 'files' ? 'fil' : table
}

const INT64_RULE = 'an int64: an integer within 2^53, or a string of decimal digits'
/** Characters of the longest decimal int64. */
const INT64_CHARACTERS_MAX = 20

/** Returns the int64; undefined for other JSON. */
function int64Of(json: Json): bigint | undefined {
  if (typeof json === 'number') return Number.isSafeInteger(json) ? BigInt(json) : undefined
  if (typeof json !== 'string' || json.length > INT64_CHARACTERS_MAX) return undefined
  try {
    return parseInt64(json)
  } catch (error) {
    if (error instanceof ValidationError) return undefined
    throw error
  }
}

function int64(broken: BrokenRule<bigint>): Decode {
  return (json, _, failure) => {
    const value = int64Of(json)
    if (value === undefined) return failure.fail(INT64_RULE)
    const rule = broken(value)
    return rule === null ? value : failure.fail(rule)
  }
}

function float64(broken: BrokenRule<number>): Decode {
  return (json, _, failure) => {
    if (typeof json !== 'number') return failure.fail('a float64: a number')
    // There is no negative zero among the values.
    const value = json === 0 ? 0 : json
    const rule = broken(value)
    return rule === null ? value : failure.fail(rule)
  }
}

function string(broken: BrokenRule<string>): Decode {
  return (json, _, failure) => {
    if (typeof json !== 'string') return failure.fail('a string')
    const rule = broken(json)
    return rule === null ? json : failure.fail(rule)
  }
}

const BYTES_RULE = 'bytes: a string of base64url without padding'

function bytes({ maximumLength }: Of<'bytes'>): Decode {
  return (json, _, failure) => {
    if (typeof json !== 'string') return failure.fail(BYTES_RULE)
    try {
      const value = decodeBase64Url(json)
      if (maximumLength === undefined || value.length <= maximumLength) return value
      return failure.fail(`at most ${maximumLength} bytes`)
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      return failure.fail(BYTES_RULE)
    }
  }
}

const timestamp: Decode = (json, _, failure) => {
  const isInteger = typeof json === 'number' && Number.isSafeInteger(json)
  const micros = isInteger ? BigInt(json) : parseTimestamp(json)
  return micros === null ? failure.fail(TIMESTAMP_RULE) : new Timestamp(micros)
}

function id(validator: Of<'id'>): Decode {
  const prefix = idPrefix(validator)
  return (json, _, failure) => {
    if (typeof json === 'string' && tableOfId(json) === prefix) return new TypedId(json)
    return failure.fail(`an ID of the table ${validator.table}: a string such as ${prefix}_...`)
  }
}

function literal(validator: Of<'literal'>): Decode {
  const value = literalOf(validator.value)
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return (json, _, failure) => {
    const given = typeof value === 'bigint' ? int64Of(json) : json
    return given === value ? value : failure.fail(`the literal ${shown}`)
  }
}
