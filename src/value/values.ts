/**
 * The values that Functions, documents and the wire share (contract/application.md, Canonical
 * tagged values). Each canonical type has one type in memory: int64 is bigint, float64 number,
 * bytes Uint8Array, object a Map in any order. Timestamps and typed IDs have classes that
 * distinguish them from int64 and string.
 */

export class Timestamp {
  /** Microseconds since the Unix epoch, within int64. */
  readonly micros: bigint

  constructor(micros: bigint) {
    this.micros = micros
  }
}

export class TypedId {
  /** `<kind>_` + 26 characters. */
  readonly id: string

  constructor(id: string) {
    this.id = id
  }
}

export type ValueObject = ReadonlyMap<string, Value>
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Timestamp
  | TypedId
  | readonly Value[]
  | ValueObject

export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n
/**
 * Nesting of arrays and objects in one value (contract/application.md, Limits).
 * @limit Calls: levels of nesting of a value
 */
export const VALUE_DEPTH_MAX = 64
/**
 * Entries of one array or object (contract/application.md, Limits).
 * @limit Calls: entries of one array or object
 */
export const VALUE_ENTRIES_MAX = 10_000

export type ValueType =
  | 'null'
  | 'boolean'
  | 'int64'
  | 'float64'
  | 'string'
  | 'bytes'
  | 'timestamp'
  | 'typed_id'
  | 'array'
  | 'object'

export function typeOf(value: Value): ValueType {
  switch (typeof value) {
    case 'boolean':
      return 'boolean'
    case 'bigint':
      return 'int64'
    case 'number':
      return 'float64'
    case 'string':
      return 'string'
    default:
      if (value === null) return 'null'
      if (value instanceof Uint8Array) return 'bytes'
      if (value instanceof Timestamp) return 'timestamp'
      if (value instanceof TypedId) return 'typed_id'
      return value instanceof Map ? 'object' : 'array'
  }
}

/**
 * Compares in unsigned UTF-8 byte order, which equals UTF-16 order unless a surrogate meets
 * U+E000-U+FFFF.
 */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x === y) continue
    const xHigh = x >= 0xd800 && x <= 0xdfff
    const yHigh = y >= 0xd800 && y <= 0xdfff
    if (xHigh === yHigh) return x - y
    return xHigh ? 1 : -1
  }
  return a.length - b.length
}

/** Returns the entries in canonical order. Most objects are in this order already. */
export function sortedEntries(object: ValueObject): Iterable<readonly [string, Value]> {
  let previous: string | null = null
  for (const key of object.keys()) {
    if (previous !== null && compareUtf8(previous, key) > 0) {
      return [...object.entries()].sort((a, b) => compareUtf8(a[0], b[0]))
    }
    previous = key
  }
  return object
}

export function valueEquals(a: Value, b: Value): boolean {
  const type = typeOf(a)
  if (type !== typeOf(b)) return false
  switch (type) {
    case 'bytes':
      return bytesEqual(a as Uint8Array, b as Uint8Array)
    case 'timestamp':
      return (a as Timestamp).micros === (b as Timestamp).micros
    case 'typed_id':
      return (a as TypedId).id === (b as TypedId).id
    case 'array': {
      const [x, y] = [a as readonly Value[], b as readonly Value[]]
      return x.length === y.length && x.every((item, i) => valueEquals(item, y[i]!))
    }
    case 'object': {
      const [x, y] = [a as ValueObject, b as ValueObject]
      if (x.size !== y.size) return false
      for (const [key, item] of x) {
        const other = y.get(key)
        if (other === undefined || !valueEquals(item, other)) return false
      }
      return true
    }
    default:
      return a === b
  }
}

function bytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
