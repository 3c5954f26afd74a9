/**
 * Stored JSON to plain JavaScript values and back, inside a Workspace's realm. Like every `make*`
 * of this folder it is evaluated there from its own text, so it uses nothing but its parameters
 * and the globals of that realm.
 */
import type { makeRows } from './ranges.ts'

export interface Codec {
  /** Turns what JSON.parse made into values, in place. */
  decode(json: unknown): unknown
  /** Throws a TypeError that names the place in `what` and the mend. */
  encode(value: unknown, what: string, nameOf?: NameOf): string
}

/** JSON text that stands for an object in place of its content; null for most. */
export type NameOf = (value: object) => string | null

export function makeDecode(): Codec['decode'] {
  const { keys } = Object
  const { isArray } = Array

  function decode(json: unknown): unknown {
    if (typeof json !== 'object' || json === null) return json
    if (isArray(json)) {
      for (let i = 0; i < json.length; i++) {
        const item: unknown = json[i]
        if (typeof item === 'object' && item !== null) json[i] = decode(item)
      }
      return json
    }
    const object = json as Record<string, unknown>
    const names = keys(object)
    if (names.length === 1 && names[0]![0] === '$' && names[0]![1] !== '$') {
      return marked(names[0]!, object[names[0]!] as string)
    }
    let escaped = false
    for (const name of names) {
      const item = object[name]
      if (typeof item === 'object' && item !== null) object[name] = decode(item)
      if (name[0] === '$') escaped = true
    }
    return escaped ? unescaped(object, names) : object
  }

  function marked(mark: string, text: string): unknown {
    switch (mark) {
      case '$i':
      case '$t':
        return BigInt(text)
      case '$b':
        return Uint8Array.fromBase64(text, { alphabet: 'base64url' })
      default:
        return text
    }
  }

  function unescaped(object: Record<string, unknown>, names: readonly string[]) {
    const result: Record<string, unknown> = {}
    for (const name of names) result[name[0] === '$' ? name.slice(1) : name] = object[name]
    return result
  }

  return decode
}

/** The place of the value under work, for the message of a failure. */
export interface Trail {
  begin(subject: string): void
  /** The key that leads from level `depth` to the next. */
  step(depth: number, key: string | number): void
  fail(depth: number, what: string, mend: string): never
  /** For a key that no object may have. */
  failKey(depth: number, key: string): never
}

export function makeTrail(charactersMax: number): Trail {
  const keys: (string | number)[] = []
  let subject = ''

  function fail(depth: number, what: string, mend: string): never {
    let path = subject
    for (let i = 0; i < depth && path.length < charactersMax; i++) {
      const key = keys[i]!
      path += typeof key === 'number' ? `[${key}]` : `.${key}`
    }
    const shown = path.length < charactersMax ? path : `${path.slice(0, charactersMax)}...`
    throw new TypeError(`${shown} ${what}: ${mend}`)
  }

  return {
    begin(what) {
      subject = what
    },
    step(depth, key) {
      keys[depth] = key
    },
    fail,
    failKey: (depth, key) =>
      key === '__proto__'
        ? fail(depth, 'has the key "__proto__"', 'rename it')
        : fail(depth, 'has a key with half a surrogate pair', 'cut at whole characters'),
  }
}

/** The texts of values that hold no others. */
export function makeEncodePlain({ fail }: Trail) {
  const { stringify } = JSON
  const int64Max = 2n ** 63n - 1n

  return (value: unknown, depth: number): string => {
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
        if (value <= int64Max && value >= -int64Max - 1n) return `{"$i":"${value}"}`
        return fail(depth, 'is a bigint outside of int64', 'keep it as a string')
      case 'undefined':
        return fail(depth, 'is undefined', 'leave it out, or use null')
      default:
        return fail(depth, `is a ${typeof value}`, 'keep only data')
    }
  }
}

export function makeEncode(
  depthMax: number,
  entriesMax: number,
  trail: Trail,
  encodePlain: ReturnType<typeof makeEncodePlain>,
  describe: (value: object) => string,
): Codec['encode'] {
  const { stringify } = JSON
  const { isArray } = Array
  const { getPrototypeOf, keys } = Object
  const [objectPrototype, arrayPrototype] = [Object.prototype, Array.prototype]
  const bytesPrototype = Uint8Array.prototype
  // Bytes may have a method of their own by that name.
  const { toBase64 } = bytesPrototype
  const { apply } = Reflect
  const asBase64 = [{ alphabet: 'base64url', omitPadding: true }]
  const { fail, failKey, step } = trail
  /** Of the value under work. */
  let nameIt: NameOf | undefined

  function encode(value: unknown, depth: number): string {
    if (typeof value !== 'object') return encodePlain(value, depth)
    return value === null ? 'null' : composite(value, depth)
  }

  function composite(value: object, depth: number): string {
    const prototype = getPrototypeOf(value)
    if (prototype === bytesPrototype) {
      return `{"$b":"${apply(toBase64, value, asBase64)}"}`
    }
    if (depth >= depthMax) fail(depth, `nests over ${depthMax} levels`, 'does it contain itself?')
    if (isArray(value) && prototype === arrayPrototype) return array(value, depth)
    if (prototype === objectPrototype || prototype === null) {
      return nameIt?.(value) ?? object(value, depth)
    }
    return fail(depth, `is ${describe(value)}`, 'only plain data can be stored')
  }

  function array(items: readonly unknown[], depth: number): string {
    if (items.length > entriesMax) fail(depth, `has ${items.length} items`, `at most ${entriesMax}`)
    let text = ''
    for (let i = 0; i < items.length; i++) {
      step(depth, i)
      text += `${i === 0 ? '' : ','}${encode(items[i], depth + 1)}`
    }
    return `[${text}]`
  }

  function object(value: object, depth: number): string {
    const names = keys(value)
    if (names.length > entriesMax) fail(depth, `has ${names.length} keys`, `at most ${entriesMax}`)
    let text = ''
    for (const name of names) {
      const item = (value as Record<string, unknown>)[name]
      if (item === undefined) continue
      step(depth, name)
      if (name === '__proto__' || !name.isWellFormed()) failKey(depth, name)
      const key = stringify(name[0] === '$' ? `$${name}` : name)
      text += `${text === '' ? '' : ','}${key}:${encode(item, depth + 1)}`
    }
    return `{${text}}`
  }

  return (value, what, nameOf) => {
    trail.begin(what)
    nameIt = nameOf
    return encode(value, 0)
  }
}

/** What a value that cannot be stored is, and what to store instead. */
export function makeDescribe(Rows: ReturnType<typeof makeRows>): (value: object) => string {
  return (value) => {
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
}
