/**
 * Decodes tagged JSON to plain JavaScript values (contract/application.md, Canonical tagged
 * values).
 */
import { decodeBase64Url } from '../value/base64url.ts'
import { FLOAT64, isTypedId, parseInt64 } from '../value/tagged.ts'
import { compareUtf8, VALUE_DEPTH_MAX, VALUE_ENTRIES_MAX } from '../value/values.ts'
import { responseInvalid } from './errors.ts'

const view = new DataView(new ArrayBuffer(8))

/** Returns whether `value` is an object with all of these fields; a newer server may send more. */
export function hasFields(
  value: unknown,
  ...fields: readonly string[]
): value is { readonly [name: string]: unknown } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    fields.every((field) => Object.hasOwn(value, field))
  )
}

/** Returns whether `value` is an object that has all of these fields and no others. */
function hasExactly(
  value: unknown,
  ...fields: readonly string[]
): value is { readonly [name: string]: unknown } {
  return hasFields(value, ...fields) && Object.keys(value).length === fields.length
}

function notCanonical(): Error {
  return responseInvalid('a value that is not canonical')
}

/**
 * Decodes an int64 and a timestamp to bigint, bytes to Uint8Array, an ID to string. Throws
 * CLIENT_RESPONSE_INVALID for any form but the canonical one.
 */
export function decodeResult(json: unknown, depth = 0): unknown {
  if (hasExactly(json, 'type')) {
    if (json.type === 'null') return null
    throw notCanonical()
  }
  if (!hasExactly(json, 'type', 'value')) throw notCanonical()
  const { type, value } = json
  if (type === 'boolean' && typeof value === 'boolean') return value
  if (typeof value === 'string') return decodeScalar(type, value)
  if (!Array.isArray(value) || depth >= VALUE_DEPTH_MAX || value.length > VALUE_ENTRIES_MAX) {
    throw notCanonical()
  }
  if (type === 'array') return value.map((item) => decodeResult(item, depth + 1))
  if (type === 'object') return decodeObject(value, depth)
  throw notCanonical()
}

function decodeScalar(type: unknown, text: string): unknown {
  try {
    switch (type) {
      case 'string':
        return text
      case 'int64':
      case 'timestamp':
        return parseInt64(text)
      case 'bytes':
        return decodeBase64Url(text)
      case 'typed_id':
        if (isTypedId(text)) return text
        break
      case 'float64':
        if (FLOAT64.test(text)) return decodeFloat(text)
    }
  } catch {
    // The parsers throw other errors.
  }
  throw notCanonical()
}

function decodeFloat(text: string): number {
  view.setUint32(0, Number.parseInt(text.slice(0, 8), 16))
  view.setUint32(4, Number.parseInt(text.slice(8), 16))
  const value = view.getFloat64(0)
  if (!Number.isFinite(value) || Object.is(value, -0)) throw notCanonical()
  return value
}

function decodeObject(entries: readonly unknown[], depth: number): object {
  const object: Record<string, unknown> = {}
  let previous: string | null = null
  for (const entry of entries) {
    if (!hasExactly(entry, 'key', 'value')) throw notCanonical()
    const { key, value } = entry
    if (typeof key !== 'string' || key === '__proto__') throw notCanonical()
    if (previous !== null && compareUtf8(previous, key) >= 0) throw notCanonical()
    previous = key
    object[key] = decodeResult(value, depth + 1)
  }
  return object
}
