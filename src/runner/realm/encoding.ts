/** Plain JavaScript values to Stored JSON. */
import { VALUE_DEPTH_MAX, VALUE_ENTRIES_MAX } from '../../value/values.ts'
import { Rows } from './rows.ts'

/** JSON texts that stand for objects in place of their content; null for most objects. */
export interface Names {
  /** Looks into no object. */
  placeholder(value: object): string | null
  copy(value: object): string | null
}

/** Characters of the path in a message about a value. */
const PATH_CHARACTERS_MAX = 100
const INT64_MAX = 2n ** 63n - 1n

const { stringify } = JSON
const { isArray } = Array
const { getPrototypeOf, keys } = Object
const [objectPrototype, arrayPrototype] = [Object.prototype, Array.prototype]
const bytesPrototype = Uint8Array.prototype
// Bytes may have a method of their own by that name.
const { toBase64 } = bytesPrototype
const { apply } = Reflect
const base64Arguments = [{ alphabet: 'base64url', omitPadding: true }]

/** The value that is encoded: its name in a message, and the keys that lead to the current part. */
const path: (string | number)[] = []
let subject = ''
let names: Names | undefined

/** Returns Stored JSON text. Throws a TypeError that names the part of `what` and the fix. */
export function encode(value: unknown, what: string, named?: Names): string {
  subject = what
  names = named
  return encodeAt(value, 0)
}

function encodeAt(value: unknown, depth: number): string {
  if (typeof value !== 'object') return encodeScalar(value, depth)
  return value === null ? 'null' : encodeComposite(value, depth)
}

function encodeScalar(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      if (value.isWellFormed()) return stringify(value)
      return fail(depth, 'is a string with half a surrogate pair', 'cut at whole characters')
    case 'boolean':
      return value ? 'true' : 'false'
    case 'number':
      if (value - value !== 0) fail(depth, `is ${value}`, 'use null, or check the number before')
      return value === 0 ? '0' : `${value}`
    case 'bigint':
      if (value <= INT64_MAX && value >= -INT64_MAX - 1n) return `{"$i":"${value}"}`
      return fail(depth, 'is a bigint outside of int64', 'keep it as a string')
    case 'undefined':
      return fail(depth, 'is undefined', 'leave it out, or use null')
    default:
      return fail(depth, `is a ${typeof value}`, 'keep only data')
  }
}

function encodeComposite(value: object, depth: number): string {
  const placeholder = names?.placeholder(value)
  if (placeholder) return placeholder
  const prototype = getPrototypeOf(value)
  if (prototype === bytesPrototype) {
    return `{"$b":"${apply(toBase64, value, base64Arguments)}"}`
  }
  if (depth >= VALUE_DEPTH_MAX) {
    fail(depth, `nests over ${VALUE_DEPTH_MAX} levels`, 'does it contain itself?')
  }
  if (isArray(value) && prototype === arrayPrototype) return encodeArray(value, depth)
  if (prototype === objectPrototype || prototype === null) {
    return names?.copy(value) ?? encodeObject(value, depth)
  }
  return fail(depth, `is ${describe(value)}`, 'only plain data can be stored')
}

function encodeArray(items: readonly unknown[], depth: number): string {
  if (items.length > VALUE_ENTRIES_MAX) {
    fail(depth, `has ${items.length} items`, `at most ${VALUE_ENTRIES_MAX}`)
  }
  let text = ''
  for (let i = 0; i < items.length; i++) {
    path[depth] = i
    text += `${i === 0 ? '' : ','}${encodeAt(items[i], depth + 1)}`
  }
  return `[${text}]`
}

function encodeObject(value: object, depth: number): string {
  const names = keys(value)
  if (names.length > VALUE_ENTRIES_MAX) {
    fail(depth, `has ${names.length} keys`, `at most ${VALUE_ENTRIES_MAX}`)
  }
  let text = ''
  for (const name of names) {
    const item = (value as Record<string, unknown>)[name]
    if (item === undefined) continue
    path[depth] = name
    if (name === '__proto__' || !name.isWellFormed()) failKey(depth, name)
    const key = stringify(name[0] === '$' ? `$${name}` : name)
    text += `${text === '' ? '' : ','}${key}:${encodeAt(item, depth + 1)}`
  }
  return `{${text}}`
}

function fail(depth: number, problem: string, fix: string): never {
  let text = subject
  for (let i = 0; i < depth && text.length < PATH_CHARACTERS_MAX; i++) {
    const key = path[i]!
    text += typeof key === 'number' ? `[${key}]` : `.${key}`
  }
  const shown =
    text.length < PATH_CHARACTERS_MAX ? text : `${text.slice(0, PATH_CHARACTERS_MAX)}...`
  throw new TypeError(`${shown} ${problem}: ${fix}`)
}

function failKey(depth: number, key: string): never {
  if (key === '__proto__') fail(depth, 'has the key "__proto__"', 'rename it')
  fail(depth, 'has a key with half a surrogate pair', 'cut at whole characters')
}

/** Describes an object that cannot be stored, and what to store instead. */
function describe(value: object): string {
  if (value instanceof Rows) {
    return 'a list that was not read (end it with .collect(), .take(n) or .paginate())'
  }
  if (value instanceof Date) return 'a Date (use BigInt(date.getTime()) * 1000n)'
  if (value instanceof Map) return 'a Map (use Object.fromEntries(map))'
  if (value instanceof Set) return 'a Set (use [...set])'
  if (value instanceof Promise) return 'a promise (write "await" in front of it)'
  if (value instanceof ArrayBuffer) return 'an ArrayBuffer (use new Uint8Array(buffer))'
  if (ArrayBuffer.isView(value)) return 'a view (use a Uint8Array)'
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== '' ? `an instance of ${name}` : 'not a plain object'
}
