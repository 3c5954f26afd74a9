/**
 * Compresses texts for HTTP responses. A compressed text is a part of a gzip member or of a
 * zstd frame, which other texts may precede and follow. Responses that differ in their beginning
 * and end can thus share one compressed text, and each one is a single member or frame: some
 * clients read no further than the first one.
 */
import zlib from 'node:zlib'
import { assert } from '../errors/assert.ts'

/** Content codings (RFC 9110, 8.4.1), the preferred one first. */
export const CONTENT_CODINGS = ['zstd', 'gzip'] as const
export type ContentCoding = (typeof CONTENT_CODINGS)[number]

export interface CompressedText {
  readonly coding: ContentCoding
  /** Whole blocks of deflate (RFC 1951) or zstd (RFC 8878), none of which is marked as the last. */
  readonly blocks: Uint8Array
  /** Bytes of the text. */
  readonly length: number
  /** CRC-32 of the text. zstd does not use it. */
  readonly checksum: number
}

/** Kept compressed forms of one text. */
export interface CompressedForms {
  /** Returns the form: null if compression does not shorten the text, undefined if none is kept. */
  find(coding: ContentCoding): CompressedText | null | undefined
  keep(coding: ContentCoding, form: CompressedText | null): void
}

/** The compressed forms of a text that never changes. */
export class KeptForms implements CompressedForms {
  readonly #forms = new Map<ContentCoding, CompressedText | null>()

  find(coding: ContentCoding): CompressedText | null | undefined {
    return this.#forms.get(coding)
  }

  keep(coding: ContentCoding, form: CompressedText | null): void {
    this.#forms.set(coding, form)
  }
}

/**
 * Bytes of the shortest text that is compressed. A shorter one fits into one packet anyway.
 * @limit Requests: the shortest response, and the shortest state of Realtime, that is compressed
 */
export const COMPRESSED_BYTES_MIN = 1_024

/** The lowest level of gzip whose output is as short as that of zstd at its lowest one. */
const GZIP_LEVEL = 2
const ZSTD_LEVEL = 1
/** The output ends at a byte, and no block is marked as the last. */
const GZIP_OPTIONS = { level: GZIP_LEVEL, finishFlush: zlib.constants.Z_SYNC_FLUSH }
const ZSTD_OPTIONS = { level: ZSTD_LEVEL }

/** Compresses on this thread. */
export function compressText(text: string, coding: ContentCoding): CompressedText {
  const bytes = Buffer.from(text)
  return coding === 'gzip'
    ? ofDeflate(bytes, zlib.deflateRawSync(bytes, GZIP_OPTIONS))
    : ofZstd(bytes, Bun.zstdCompressSync(bytes, ZSTD_OPTIONS))
}

/** Compresses on a thread of the runtime. */
export async function compressInThread(
  text: string,
  coding: ContentCoding,
): Promise<CompressedText> {
  const bytes = Buffer.from(text)
  if (coding === 'zstd') return ofZstd(bytes, await Bun.zstdCompress(bytes, ZSTD_OPTIONS))
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  zlib.deflateRaw(bytes, GZIP_OPTIONS, (error, deflated) => {
    if (error === null) resolve(deflated)
    else reject(error)
  })
  return ofDeflate(bytes, await promise)
}

function ofDeflate(text: Uint8Array, blocks: Uint8Array): CompressedText {
  return { coding: 'gzip', blocks, length: text.length, checksum: zlib.crc32(text) }
}

/** Offset of the descriptor of a frame, behind the magic number. */
const DESCRIPTOR_AT = 4
/** Bytes of the content size by its flag; without a flag, a single segment has one byte. */
const SIZE_BYTES = [0, 2, 4, 8] as const
const BLOCK_HEADER_BYTES = 3
/** The type of a block that repeats its only byte. */
const REPEATED = 1

/** Takes the blocks out of a frame that has neither a dictionary nor a checksum. */
function ofZstd(text: Uint8Array, frame: Uint8Array): CompressedText {
  const descriptor = frame[DESCRIPTOR_AT]!
  assert((descriptor & 0b111) === 0, 'a zstd frame with a dictionary or a checksum')
  const isSingle = (descriptor & 0b10_0000) !== 0
  const sizeBytes = SIZE_BYTES[descriptor >> 6]! || (isSingle ? 1 : 0)
  const blocks = frame.slice(DESCRIPTOR_AT + 1 + (isSingle ? 0 : 1) + sizeBytes)
  for (let at = 0; at < blocks.length; ) {
    const header = blocks[at]! | (blocks[at + 1]! << 8) | (blocks[at + 2]! << 16)
    const isLast = (header & 1) !== 0
    if (isLast) blocks[at] = blocks[at]! & ~1
    const bytes = ((header >> 1) & 0b11) === REPEATED ? 1 : header >> 3
    at += BLOCK_HEADER_BYTES + bytes
    if (isLast) assert(at === blocks.length, 'bytes after the last block of a zstd frame')
  }
  return { coding: 'zstd', blocks, length: text.length, checksum: 0 }
}

