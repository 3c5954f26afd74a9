/**
 * Converts results from tagged JSON to plain JSON in one pass. `decoding.ts` reads equal values
 * from the same validator.
 */

import { isOfTable } from '../ids.ts'
import { accepts } from '../plain/tags.ts'
import { formatTimestamp } from '../plain.ts'
import type { Json } from '../strict-json.ts'
import { decodeTagged } from '../tagged.ts'
import {
  changesRead,
  compileValidator,
  type FieldsJson,
  type ValidatorJson,
} from '../validators.ts'
import { VALUE_ENTRIES_MAX } from '../values.ts'
import {
  float64Rule,
  idPrefix,
  int64Rule,
  literalOf,
  type Of,
  type Scalar,
  stringRule,
} from './scalars.ts'
import { isUndecided, UNKNOWN } from './undecided.ts'

/** The form of an int64 that JSON numbers have exactly. Beyond 2^53 it is a string in both. */
export type IntegerForm = 'number' | 'string'

/** A canonical tagged value that is parsed, whose form needs no check. */
interface Tagged {
  readonly type: string
  readonly value?: unknown
}

interface Entry {
  readonly key: string
  readonly value: Tagged
}

/** Returns the plain text of a tagged value; null if the validator rejects the value. */
type Encode = (tagged: Tagged) => string | null

interface Options {
  readonly integers: IntegerForm
  /** True if an absent field that has a default is rejected. */
  readonly exact: boolean
}

/**
 * Returns a function that converts the text of a tagged value that the engine made. It leaves a
 * value tagged that the validator rejects: the result of a Mutation that another Release ran.
 */
export function compilePlainEncoder(
  validator: ValidatorJson,
  integers: IntegerForm,
): (taggedText: string) => string {
  const encode = compile(validator, { integers, exact: false })
  return (taggedText) => encode(JSON.parse(taggedText) as Tagged) ?? taggedText
}

function compile(json: ValidatorJson, options: Options): Encode {
  switch (json.type) {
    case 'any':
      return (tagged) => JSON.stringify(tagged)
    case 'array':
      return array(json, compile(json.items, options))
    case 'object':
      return object(json.fields, options)
    case 'record':
      return record(json, compile(json.values, options))
    case 'union':
      return isUndecided(json) ? taggedMember(json, options) : union(membersOf(json, options))
    case 'open':
      return json.inner.type === 'union' && isUndecided(json.inner)
        ? taggedMember(json, options)
        : union([compile(UNKNOWN, options), compile(json.inner, options)])
    case 'nullable': {
      const inner = compile(json.inner, options)
      return (tagged) => (tagged.type === 'null' ? 'null' : inner(tagged))
    }
    default:
      return scalar(json as Scalar, options)
  }
}

function scalar(json: Scalar, { integers }: Options): Encode {
  switch (json.type) {
    case 'null':
      return ({ type }) => (type === 'null' ? 'null' : null)
    case 'boolean':
      return ({ type, value }) => (type === 'boolean' ? String(value) : null)
    case 'int64':
      return int64(json, integers)
    case 'float64':
      return float64(json)
    case 'string': {
      const broken = stringRule(json)
      return ({ type, value }) => {
        if (type !== 'string' || broken(value as string) !== null) return null
        return JSON.stringify(value)
      }
    }
    case 'bytes':
      return bytes(json)
    case 'timestamp':
      return ({ type, value }) => {
        return type === 'timestamp' ? `"${formatTimestamp(BigInt(value as string))}"` : null
      }
    case 'id': {
      const prefix = idPrefix(json)
      return ({ type, value }) => {
        return type === 'typed_id' && isOfTable(prefix, value as string) ? `"${value}"` : null
      }
    }
    case 'literal':
      return literal(json, integers)
  }
}

/** Digits of the longest integer of which JSON numbers have every one. */
const EXACT_DIGITS = 15

function integer(digits: string, integers: IntegerForm): string {
  const isExact = digits.length <= EXACT_DIGITS || Number.isSafeInteger(Number(digits))
  return isExact && integers === 'number' ? digits : `"${digits}"`
}

