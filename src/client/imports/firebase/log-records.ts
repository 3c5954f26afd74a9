/**
 * Splits a file in the log format of LevelDB into its records: blocks of 32 KiB with fragments,
 * each with a masked CRC-32C, a length and a type.
 */
import { checksumStream } from '../../../system/checksums.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import { EXPORT_LINE_BYTES_MAX } from '../archives/lines.ts'

const BLOCK_BYTES = 32 * 1024
const HEAD_BYTES = 7
const PADDING = 0
const FULL = 1
const FIRST = 2
const LAST = 4
const MASK_DELTA = 0xa282ead8
/** A record is split at the ends of blocks alone, so that it has no more fragments than this. */
const FRAGMENTS_MAX = Math.ceil(EXPORT_LINE_BYTES_MAX / (BLOCK_BYTES - HEAD_BYTES)) + 2

/** Yields the records. Throws CLIENT_EXPORT_INVALID where the file is damaged or cut. */
export async function* recordsOf(
  name: string,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const reader = new RecordReader(name)
  for await (const block of blocksOf(content)) yield* reader.take(block)
  reader.end()
}

/** Yields blocks, of which the last one may be shorter. */
async function* blocksOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let pending = Buffer.alloc(0)
  for await (const chunk of content) {
    pending = Buffer.concat([pending, chunk])
    let from = 0
    for (; pending.length - from >= BLOCK_BYTES; from += BLOCK_BYTES) {
      yield pending.subarray(from, from + BLOCK_BYTES)
    }
    pending = pending.subarray(from)
  }
  if (pending.length > 0) yield pending
}

class RecordReader {
  readonly #name: string
  /** Fragments of the record that has begun. */
  #pieces: Uint8Array[] = []
  #bytes = 0

  constructor(name: string) {
    this.#name = name
  }

  *take(block: Buffer): Generator<Uint8Array> {
    let at = 0
    while (block.length - at >= HEAD_BYTES) {
      const length = block.readUInt16LE(at + 4)
      const type = block[at + 6]!
      const end = at + HEAD_BYTES + length
      if (type === PADDING && length === 0) {
        this.#requirePadding(block, at)
        return
      }
      if (end > block.length) throw this.#damaged('ends within a record')
      if (type > LAST || type === PADDING) throw this.#damaged('has an unknown record')
      const content = block.subarray(at + HEAD_BYTES, end)
      if (block.readUInt32LE(at) !== maskedChecksum(block.subarray(at + 6, end))) {
        throw this.#damaged('has a record with another checksum')
      }
      const begins = type === FULL || type === FIRST
      if (begins !== (this.#pieces.length === 0)) throw this.#damaged('lacks a part of a record')
      this.#keep(content)
      if (type === FULL || type === LAST) yield this.#record()
      at = end
    }
    if (block.length < BLOCK_BYTES && at < block.length) throw this.#damaged('ends within a record')
  }

  end(): void {
    if (this.#pieces.length > 0) throw this.#damaged('ends within a record')
  }

  /** Writers fill the rest of a block with zeros; a block of zeros alone is a hole of the file. */
  #requirePadding(block: Buffer, at: number): void {
    if (at === 0 || block.subarray(at).some((byte) => byte !== 0)) {
      throw this.#damaged('has zeros in place of a record')
    }
  }

  #keep(content: Uint8Array): void {
    this.#bytes += content.length
    if (this.#bytes > EXPORT_LINE_BYTES_MAX) {
      throw this.#damaged(`has a record of more than ${EXPORT_LINE_BYTES_MAX} bytes`)
    }
    if (this.#pieces.length === FRAGMENTS_MAX) throw this.#damaged('splits a record too often')
    this.#pieces.push(content)
  }

  #record(): Uint8Array {
    const record = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    return record
  }

  #damaged(how: string) {
    return exportInvalid(`${this.#name} ${how}.`)
  }
}

/** Returns the CRC-32C of type and content, as the format rotates it. */
export function maskedChecksum(bytes: Uint8Array): number {
  const checksum = checksumStream('crc32c')
  checksum.update(bytes)
  const crc = Buffer.from(checksum.digest()).readUInt32BE(0)
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0
}
