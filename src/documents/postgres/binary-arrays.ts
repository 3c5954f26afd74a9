/**
 * Encodes array parameters in PostgreSQL's binary format. In the text format both sides have to
 * escape and parse, which took a sixth of the time of a commit.
 */

/** OIDs of the element types in pg_type. */
const BOOLEAN = 16
const BYTEA = 17
const BIGINT = 20
const INTEGER = 23
const TEXT = 25

/** Header: dimensions, null flag, element type; length and lower bound of the one dimension. */
const HEAD_BYTES = 20
/** Length field before each element; -1 is null. */
const LENGTH_BYTES = 4
/** Bytes of UTF-8 per unit of UTF-16. */
const UNIT_BYTES_MAX = 3

export function booleanArray(values: readonly boolean[]): Buffer {
  const array = new ArrayWriter(BOOLEAN, values.length, values.length)
  for (const value of values) array.addBoolean(value)
  return array.bytes()
}

/** An array of 32-bit integers. */
export function integerArray(values: readonly number[]): Buffer {
  const array = new ArrayWriter(INTEGER, values.length, values.length * 4)
  for (const value of values) array.addInteger(value)
  return array.bytes()
}

/** An array of safe integers. */
export function bigintArray(values: readonly (number | null)[]): Buffer {
  const array = new ArrayWriter(BIGINT, values.length, values.length * 8)
  for (const value of values) {
    if (value === null) array.addNull()
    else array.addBigint(value)
  }
  return array.bytes()
}

export function textArray(values: readonly (string | null)[]): Buffer {
  const units = values.reduce((sum, value) => sum + (value?.length ?? 0), 0)
  const array = new ArrayWriter(TEXT, values.length, units * UNIT_BYTES_MAX)
  for (const value of values) {
    if (value === null) array.addNull()
    else array.addString(value, 'utf8')
  }
  return array.bytes()
}

/** An array of bytes. */
export function bytesArray(values: readonly Uint8Array[]): Buffer {
  const bytes = values.reduce((sum, value) => sum + value.length, 0)
  const array = new ArrayWriter(BYTEA, values.length, bytes)
  for (const value of values) array.addBytes(value)
  return array.bytes()
}

/** An array of binary strings, which have one character per byte. */
export function byteaArray(values: readonly string[]): Buffer {
  const bytes = values.reduce((sum, value) => sum + value.length, 0)
  const array = new ArrayWriter(BYTEA, values.length, bytes)
  for (const value of values) array.addString(value, 'latin1')
  return array.bytes()
}

class ArrayWriter {
  readonly #buffer: Buffer
  #offset = 0
  #hasNull = false

  /** `bytesMax` is the space for the elements, without their length fields. */
  constructor(type: number, length: number, bytesMax: number) {
    this.#buffer = Buffer.allocUnsafe(HEAD_BYTES + length * LENGTH_BYTES + bytesMax)
    for (const field of [1, 0, type, length, 1]) this.#addInt32(field)
  }

  /** Finishes the array. No element can be added afterwards. */
  bytes(): Buffer {
    if (this.#hasNull) this.#buffer.writeInt32BE(1, 4)
    return this.#buffer.subarray(0, this.#offset)
  }

  addNull(): void {
    this.#hasNull = true
    this.#addInt32(-1)
  }

  addBoolean(value: boolean): void {
    this.#addInt32(1)
    this.#buffer[this.#offset++] = value ? 1 : 0
  }

  addInteger(value: number): void {
    this.#addInt32(4)
    this.#addInt32(value)
  }

  addBigint(value: number): void {
    this.#addInt32(8)
    this.#addInt32(Math.floor(value / 2 ** 32))
    this.#addInt32(value | 0)
  }

  addString(value: string, encoding: 'utf8' | 'latin1'): void {
    const from = this.#offset + LENGTH_BYTES
    const bytes = this.#buffer.write(value, from, encoding)
    this.#addInt32(bytes)
    this.#offset += bytes
  }

  addBytes(value: Uint8Array): void {
    this.#addInt32(value.length)
    this.#buffer.set(value, this.#offset)
    this.#offset += value.length
  }

  #addInt32(value: number): void {
    this.#offset = this.#buffer.writeInt32BE(value, this.#offset)
  }
}
