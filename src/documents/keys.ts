/** Index keys of documents and the intervals of keys that an index read asks for. */
import { Fault } from '../errors/fault.ts'
import type { Timestamp, Value, ValueObject } from '../value/values.ts'
import { encodeInt64, encodeTrailer, encodeValue, KEY_BYTES_MAX, KEY_END } from './key-encoding.ts'
import type { IndexDefinition } from './store.ts'

/** Keys from `lower` up to but without `upper`. */
export interface KeyInterval {
  readonly lower: string
  readonly upper: string
}

export interface IndexedDocument {
  readonly id: string
  readonly createdAtMicros: bigint
  readonly fields: ValueObject
}

export interface Bound {
  /** Undefined is an optional field that is absent; it comes before null. */
  readonly value: Value | undefined
  readonly inclusive: boolean
}

export interface IndexBounds {
  /** Of the first fields of the index, in order. */
  readonly equals: readonly (Value | undefined)[]
  /** Of the field after those, or of `_createdAt` (a timestamp) after all fields. */
  readonly lower?: Bound
  readonly upper?: Bound
}

/** LIMIT_EXCEEDED where the key would be longer than KEY_BYTES_MAX. */
export function encodeKey(values: readonly (Value | undefined)[]): string {
  let key = ''
  for (const value of values) key += encodeValue(value)
  return bounded(key, null)
}

/** The fields, the creation time, the ID. LIMIT_EXCEEDED as `encodeKey`. */
export function indexKey(definition: IndexDefinition, document: IndexedDocument): string {
  return indexKeyOf(definition, document.fields, encodeTrailer(document))
}

/** The same, for whoever makes the keys of one document in many indexes. */
export function indexKeyOf(
  definition: IndexDefinition,
  fields: ValueObject,
  trailer: string,
): string {
  let key = ''
  for (const name of definition.fields) key += encodeValue(fields.get(name))
  return bounded(key + trailer, definition)
}

/** `index` is the one that the key is of, if that is known: perhaps of another Release alone. */
function bounded(key: string, index: IndexDefinition | null): string {
  if (key.length <= KEY_BYTES_MAX) return key
  const of = index === null ? '' : ` of ${index.table} by ${index.fields.join(', ')}`
  throw new Fault('LIMIT_EXCEEDED', {
    detail: `index key${of}: ${key.length} bytes (at most ${KEY_BYTES_MAX})`,
  })
}

/** The smallest text that is greater than every key with this beginning. */
export function prefixEnd(prefix: string): string {
  let length = prefix.length
  while (length > 0 && prefix.charCodeAt(length - 1) === 255) length--
  if (length === 0) return KEY_END
  return prefix.slice(0, length - 1) + String.fromCharCode(prefix.charCodeAt(length - 1) + 1)
}

/** The smallest text that is greater than this key. */
export function keySuccessor(key: string): string {
  return `${key}\0`
}

/**
 * The interval of all keys within the bounds; empty (`lower >= upper`) where no key can be. The
 * caller has checked that the values belong to fields of the index and their types to the schema.
 */
export function keyInterval(definition: IndexDefinition, bounds: IndexBounds): KeyInterval {
  const prefix = encodeKey(bounds.equals)
  const last = bounds.equals.length === definition.fields.length
  const encode = (bound: Bound): string =>
    bounded(
      prefix + (last ? encodeInt64((bound.value as Timestamp).micros) : encodeValue(bound.value)),
      definition,
    )
  let lower = prefix
  if (bounds.lower !== undefined) {
    lower = encode(bounds.lower)
    if (!bounds.lower.inclusive) lower = prefixEnd(lower)
  }
  let upper = prefixEnd(prefix)
  if (bounds.upper !== undefined) {
    upper = encode(bounds.upper)
    if (bounds.upper.inclusive) upper = prefixEnd(upper)
  }
  return { lower, upper }
}
