/** `structuredClone`: copies data only, with its cycles. */

type View = new (buffer: ArrayBuffer, offset: number, length: number) => object

const { isView } = ArrayBuffer
const { getPrototypeOf, keys } = Object
const ERRORS = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]

export function structuredClone(value: unknown): unknown {
  return clone(value, new Map())
}

function clone(value: unknown, seen: Map<object, object>): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') {
    throw new TypeError(`structuredClone: a ${typeof value} cannot be cloned: leave it out`)
  }
  if (typeof value !== 'object' || value === null) return value
  const known = seen.get(value)
  if (known !== undefined) return known
  const copy = emptyCopy(value)
  seen.set(value, copy)
  fill(value, copy, seen)
  return copy
}

function emptyCopy(value: object): object {
  if (Array.isArray(value)) return new Array(value.length)
  if (value instanceof Date) return new Date(value.getTime())
  if (value instanceof RegExp) return new RegExp(value.source, value.flags)
  if (value instanceof Map) return new Map()
  if (value instanceof Set) return new Set()
  if (value instanceof ArrayBuffer) return value.slice(0)
  if (isView(value)) {
    const buffer = value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength)
    const length = 'length' in value ? (value.length as number) : value.byteLength
    return new (value.constructor as View)(buffer as ArrayBuffer, 0, length)
  }
  if (value instanceof Error) {
    const kind = ERRORS.find((known) => value instanceof known) ?? Error
    return new kind(value.message)
  }
  const prototype = getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null || keys(value).length > 0) return {}
  throw new TypeError('structuredClone: only data can be cloned: copy its fields into an object')
}

function fill(value: object, copy: object, seen: Map<object, object>): void {
  if (value instanceof Map) {
    for (const [key, item] of value) (copy as typeof value).set(clone(key, seen), clone(item, seen))
  } else if (value instanceof Set) {
    for (const item of value) (copy as typeof value).add(clone(item, seen))
  } else if (value instanceof Error) {
    const cloned = copy as Error
    if (value.stack !== undefined) cloned.stack = value.stack
    if ('cause' in value) cloned.cause = clone(value.cause, seen)
  } else if (!isView(value) && !(value instanceof ArrayBuffer) && !(value instanceof Date)) {
    for (const key of keys(value)) {
      const item = clone((value as Record<string, unknown>)[key], seen)
      ;(copy as Record<string, unknown>)[key] = item
    }
  }
}
