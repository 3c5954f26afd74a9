/** The JSON of a delivery, derived from the body when code runs, so that one copy is stored. */
import { encodeStored } from '../stored.ts'
import { VALUE_DEPTH_MAX, VALUE_ENTRIES_MAX, type Value, type ValueObject } from '../values.ts'

const JSON_TYPE = /^application\/(?:[A-Za-z0-9!#$&^_.+-]+\+)?json\s*(?:;|$)/i
/**
 * Characters of stored JSON. Numbers such as 1e20 are written out, so that the value of a body may
 * be longer than the body.
 */
const JSON_CHARACTERS_MAX = 1024 * 1024
/** Bytes of a body whose value is never longer than that: a number grows by 6 at most. */
const CERTAIN_BYTES = JSON_CHARACTERS_MAX / 6
/** Levels of the arguments around the value. */
const OUTER_LEVELS = 2

/**
 * Returns the arguments of a handler from those that are stored: with `json` in the delivery, where
 * the body is JSON and can be a value.
 */
export function withJson(stored: ValueObject): ValueObject {
  const delivery = stored.get('delivery') as ValueObject
  const json = jsonOf(delivery)
  return json === undefined
    ? stored
    : new Map([['delivery', new Map([...delivery, ['json', json]])]])
}

function jsonOf(delivery: ValueObject): Value | undefined {
  const headers = delivery.get('headers') as ValueObject
  const body = delivery.get('body') as Uint8Array
  if (!JSON_TYPE.test((headers.get('content-type') as string | undefined) ?? '')) return undefined
  let value: Value | undefined
  try {
    value = toValue(
      JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)),
      OUTER_LEVELS,
    )
  } catch {
    return undefined
  }
  if (value === undefined || body.length <= CERTAIN_BYTES) return value
  return encodeStored(value).length <= JSON_CHARACTERS_MAX ? value : undefined
}

/** Returns undefined for JSON that is not a value. Numbers are float64, as in JavaScript. */
function toValue(json: unknown, depth: number): Value | undefined {
  switch (typeof json) {
    case 'boolean':
      return json
    case 'number':
      // JSON writes an infinite number as 1e999.
      return Number.isFinite(json) ? json : undefined
    case 'string':
      return json.isWellFormed() ? json : undefined
    default:
      return json === null ? null : compositeOf(json as object, depth + 1)
  }
}

function compositeOf(json: object, depth: number): Value | undefined {
  if (depth > VALUE_DEPTH_MAX) return undefined
  const entries = Object.entries(json)
  if (entries.length > VALUE_ENTRIES_MAX) return undefined
  const values: [string, Value][] = []
  for (const [key, item] of entries) {
    const value = toValue(item, depth)
    // An object with such a key has another prototype where it is decoded carelessly.
    if (value === undefined || key === '__proto__' || !key.isWellFormed()) return undefined
    values.push([key, value])
  }
  return Array.isArray(json) ? values.map(([, value]) => value) : new Map(values)
}
