/**
 * Stored JSON, the compact form of values in document stores and on the pipe to a runner. It is
 * plain JSON for types that JSON has, and a one-key object for the others: `{"$i":"7"}` int64,
 * `{"$b":..}` bytes, `{"$t":..}` timestamp, `{"$d":..}` typed ID. A key that begins with `$` is
 * escaped by another `$`. It has a third of the size of the tagged form, and native JSON.parse
 * reads it.
 */
import { decodeBase64Url, encodeBase64Url } from './base64url.ts'
import { isTypedId, parseInt64 } from './tagged.ts'
import { inPart, keyPart, ValidationError } from './validation-error.ts'
import {
  sortedEntries,
  Timestamp,
  TypedId,
  VALUE_DEPTH_MAX,
  VALUE_ENTRIES_MAX,
  type Value,
  type ValueObject,
} from './values.ts'

/** Keys that need no escape in JSON, as most. */
const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Returns the canonical text: keys in UTF-8 order, no white space. */
export function encodeStored(value: Value): string {
  switch (typeof value) {
    case 'boolean':
      return value ? 'true' : 'false'
    case 'bigint':
      return `{"$i":"${value}"}`
    case 'number':
      return value === 0 ? '0' : JSON.stringify(value)
    case 'string':
      return JSON.stringify(value)
    default:
      return encodeComposite(value)
  }
}

function encodeComposite(value: Exclude<Value, boolean | bigint | number | string>): string {
  if (value === null) return 'null'
  if (value instanceof TypedId) return `{"$d":"${value.id}"}`
  if (value instanceof Timestamp) return `{"$t":"${value.micros}"}`
  if (value instanceof Uint8Array) return `{"$b":"${encodeBase64Url(value)}"}`
  let text = ''
  if (value instanceof Map) {
    for (const [key, item] of sortedEntries(value as ValueObject)) {
      const name = PLAIN_KEY.test(key) ? key : escaped(key)
      text =
        text === '' ? `"${name}":${encodeStored(item)}` : `${text},"${name}":${encodeStored(item)}`
    }
    return `{${text}}`
  }
  for (const item of value as readonly Value[]) {
    if (text !== '') text += ','
    text += encodeStored(item)
  }
  return `[${text}]`
}

function escaped(key: string): string {
  return JSON.stringify(key.startsWith('$') ? `$${key}` : key).slice(1, -1)
}

/** Decodes text, trusted or not. Throws ValidationError. */
export function decodeStored(text: string): Value {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new ValidationError('stored JSON')
  }
  return fromStoredJson(json)
}

/** Decodes parsed stored JSON. A runner also sends such JSON, so nothing in it is trusted. */
export function fromStoredJson(json: unknown, path = '$', depth = 0): Value {
  switch (typeof json) {
    case 'boolean':
      return json
    case 'string':
      if (!json.isWellFormed()) throw new ValidationError('no lone surrogate', path)
      return json
    case 'number':
      if (!Number.isFinite(json)) throw new ValidationError('a finite number', path)
      return json === 0 ? 0 : json
    case 'object':
      return json === null ? null : fromComposite(json, path, depth)
    default:
      throw new ValidationError('a value', path)
  }
}

function fromComposite(json: object, path: string, depth: number): Value {
  if (depth > VALUE_DEPTH_MAX) throw new ValidationError(`at most ${VALUE_DEPTH_MAX} levels`, path)
  if (Array.isArray(json)) {
    checkNesting(depth, json.length, path)
    return json.map((item, i) => {
      try {
        return fromStoredJson(item, path, depth + 1)
      } catch (error) {
        throw inPart(error, path, `[${i}]`)
      }
    })
  }
  const keys = Object.keys(json)
  const content = json as { readonly [key: string]: unknown }
  if (keys.length === 1 && keys[0]![0] === '$' && keys[0]![1] !== '$') {
    return fromMarked(keys[0]!, content[keys[0]!], path)
  }
  checkNesting(depth, keys.length, path)
  const object = new Map<string, Value>()
  for (const key of keys) {
    const name = key[0] === '$' ? key.slice(1) : key
    if ((key[0] === '$' && key[1] !== '$') || name === '__proto__' || !name.isWellFormed()) {
      throw new ValidationError(keyRule(name), path)
    }
    try {
      object.set(name, fromStoredJson(content[key], path, depth + 1))
    } catch (error) {
      throw inPart(error, path, keyPart(name))
    }
  }
  return object
}

/** Returns the rule that a key breaks. */
function keyRule(name: string): string {
  if (name === '__proto__') return 'no __proto__ key'
  return name.isWellFormed()
    ? 'a second $ in a key that begins with one'
    : 'no lone surrogate in a key'
}

function checkNesting(depth: number, entries: number, path: string): void {
  if (depth >= VALUE_DEPTH_MAX) throw new ValidationError(`at most ${VALUE_DEPTH_MAX} levels`, path)
  if (entries > VALUE_ENTRIES_MAX)
    throw new ValidationError(`at most ${VALUE_ENTRIES_MAX} entries`, path)
}

function fromMarked(mark: string, content: unknown, path: string): Value {
  if (typeof content !== 'string') throw new ValidationError('a marked value', path)
  switch (mark) {
    case '$i':
      return parseInt64(content, path)
    case '$t':
      return new Timestamp(parseInt64(content, path))
    case '$b':
      try {
        return decodeBase64Url(content)
      } catch {
        throw new ValidationError('canonical base64url', path)
      }
    case '$d':
      if (!isTypedId(content)) throw new ValidationError('a canonical typed ID', path)
      return new TypedId(content)
    default:
      throw new ValidationError('a marked value', path)
  }
}
