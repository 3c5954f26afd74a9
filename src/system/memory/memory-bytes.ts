/** Estimates of the memory that values take in JavaScriptCore, for budgets. */
import { Timestamp, TypedId, type Value } from '../../value/values.ts'

/** A cell of the heap with its header, as small strings, bigints and objects are. */
const CELL_BYTES = 32
/** An entry of a Map with its share of the free places of the table. */
const ENTRY_BYTES = 48
const MAP_BYTES = 256

/** Returns the bytes of a flat text: one for a character, or two where any needs it. */
export function textBytes(text: string): number {
  const isOneByte = Buffer.byteLength(text) === text.length
  return CELL_BYTES + (isOneByte ? 1 : 2) * text.length
}

/** Returns the bytes of a value with all that it contains. */
export function valueBytes(value: Value): number {
  switch (typeof value) {
    case 'string':
      return textBytes(value)
    case 'bigint':
      return CELL_BYTES
    case 'object':
      return objectBytes(value)
    default:
      return 0
  }
}

function objectBytes(value: Value & (object | null)): number {
  if (value === null) return 0
  if (value instanceof TypedId) return CELL_BYTES + textBytes(value.id)
  if (value instanceof Timestamp) return 2 * CELL_BYTES
  if (value instanceof Uint8Array) return 4 * CELL_BYTES + value.byteLength
  if (value instanceof Map) {
    let bytes = MAP_BYTES
    for (const [key, item] of value) bytes += ENTRY_BYTES + textBytes(key) + valueBytes(item)
    return bytes
  }
  let bytes = 2 * CELL_BYTES
  for (const item of value as readonly Value[]) bytes += 8 + valueBytes(item)
  return bytes
}
