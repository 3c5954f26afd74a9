/**
 * Checksums and digests of streams, as S3 clients announce them. CRC-32C and CRC-64/NVME have no
 * implementation in the runtime; they are computed eight bytes at a time ("slicing-by-8").
 */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

export type ChecksumAlgorithm = 'crc32' | 'crc32c' | 'crc64nvme' | 'md5' | 'sha1' | 'sha256'

export interface ChecksumStream {
  update(bytes: Uint8Array): unknown
  /** Returns the checksum in network byte order. Call it once, at the end. */
  digest(): Uint8Array
}

export function checksumStream(algorithm: ChecksumAlgorithm): ChecksumStream {
  switch (algorithm) {
    case 'crc32':
      return new Crc32()
    case 'crc32c':
      return new SlicedCrc32(CRC32C)
    case 'crc64nvme':
      return new SlicedCrc64(CRC64_NVME)
    default:
      return createHash(algorithm)
  }
}

class Crc32 implements ChecksumStream {
  #value = 0

  update(bytes: Uint8Array): void {
    this.#value = crc32(bytes, this.#value)
  }

  digest(): Uint8Array {
    return bigEndian(this.#value)
  }
}

/** Tables of a reflected polynomial: entry `256 * k + b` is byte `b` followed by `k` zero bytes. */
interface Tables {
  readonly low: Uint32Array
  readonly high: Uint32Array
}

const SLICES = 8
/** Reflected polynomials. */
const CRC32C = lazyTables(0x82f63b78n)
const CRC64_NVME = lazyTables(0x9a6c9329ac4bc9b5n)

/** Makes the tables at their first use. */
function lazyTables(polynomial: bigint): () => Tables {
  let tables: Tables | null = null
  return () => {
    tables ??= tablesOf(polynomial)
    return tables
  }
}

function tablesOf(polynomial: bigint): Tables {
  const [low, high] = [new Uint32Array(256 * SLICES), new Uint32Array(256 * SLICES)]
  const first: bigint[] = []
  for (let byte = 0n; byte < 256n; byte++) {
    let value = byte
    for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ polynomial : value >> 1n
    first.push(value)
  }
  for (let byte = 0; byte < 256; byte++) {
    let value = first[byte]!
    for (let slice = 0; slice < SLICES; slice++) {
      low[256 * slice + byte] = Number(value & 0xffffffffn)
      high[256 * slice + byte] = Number(value >> 32n)
      value = (value >> 8n) ^ first[Number(value & 0xffn)]!
    }
  }
  return { low, high }
}

class SlicedCrc32 implements ChecksumStream {
  readonly #table: Uint32Array
  #value = -1

  constructor(tables: () => Tables) {
    this.#table = tables().low
  }

  update(bytes: Uint8Array): void {
    const table = this.#table
    const sliced = bytes.length - (bytes.length % SLICES)
    let value = this.#value
    let at = 0
    for (; at < sliced; at += SLICES) {
      value ^= wordAt(bytes, at)
      value =
        table[1792 + (value & 255)]! ^
        table[1536 + ((value >>> 8) & 255)]! ^
        table[1280 + ((value >>> 16) & 255)]! ^
        table[1024 + (value >>> 24)]! ^
        table[768 + bytes[at + 4]!]! ^
        table[512 + bytes[at + 5]!]! ^
        table[256 + bytes[at + 6]!]! ^
        table[bytes[at + 7]!]!
    }
    for (; at < bytes.length; at++) value = (value >>> 8) ^ table[(value ^ bytes[at]!) & 255]!
    this.#value = value
  }

  digest(): Uint8Array {
    return bigEndian(~this.#value)
  }
}

/** A CRC of 64 bits in two words, since 64-bit integers of the runtime are far slower. */
class SlicedCrc64 implements ChecksumStream {
  readonly #tables: Tables
  #low = -1
  #high = -1

  constructor(tables: () => Tables) {
    this.#tables = tables()
  }

  update(bytes: Uint8Array): void {
    const { low: lows, high: highs } = this.#tables
    const sliced = bytes.length - (bytes.length % SLICES)
    let [low, high] = [this.#low, this.#high]
    let at = 0
    for (; at < sliced; at += SLICES) {
      low ^= wordAt(bytes, at)
      high ^= wordAt(bytes, at + 4)
      const a = 1792 + (low & 255)
      const b = 1536 + ((low >>> 8) & 255)
      const c = 1280 + ((low >>> 16) & 255)
      const d = 1024 + (low >>> 24)
      const e = 768 + (high & 255)
      const f = 512 + ((high >>> 8) & 255)
      const g = 256 + ((high >>> 16) & 255)
      const h = high >>> 24
      low = lows[a]! ^ lows[b]! ^ lows[c]! ^ lows[d]! ^ lows[e]! ^ lows[f]! ^ lows[g]! ^ lows[h]!
      high =
        highs[a]! ^
        highs[b]! ^
        highs[c]! ^
        highs[d]! ^
        highs[e]! ^
        highs[f]! ^
        highs[g]! ^
        highs[h]!
    }
    for (; at < bytes.length; at++) {
      const entry = (low ^ bytes[at]!) & 255
      low = ((low >>> 8) | (high << 24)) ^ lows[entry]!
      high = (high >>> 8) ^ highs[entry]!
    }
    this.#low = low
    this.#high = high
  }

  digest(): Uint8Array {
    return new Uint8Array([...bigEndian(~this.#high), ...bigEndian(~this.#low)])
  }
}

/** Reads four bytes, the least significant first. */
function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}

function bigEndian(word: number): Uint8Array {
  return new Uint8Array([word >>> 24, word >>> 16, word >>> 8, word])
}
