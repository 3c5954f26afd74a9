/** Index keys of documents, and the key intervals of index reads. */
import { assert } from '../errors/assert.ts'
import { Fault } from '../errors/fault.ts'
import { decodeStored } from '../value/stored.ts'
import type { Timestamp, Value, ValueObject } from '../value/values.ts'
import { encodeInt64, encodeTrailer, encodeValue, KEY_BYTES_MAX, KEY_END } from './key-encoding.ts'
import type { IndexDefinition } from './store.ts'

/** Keys from `lower` (inclusive) to `upper` (exclusive). */
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
  /** Values of the first fields of the index, in order. */
  readonly equals: readonly (Value | undefined)[]
  /** Bound of the next field, or of `_createdAt` (a timestamp) after all fields. */
  readonly lower?: Bound
  readonly upper?: Bound
}

/** Encodes values as a key. Throws LIMIT_EXCEEDED where it is longer than KEY_BYTES_MAX. */
export function encodeKey(values: readonly (Value | undefined)[]): string {
  let key = ''
  for (const value of values) key += encodeValue(value)
  return checkedKey(key, null)
}

/** The decoded defaults of index definitions. */
const decodedDefaults = new WeakMap<object, readonly (Value | undefined)[]>()

/**
 * Returns the values of a document by which an index orders it: its fields, and the default of each
 * absent one; undefined for an absent field without a default.
 */
export function indexedValues(
  { fields, defaults }: IndexDefinition,
  document: ValueObject,
): (Value | undefined)[] {
  return fields.map((name, i) => {
    const value = document.get(name)
    return value === undefined && defaults !== undefined ? defaultsOf(defaults)[i] : value
  })
}

function defaultsOf(texts: readonly (string | null)[]): readonly (Value | undefined)[] {
  let decoded = decodedDefaults.get(texts)
  if (decoded === undefined) {
    decoded = texts.map((text) => (text === null ? undefined : decodeStored(text)))
    decodedDefaults.set(texts, decoded)
  }
  return decoded
}

/** The part of a key that the fields of a document make, of any length. */
export function fieldsKey(definition: IndexDefinition, document: ValueObject): string {
  let key = ''
  for (const value of indexedValues(definition, document)) key += encodeValue(value)
  return key
}

/** The key of a document: fields, creation time, ID. Throws like `encodeKey`. */
export function indexKey(definition: IndexDefinition, document: IndexedDocument): string {
  return indexKeyOf(definition, document.fields, encodeTrailer(document))
}

/** Like `indexKey`, for callers that encode the trailer once for many indexes. */
export function indexKeyOf(
  definition: IndexDefinition,
  fields: ValueObject,
  trailer: string,
): string {
  return checkedKey(fieldsKey(definition, fields) + trailer, definition)
}

/** The key of a stored document, a binary string; null if it is longer than KEY_BYTES_MAX. */
export function storedKey(
  index: IndexDefinition,
  document: { readonly id: string; readonly createdAtMicros: bigint; readonly text: string },
): string | null {
  const fields = decodeStored(document.text)
  assert(fields instanceof Map, 'a document is not an object')
  const key = fieldsKey(index, fields as ValueObject) + encodeTrailer(document)
  return key.length > KEY_BYTES_MAX ? null : key
}

/** Returns the key if it is not too long. `index` is named in the fault; null if unknown. */
function checkedKey(key: string, index: IndexDefinition | null): string {
  if (key.length <= KEY_BYTES_MAX) return key
  const of = index === null ? '' : ` of ${index.table} by ${index.fields.join(', ')}`
  throw new Fault('LIMIT_EXCEEDED', {
    detail: `index key${of}: ${key.length} bytes (at most ${KEY_BYTES_MAX})`,
  })
}

/** The smallest string that is greater than every key with this prefix. */
export function prefixEnd(prefix: string): string {
  let length = prefix.length
  while (length > 0 && prefix.charCodeAt(length - 1) === 255) length--
  if (length === 0) return KEY_END
  return prefix.slice(0, length - 1) + String.fromCharCode(prefix.charCodeAt(length - 1) + 1)
}

/** The smallest string that is greater than this key. */
export function keySuccessor(key: string): string {
  return `${key}\0`
}

/**
 * The interval of all keys within the bounds; empty (`lower >= upper`) where no key can match. The
 * caller has checked that the values fit the fields of the index and the schema.
 */
export function keyInterval(definition: IndexDefinition, bounds: IndexBounds): KeyInterval {
  const prefix = encodeKey(bounds.equals)
  const isAfterFields = bounds.equals.length === definition.fields.length
  const encode = (bound: Bound): string =>
    checkedKey(
      prefix +
        (isAfterFields ? encodeInt64((bound.value as Timestamp).micros) : encodeValue(bound.value)),
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
