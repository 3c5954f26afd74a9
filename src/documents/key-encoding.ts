/**
 * Encodes values as bytes whose order is the order of the values. In memory a key is a binary
 * string with one character per byte, so that `<` is byte order and a Map can hold it; buffers are
 * only passed to databases. No encoded value is a prefix of another one, so that fields can be
 * concatenated.
 */
import { binaryString } from '../system/binary-strings.ts'
import { sortedEntries, Timestamp, TypedId, type Value, type ValueObject } from '../value/values.ts'

/** Greater than every key: type tags and creation times begin with a smaller byte. */
export const KEY_END = '\xff'

/**
 * Bound by PostgreSQL, whose index rows have at most 2,704 bytes, a third of a page.
 * @limit Calls: one index key, encoded
 */
export const KEY_BYTES_MAX = 2_560

/** Type tags, one byte before each value. END closes arrays and objects and is below all tags. */
const END = '\x01'
const ABSENT = '\x02'
const NULL = '\x03'
const FALSE = '\x04'
const TRUE = '\x05'
const INT64 = '\x06'
const FLOAT64 = '\x07'
const STRING = '\x08'
const BYTES = '\x09'
const TIMESTAMP = '\x0a'
const TYPED_ID = '\x0b'
const ARRAY = '\x0c'
const OBJECT = '\x0d'

const PLAIN = /^[\x01-\x7f]*$/
const view = new DataView(new ArrayBuffer(8))

/** Encodes one field. Undefined is an optional field that the document does not have. */
export function encodeValue(value: Value | undefined): string {
  switch (typeof value) {
    case 'undefined':
      return ABSENT
    case 'boolean':
      return value ? TRUE : FALSE
    case 'bigint':
      return INT64 + encodeInt64(value)
    case 'number':
      return FLOAT64 + encodeFloat64(value)
    case 'string':
      return STRING + encodeText(value)
    default:
      return encodeComposite(value)
  }
}

function encodeComposite(value: Exclude<Value, boolean | bigint | number | string>): string {
  if (value === null) return NULL
  if (value instanceof TypedId) return TYPED_ID + encodeText(value.id)
  if (value instanceof Timestamp) return TIMESTAMP + encodeInt64(value.micros)
  if (value instanceof Uint8Array) return BYTES + terminated(binaryString(value))
  if (value instanceof Map) {
    let text = OBJECT
    for (const [key, item] of sortedEntries(value as ValueObject)) {
      text += STRING + encodeText(key) + encodeValue(item)
    }
    return text + END
  }
  let text = ARRAY
  for (const item of value as readonly Value[]) text += encodeValue(item)
  return text + END
}

/** Encodes eight bytes, big-endian, with the sign bit flipped: negative numbers come first. */
export function encodeInt64(value: bigint): string {
  view.setBigInt64(0, value)
  view.setUint8(0, view.getUint8(0) ^ 0x80)
  return viewText()
}

/** Encodes IEEE bits, which order positive numbers. All bits of negative ones are inverted. */
function encodeFloat64(value: number): string {
  view.setFloat64(0, value === 0 ? 0 : value)
  const bits = view.getBigUint64(0)
  view.setBigUint64(0, bits >> 63n === 0n ? bits | (1n << 63n) : ~bits)
  return viewText()
}

function viewText(): string {
  const high = view.getUint32(0)
  const low = view.getUint32(4)
  return String.fromCharCode(
    high >>> 24,
    (high >>> 16) & 255,
    (high >>> 8) & 255,
    high & 255,
    low >>> 24,
    (low >>> 16) & 255,
    (low >>> 8) & 255,
    low & 255,
  )
}

function encodeText(text: string): string {
  return PLAIN.test(text) ? `${text}\0\x01` : terminated(binaryString(Buffer.from(text, 'utf8')))
}

/** Escapes 0x00 as 0x00 0xFF, above the terminator 0x00 0x01: a text sorts before longer ones. */
function terminated(binary: string): string {
  return `${binary.includes('\0') ? binary.replaceAll('\0', '\0\xff') : binary}\0\x01`
}

/** The end of every index key: the creation time, and the ID, which makes the key unique. */
export function encodeTrailer(document: {
  readonly id: string
  readonly createdAtMicros: bigint
}): string {
  return encodeInt64(document.createdAtMicros) + document.id
}
