/** Descriptions of values that a validator rejected, for messages to authors. */
import { Timestamp, TypedId, type Value } from '../../value/values.ts'

const PART = /\.([\p{L}\p{N}_$-]+)|\[(\d+)\]/gu

/**
 * Returns the kind and the size of the part of a value that the path of a ValidationError names,
 * such as "a string of 3 characters", and never its content. Null where the path hides a key. The
 * path begins with the name of the whole value.
 */
export function describeAt(value: Value, path: string): string | null {
  const parts = path.replace(/^[^.[]*/, '')
  let at: Value | undefined = value
  let end = 0
  for (const { 0: text, 1: key, 2: index, index: start } of parts.matchAll(PART)) {
    if (start !== end) return null
    end += text.length
    at = key === undefined ? itemOf(at, Number(index)) : entryOf(at, key)
  }
  if (end !== parts.length) return null
  return at === undefined ? 'absent' : describe(at)
}

function entryOf(value: Value | undefined, key: string): Value | undefined {
  return value instanceof Map ? value.get(key) : undefined
}

function itemOf(value: Value | undefined, index: number): Value | undefined {
  return Array.isArray(value) ? value[index] : undefined
}

function describe(value: Value): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `an array of ${counted(value.length, 'item')}`
  if (value instanceof Map) return `an object of ${counted(value.size, 'field')}`
  if (value instanceof Uint8Array) return `bytes, ${value.length} of them`
  if (value instanceof Timestamp) return 'a timestamp (a bigint)'
  if (value instanceof TypedId) return `an ID of ${value.id.slice(0, value.id.indexOf('_'))}`
  switch (typeof value) {
    case 'string':
      return `a string of ${counted([...value].length, 'character')}`
    case 'number':
      return 'a float64 (a number)'
    case 'bigint':
      return 'an int64 (a bigint)'
    default:
      return 'a boolean'
  }
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
