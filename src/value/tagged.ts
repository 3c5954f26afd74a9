/**
 * Tagged JSON: the public form of arguments and results (contract/application.md, Canonical tagged
 * values).
 */
import { decodeBase64Url, encodeBase64Url } from './base64url.ts'
import type { Json } from './strict-json.ts'
import { inPart, keyPart, ValidationError } from './validation-error.ts'
import {
  compareUtf8,
  INT64_MAX,
  INT64_MIN,
  sortedEntries,
  Timestamp,
  TypedId,
  VALUE_DEPTH_MAX,
  VALUE_ENTRIES_MAX,
  type Value,
  type ValueObject,
} from './values.ts'

export const INT64 = /^(?:0|-?[1-9][0-9]{0,18})$/
export const FLOAT64 = /^[0-9a-f]{16}$/
export const TYPED_ID = /^[a-z][a-zA-Z0-9]{0,63}_[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const view = new DataView(new ArrayBuffer(8))

/** Parses the shortest decimal text of an int64, as in int64 and timestamp values. */
export function parseInt64(text: string, path = '$'): bigint {
  if (!INT64.test(text)) throw new ValidationError('a canonical int64', path)
  const value = BigInt(text)
  if (value < INT64_MIN || value > INT64_MAX) throw new ValidationError('a canonical int64', path)
  return value
}

export function isTypedId(text: string): boolean {
  return TYPED_ID.test(text)
}

/**
 * Returns the bits of a finite double as 16 lowercase hex characters. Negative zero becomes zero.
 */
export function floatBits(value: number): string {
  view.setFloat64(0, value === 0 ? 0 : value)
  return view.getBigUint64(0).toString(16).padStart(16, '0')
}

/** Counts the members of an object without allocating a list. */
function sizeOf(json: { readonly [key: string]: Json }): number {
  let size = 0
  for (const _ in json) size += 1
  return size
}

/** Decodes strict JSON to a value. Throws ValidationError with the path of the first defect. */
export function decodeTagged(json: Json, path = '$', depth = 0): Value {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw new ValidationError('a tagged value', path)
  }
  const type = json.type
  const content = json.value
  if (type === 'null') {
    if (sizeOf(json) !== 1) throw new ValidationError('no other field', path)
    return null
  }
  if (sizeOf(json) !== 2 || content === undefined) {
    throw new ValidationError('exactly type and value', path)
  }
  if (type === 'boolean') {
    if (typeof content !== 'boolean') throw new ValidationError('a boolean', path)
    return content
  }
  if (type === 'array') return decodeArray(content, path, depth)
  if (type === 'object') return decodeObject(content, path, depth)
  if (typeof content !== 'string') throw new ValidationError('a known type with its form', path)
  return decodeScalar(type, content, path)
}

function decodeScalar(type: Json | undefined, content: string, path: string): Value {
  switch (type) {
    case 'string':
      return content
    case 'int64':
      return parseInt64(content, path)
    case 'timestamp':
      return new Timestamp(parseInt64(content, path))
    case 'float64': {
      if (!FLOAT64.test(content)) throw new ValidationError('16 lowercase hex characters', path)
      view.setBigUint64(0, BigInt(`0x${content}`))
      const value = view.getFloat64(0)
      if (!Number.isFinite(value) || Object.is(value, -0)) {
        throw new ValidationError('a finite float64 that is not negative zero', path)
      }
      return value
    }
    case 'bytes':
      try {
        return decodeBase64Url(content)
      } catch {
        throw new ValidationError('canonical base64url', path)
      }
    case 'typed_id':
      if (!TYPED_ID.test(content)) throw new ValidationError('a canonical typed ID', path)
      return new TypedId(content)
    default:
      throw new ValidationError('a known type with its form', path)
  }
}

function decodeArray(content: Json, path: string, depth: number): Value {
  if (!Array.isArray(content)) throw new ValidationError('an array', path)
  enter(depth, content.length, path)
  return content.map((item, i) => {
    try {
      return decodeTagged(item, path, depth + 1)
    } catch (error) {
      throw inPart(error, path, `[${i}]`)
    }
  })
}

function decodeObject(content: Json, path: string, depth: number): Value {
  if (!Array.isArray(content)) throw new ValidationError('an array of entries', path)
  enter(depth, content.length, path)
  const object = new Map<string, Value>()
  let previous: string | null = null
  for (const entry of content) {
    if (entry === null || typeof entry !== 'object' || Array.isArray(entry)) {
      throw new ValidationError('an entry with key and value', path)
    }
    const { key, value } = entry
    if (typeof key !== 'string' || value === undefined || sizeOf(entry) !== 2) {
      throw new ValidationError('an entry with key and value', path)
    }
    if (key === '__proto__') throw new ValidationError('no __proto__ key', path)
    if (previous !== null && compareUtf8(previous, key) >= 0) {
      throw new ValidationError('keys strictly sorted by UTF-8 bytes', path)
    }
    previous = key
    try {
      object.set(key, decodeTagged(value, path, depth + 1))
    } catch (error) {
      throw inPart(error, path, keyPart(key))
    }
  }
  return object
}

function enter(depth: number, entries: number, path: string): void {
  if (depth >= VALUE_DEPTH_MAX) throw new ValidationError(`at most ${VALUE_DEPTH_MAX} levels`, path)
  if (entries > VALUE_ENTRIES_MAX)
    throw new ValidationError(`at most ${VALUE_ENTRIES_MAX} entries`, path)
}

/** Returns the canonical text of a value: no white space, `type` before `value`, keys sorted. */
export function encodeTagged(value: Value): string {
  switch (typeof value) {
    case 'boolean':
      return value ? '{"type":"boolean","value":true}' : '{"type":"boolean","value":false}'
    case 'bigint':
      return `{"type":"int64","value":"${value}"}`
    case 'number':
      return `{"type":"float64","value":"${floatBits(value)}"}`
    case 'string':
      return `{"type":"string","value":${JSON.stringify(value)}}`
    default:
      return encodeComposite(value)
  }
}

function encodeComposite(value: Exclude<Value, boolean | bigint | number | string>): string {
  if (value === null) return '{"type":"null"}'
  if (value instanceof TypedId) return `{"type":"typed_id","value":"${value.id}"}`
  if (value instanceof Timestamp) return `{"type":"timestamp","value":"${value.micros}"}`
  if (value instanceof Uint8Array) {
    return `{"type":"bytes","value":"${encodeBase64Url(value)}"}`
  }
  if (value instanceof Map) {
    let entries = ''
    for (const [key, item] of sortedEntries(value as ValueObject)) {
      if (entries !== '') entries += ','
      entries += `{"key":${JSON.stringify(key)},"value":${encodeTagged(item)}}`
    }
    return `{"type":"object","value":[${entries}]}`
  }
  let items = ''
  for (const item of value as readonly Value[]) {
    if (items !== '') items += ','
    items += encodeTagged(item)
  }
  return `{"type":"array","value":[${items}]}`
}