/** Largest text before or after a compressed one: both formats have blocks of this size. */
const EDGE_BYTES_MAX = 0xffff

/** Returns the bytes of `before`, the compressed text and `after` as one member or frame. */
export function encodeAround(
  before: string,
  text: CompressedText,
  after: string,
): Uint8Array<ArrayBuffer> {
  const head = Buffer.from(before)
  const tail = Buffer.from(after)
  assert(head.length <= EDGE_BYTES_MAX && tail.length <= EDGE_BYTES_MAX, 'a long edge of a text')
  return text.coding === 'gzip' ? gzipMember(head, text, tail) : zstdFrame(head, text, tail)
}

/** Deflate, no flags, no time, the fastest level, an unknown system (RFC 1952, 2.3). */
const GZIP_HEADER = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]
const STORED_HEADER_BYTES = 5
const GZIP_TRAILER_BYTES = 8

function gzipMember(head: Buffer, text: CompressedText, tail: Buffer): Uint8Array<ArrayBuffer> {
  const { blocks, length, checksum } = text
  const around = GZIP_HEADER.length + 2 * STORED_HEADER_BYTES + GZIP_TRAILER_BYTES
  const member = Buffer.allocUnsafe(around + head.length + blocks.length + tail.length)
  member.set(GZIP_HEADER)
  let at = putStored(member, GZIP_HEADER.length, head, false)
  member.set(blocks, at)
  at = putStored(member, at + blocks.length, tail, true)
  const before = joinedChecksum(zlib.crc32(head), checksum, length)
  at = member.writeUInt32LE(zlib.crc32(tail, before), at)
  member.writeUInt32LE((head.length + length + tail.length) >>> 0, at)
  return member
}

function putStored(target: Buffer, at: number, bytes: Buffer, isLast: boolean): number {
  target[at] = isLast ? 1 : 0
  target.writeUInt16LE(bytes.length, at + 1)
  target.writeUInt16LE(~bytes.length & 0xffff, at + 3)
  target.set(bytes, at + STORED_HEADER_BYTES)
  return at + STORED_HEADER_BYTES + bytes.length
}

const ZSTD_MAGIC = 0xfd2fb528
/** A single segment whose size has 4 bytes; neither a dictionary nor a checksum. */
const ZSTD_DESCRIPTOR = 0b1010_0000
const ZSTD_HEADER_BYTES = 9

/** Makes a single segment: its window is the whole content, so that every reference is valid. */
function zstdFrame(
  head: Buffer,
  { blocks, length }: CompressedText,
  tail: Buffer,
): Uint8Array<ArrayBuffer> {
  const around = ZSTD_HEADER_BYTES + 2 * BLOCK_HEADER_BYTES
  const frame = Buffer.allocUnsafe(around + head.length + blocks.length + tail.length)
  frame.writeUInt32LE(ZSTD_MAGIC, 0)
  frame[DESCRIPTOR_AT] = ZSTD_DESCRIPTOR
  frame.writeUInt32LE(head.length + length + tail.length, DESCRIPTOR_AT + 1)
  const at = putRaw(frame, ZSTD_HEADER_BYTES, head, false)
  frame.set(blocks, at)
  putRaw(frame, at + blocks.length, tail, true)
  return frame
}

function putRaw(target: Buffer, at: number, bytes: Buffer, isLast: boolean): number {
  target.writeUIntLE((bytes.length << 3) | (isLast ? 1 : 0), at, BLOCK_HEADER_BYTES)
  target.set(bytes, at + BLOCK_HEADER_BYTES)
  return at + BLOCK_HEADER_BYTES + bytes.length
}

/** The polynomial of CRC-32, with the coefficient of x^31 as the lowest bit. */
const POLYNOMIAL = 0xedb88320
/** The polynomials x^0 and x^8 in that order of bits. */
const ONE = 0x80000000
const ONE_BYTE = 0x00800000

/** Returns the CRC-32 of two texts in a row, the second of which has `length` bytes. */
function joinedChecksum(first: number, second: number, length: number): number {
  let shift = ONE
  let power = ONE_BYTE
  for (let rest = length; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) shift = multiply(shift, power)
    power = multiply(power, power)
  }
  return (multiply(shift, first) ^ second) >>> 0
}

/** Multiplies two polynomials modulo that of CRC-32. */
function multiply(a: number, b: number): number {
  let product = 0
  let shifted = b
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= shifted
    shifted = (shifted & 1) === 1 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1
  }
  return product >>> 0
}
