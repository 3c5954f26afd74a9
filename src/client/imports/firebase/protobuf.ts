/** Reads messages of Protocol Buffers without their schema, with the groups of version 1. */
import { ValidationError } from '../../../value/validation-error.ts'

/** A varint is a bigint within uint64; a group is a message; other fields are their bytes. */
export type ProtobufValue = bigint | Uint8Array | Message
/** The values of each field by its number, in their order. */
export type Message = ReadonlyMap<number, readonly ProtobufValue[]>

const GROUP_DEPTH_MAX = 8
const FIELD_NUMBER_MAX = 2 ** 29 - 1
const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const GROUP = 3
const GROUP_END = 4
const FIXED32 = 5

/** Parses a message. Throws ValidationError. */
export function parseMessage(bytes: Uint8Array): Message {
  const reader = new Reader(bytes)
  return reader.message(null, 0)
}

class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** `group` is the number of the group whose end is also that of the message. */
  message(group: number | null, depth: number): Message {
    if (depth > GROUP_DEPTH_MAX) throw new ValidationError('fewer groups')
    const fields = new Map<number, ProtobufValue[]>()
    while (this.#at < this.#bytes.length) {
      const tag = Number(this.#varint())
      const number = Math.floor(tag / 8)
      if (number === 0 || number > FIELD_NUMBER_MAX) throw invalid()
      if (tag % 8 === GROUP_END) {
        if (number !== group) throw invalid()
        return fields
      }
      const value = this.#value(tag % 8, number, depth)
      const found = fields.get(number)
      if (found === undefined) fields.set(number, [value])
      else found.push(value)
    }
    if (group !== null) throw invalid()
    return fields
  }

  #value(type: number, number: number, depth: number): ProtobufValue {
    switch (type) {
      case VARINT:
        return this.#varint()
      case FIXED64:
        return this.#take(8)
      case FIXED32:
        return this.#take(4)
      case BYTES:
        return this.#take(Number(this.#varint()))
      case GROUP:
        return this.message(number, depth + 1)
      default:
        throw invalid()
    }
  }

  #varint(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#take(1)[0]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw invalid()
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length
    if (end > this.#bytes.length) throw invalid()
    const piece = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return piece
  }
}

function invalid(): ValidationError {
  return new ValidationError('a whole message of Protocol Buffers')
}
