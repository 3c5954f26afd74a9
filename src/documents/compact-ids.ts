/**
 * IDs and index keys as the databases store them: the 26 characters of a ULID become its 16 bytes,
 * and the trailer of a key has no table, which its index names. Bytes have the order of the texts.
 */
import { assert } from '../errors/assert.ts'
import { binaryBytes, binaryString } from '../system/binary-strings.ts'

const ULID_CHARACTERS = 26
export const ULID_BYTES = 16
/** Bytes of a creation time in a key, and characters of it in a binary string. */
const TIME_BYTES = 8

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
/** Value of each character, and for all others a value beyond five bits. */
const VALUES = new Uint8Array(256).fill(0x80)
const CODES = new Uint8Array(32)
for (let value = 0; value < 32; value++) {
  CODES[value] = ALPHABET.charCodeAt(value)
  VALUES[CODES[value]!] = value
}

/** Returns "<table>_" and the 16 bytes of the ULID; null for a text that is not such an ID. */
export function compactId(id: string): Buffer | null {
  const at = id.length - ULID_CHARACTERS
  if (at < 1) return null
  const bytes = Buffer.allocUnsafe(at + ULID_BYTES)
  // A table name is ASCII: any other character takes more bytes.
  if (bytes.write(id, 0, at, 'utf8') !== at || bytes[at - 1] !== 0x5f) return null
  return writeUlid(id, at, bytes, at) ? bytes : null
}

/** Returns the bytes of an ID that is written. Asserts that it is canonical. */
export function checkedCompactId(id: string): Buffer {
  const bytes = compactId(id)
  assert(bytes !== null, 'an ID is not canonical')
  return bytes
}

/** Returns the 16 bytes of the ULID of an ID, whose prefix is known; null if it has none. */
export function ulidBytes(id: string): Buffer | null {
  const at = id.length - ULID_CHARACTERS
  const bytes = Buffer.allocUnsafe(ULID_BYTES)
  return at >= 0 && writeUlid(id, at, bytes, 0) ? bytes : null
}

/** The microseconds of the creation time that the ULID at `at` has. */
export function ulidMicros(bytes: Uint8Array, at: number): number {
  const high = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!
  const low = (bytes[at + 3]! << 16) | (bytes[at + 4]! << 8) | bytes[at + 5]!
  return (high * 2 ** 24 + low) * 1_000
}

/** Returns the table of a canonical ID. */
export function tableOf(id: string): string {
  return id.slice(0, -1 - ULID_CHARACTERS)
}

/** Returns the table of the bytes that `compactId` returns. */
export function tableOfBytes(id: Uint8Array): string {
  return binaryString(id, 0, id.length - ULID_BYTES - 1)
}

/** Converts IDs and keys of one table. */
export class CompactTable {
  readonly name: string
  /** "<table>_", which compact IDs begin with. */
  readonly prefix: string
  /** An ID as characters: to build a string of parts takes four times as long. */
  readonly #characters: Buffer

  constructor(table: string) {
    this.name = table
    this.prefix = `${table}_`
    this.#characters = Buffer.alloc(this.prefix.length + ULID_CHARACTERS)
    this.#characters.write(this.prefix, 'latin1')
  }

  /** Returns the ID whose ULID ends these bytes. */
  idAtEnd(bytes: Uint8Array, end = bytes.length): string {
    readUlid(bytes, end - ULID_BYTES, this.#characters, this.prefix.length)
    return binaryString(this.#characters)
  }

  /** Returns the bytes of the key of a document. */
  key(key: string): Buffer {
    const bytes = this.#compact(key, key.length)
    assert(bytes !== null, 'an index key does not end with an ID')
    return bytes
  }

  /** Returns the key of which `key` returned the bytes. */
  keyOf(bytes: Uint8Array, end = bytes.length): string {
    const head = binaryString(bytes, 0, end - ULID_BYTES)
    return head + this.idAtEnd(bytes, end)
  }

  /**
   * Returns the bytes of a bound of a range: a prefix of keys, which has no ID, the key of a
   * document, or its successor, which is the key with `end`.
   */
  bound(bound: string, end = '\0'): Buffer {
    const isSuccessor = bound.endsWith('\0')
    const bytes = this.#compact(bound, isSuccessor ? bound.length - 1 : bound.length)
    if (bytes === null) return binaryBytes(bound)
    return isSuccessor ? Buffer.concat([bytes, Buffer.from(end, 'latin1')]) : bytes
  }

  /** Returns null if no ID of the table ends at `end`. */
  #compact(key: string, end: number): Buffer | null {
    const at = end - ULID_CHARACTERS
    const head = at - this.prefix.length
    if (head < TIME_BYTES || !key.startsWith(this.prefix, head)) return null
    const bytes = Buffer.allocUnsafe(head + ULID_BYTES)
    if (!writeUlid(key, at, bytes, head)) return null
    bytes.write(key, 0, head, 'latin1')
    return bytes
  }
}

/** The tables whose IDs and keys were converted. */
export class CompactTables {
  readonly #tables = new Map<string, CompactTable>()

  of(table: string): CompactTable {
    let known = this.#tables.get(table)
    if (known === undefined) {
      known = new CompactTable(table)
      this.#tables.set(table, known)
    }
    return known
  }
}

/** Writes the ULID at `at` as bytes. Returns false if it is not canonical. */
function writeUlid(text: string, at: number, bytes: Uint8Array, to: number): boolean {
  const first = valueAt(text, at)
  const second = valueAt(text, at + 1)
  let all = second
  bytes[to] = (first << 5) | second
  for (let group = 0; group < 3; group++) {
    const from = at + 2 + group * 8
    const high = valuesAt(text, from)
    const low = valuesAt(text, from + 4)
    all |= high | low
    const byte = to + 1 + group * 5
    bytes[byte] = high >> 12
    bytes[byte + 1] = high >> 4
    bytes[byte + 2] = (high << 4) | (low >> 16)
    bytes[byte + 3] = low >> 8
    bytes[byte + 4] = low
  }
  return all >= 0 && first < 8 && second < 32
}

/** Returns the 20 bits of four characters; negative if the alphabet lacks one of them. */
function valuesAt(text: string, at: number): number {
  const a = valueAt(text, at)
  const b = valueAt(text, at + 1)
  const c = valueAt(text, at + 2)
  const d = valueAt(text, at + 3)
  return (a | b | c | d) >= 32 ? -1 : (a << 15) | (b << 10) | (c << 5) | d
}

function valueAt(text: string, at: number): number {
  return VALUES[text.charCodeAt(at)] ?? 0x80
}

/** Writes the ULID at `at` as characters. */
function readUlid(bytes: Uint8Array, at: number, characters: Uint8Array, to: number): void {
  characters[to] = CODES[bytes[at]! >> 5]!
  characters[to + 1] = CODES[bytes[at]! & 31]!
  for (let group = 0; group < 3; group++) {
    const from = at + 1 + group * 5
    const high = (bytes[from]! << 12) | (bytes[from + 1]! << 4) | (bytes[from + 2]! >> 4)
    const low = ((bytes[from + 2]! & 15) << 16) | (bytes[from + 3]! << 8) | bytes[from + 4]!
    writeCharacters(high, characters, to + 2 + group * 8)
    writeCharacters(low, characters, to + 6 + group * 8)
  }
}

function writeCharacters(bits: number, characters: Uint8Array, to: number): void {
  characters[to] = CODES[bits >> 15]!
  characters[to + 1] = CODES[(bits >> 10) & 31]!
  characters[to + 2] = CODES[(bits >> 5) & 31]!
  characters[to + 3] = CODES[bits & 31]!
}