function int64(json: Of<'int64'>, integers: IntegerForm): Encode {
  const broken = json.minimum === undefined && json.maximum === undefined ? null : int64Rule(json)
  return ({ type, value }) => {
    if (type !== 'int64') return null
    const digits = value as string
    if (broken !== null && broken(BigInt(digits)) !== null) return null
    return integer(digits, integers)
  }
}

const view = new DataView(new ArrayBuffer(8))

function float64(json: Of<'float64'>): Encode {
  const broken = float64Rule(json)
  return ({ type, value }) => {
    if (type !== 'float64') return null
    view.setBigUint64(0, BigInt(`0x${value}`))
    const number = view.getFloat64(0)
    return broken(number) === null ? JSON.stringify(number) : null
  }
}

function bytes({ maximumLength }: Of<'bytes'>): Encode {
  return ({ type, value }) => {
    if (type !== 'bytes') return null
    const text = value as string
    // Four characters of base64url are three bytes.
    const isShort = maximumLength === undefined || Math.floor(text.length * 0.75) <= maximumLength
    return isShort ? `"${text}"` : null
  }
}

function literal({ value: json }: Of<'literal'>, integers: IntegerForm): Encode {
  const expected = literalOf(json)
  if (typeof expected === 'bigint') {
    const text = integer(String(expected), integers)
    return ({ type, value }) => (type === 'int64' && value === String(expected) ? text : null)
  }
  const text = JSON.stringify(expected)
  return ({ type, value }) => (type === typeof expected && value === expected ? text : null)
}

function array({ maximumItems = VALUE_ENTRIES_MAX }: Of<'array'>, encode: Encode): Encode {
  return ({ type, value }) => {
    if (type !== 'array') return null
    const items = value as readonly Tagged[]
    if (items.length > maximumItems) return null
    let text = ''
    for (const item of items) {
      const encoded = encode(item)
      if (encoded === null) return null
      text = text === '' ? encoded : `${text},${encoded}`
    }
    return `[${text}]`
  }
}

function record({ maximumItems = VALUE_ENTRIES_MAX }: Of<'record'>, encode: Encode): Encode {
  return ({ type, value }) => {
    if (type !== 'object') return null
    const entries = value as readonly Entry[]
    if (entries.length > maximumItems) return null
    let text = ''
    for (const { key, value: item } of entries) {
      const encoded = encode(item)
      if (encoded === null) return null
      if (text !== '') text += ','
      text += `${JSON.stringify(key)}:${encoded}`
    }
    return `{${text}}`
  }
}

function object(fields: FieldsJson, options: Options): Encode {
  const declared = new Map<string, { readonly key: string; readonly encode: Encode }>()
  const required: string[] = []
  for (const [name, field] of Object.entries(fields)) {
    const isOptional = field.type === 'optional'
    const encode = compile(isOptional ? field.inner : field, options)
    declared.set(name, { key: `${JSON.stringify(name)}:`, encode })
    if (!isOptional || (options.exact && field.default !== undefined)) required.push(name)
  }
  const isRequired = new Set(required)
  return ({ type, value }) => {
    if (type !== 'object') return null
    let missing = required.length
    let text = ''
    for (const { key: name, value: item } of value as readonly Entry[]) {
      const field = declared.get(name)
      const encoded = field?.encode(item) ?? null
      if (field === undefined || encoded === null) return null
      if (isRequired.has(name)) missing -= 1
      if (text !== '') text += ','
      text += field.key + encoded
    }
    return missing === 0 ? `{${text}}` : null
  }
}

/** Returns the encoders of a union in the order in which the check tries its members. */
function membersOf({ members }: Of<'union'>, options: Options): Encode[] {
  const all = (exact: boolean) => members.map((member) => compile(member, { ...options, exact }))
  const { exact } = options
  return exact || !members.some(changesRead) ? all(exact) : [...all(true), ...all(false)]
}

function union(members: readonly Encode[]): Encode {
  return (tagged) => {
    for (const encode of members) {
      const text = encode(tagged)
      if (text !== null) return text
    }
    return null
  }
}

/** Leaves a value tagged that the validator accepts. */
function taggedMember(validator: Of<'union'> | Of<'open'>, { exact }: Options): Encode {
  const check = compileValidator(validator, { coerce: false, exact })
  return (tagged) => {
    const isAccepted = accepts(check, decodeTagged(tagged as Tagged & Json))
    return isAccepted ? JSON.stringify(tagged) : null
  }
}
