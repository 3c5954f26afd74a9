/**
 * A segment: lines of JSON, compressed with zstd, then encrypted with age (docs/backups-format.md).
 */
import zlib from 'node:zlib'
import { assert } from '../../errors/assert.ts'
import { Fault } from '../../errors/fault.ts'
import { sha256Hex, sha256Stream } from '../../system/digests.ts'
import { ValidationError } from '../../value/validation-error.ts'
import {
  type BackupRecord,
  formatHeader,
  headerOf,
  parseRecord,
  type Sidecar,
} from '../../wire/files/backups.ts'
import { AgeFailure, type Bytes, collect, type Opener, type Sealer } from './age-files.ts'

/** Plain bytes after which a segment ends. Its last record may be longer. */
export const SEGMENT_BYTES = 4 * 1024 * 1024
/**
 * Longest segment, before compression and after it. A record has at most the largest value that a
 * call may return.
 * @limit Backups: plain bytes of a segment
 */
export const SEGMENT_BYTES_MAX = 64 * 1024 * 1024
const ZSTD_LEVEL = 3
const NUMBER_DIGITS = 12

export interface SealedSegment {
  readonly sidecar: Sidecar
  readonly file: Bytes
  /** The text of the file with the names of its blobs; null if it names none. */
  readonly blobs: string | null
}

/** The fields of a sidecar that are known before the segment is encrypted. */
export type PlainSegment = Omit<Sidecar, 'sha256' | 'bytes' | 'blobs'>

/** Returns the name of a segment, without the ending of its file and of its sidecar. */
export function segmentName(number: number): string {
  return String(number).padStart(NUMBER_DIGITS, '0')
}

/** Returns the text of the file with the names of blobs; null if there are none. */
export function formatBlobNames(names: Iterable<string>): string | null {
  const sorted = [...new Set(names)].sort()
  return sorted.length === 0 ? null : sorted.map((name) => `${name}\n`).join('')
}

/**
 * `lines` are the records, each with its line feed. They are read until the end of the call.
 * `names` are those of the blobs that the records name.
 */
export async function sealSegment(
  sealer: Sealer,
  plainSegment: PlainSegment,
  { lines, names = [] }: { readonly lines: Uint8Array; readonly names?: Iterable<string> },
): Promise<SealedSegment> {
  const blobs = formatBlobNames(names)
  const segment = { ...plainSegment, blobs: blobs === null ? null : sha256Hex(blobs) }
  const header = formatHeader({ t: 'segment', ...segment })
  const plain = Buffer.concat([Buffer.from(`${header}\n`), lines])
  assert(plain.length <= SEGMENT_BYTES_MAX, 'a segment has bounded length')
  const compressed = await Bun.zstdCompress(plain, { level: ZSTD_LEVEL })
  const { file, sha256 } = await sealed(sealer, compressed)
  return { sidecar: { ...segment, sha256, bytes: file.length }, file, blobs }
}

/** The digest of a whole file would hold up calls for milliseconds. */
async function sealed(
  sealer: Sealer,
  plain: Uint8Array,
): Promise<{ readonly file: Bytes; readonly sha256: string }> {
  const file = new Uint8Array(await sealer.sealedLength(plain.length))
  const digest = sha256Stream()
  let length = 0
  for await (const chunk of sealer.seal([plain])) {
    digest.update(chunk)
    file.set(chunk, length)
    length += chunk.length
  }
  assert(length === file.length, 'the length of an encrypted file depends on that of its content')
  return { file, sha256: digest.digest().toString('hex') }
}

/**
 * Returns the records of a segment, each parsed when it is taken: all of them would be a multiple
 * of the segment in memory. Raises BACKUP_CORRUPT, with `name` in its detail, where the file, its
 * header or a record is not what the sidecar says.
 */
export async function openSegment(
  opener: Opener,
  { name, sidecar, file }: { name: string; sidecar: Sidecar; file: Uint8Array },
): Promise<Iterable<BackupRecord>> {
  if (file.length !== sidecar.bytes || sha256Hex(file) !== sidecar.sha256) {
    throw corrupt(name, 'it is not the file that its sidecar names')
  }
  const plain = await decompressed(name, await opened(name, opener.open([file])))
  const text = plain.toString('utf8')
  if (!text.endsWith('\n')) throw corrupt(name, 'its last line has no end')
  const header = `${formatHeader(headerOf(sidecar))}\n`
  if (!text.startsWith(header)) throw corrupt(name, 'its first line and its sidecar differ')
  return parsedLines(name, text, header.length)
}

function* parsedLines(name: string, text: string, start: number): Generator<BackupRecord> {
  let number = 2
  for (let at = start; at < text.length; number++) {
    const end = text.indexOf('\n', at)
    try {
      yield parseRecord(text.slice(at, end))
    } catch (error) {
      const isForm = error instanceof ValidationError
      if (!isForm && !(error instanceof SyntaxError)) throw error
      throw corrupt(name, `line ${number}: ${isForm ? error.message : 'JSON'}`)
    }
    at = end + 1
  }
}

/** Returns all plain bytes of an encrypted file. Raises BACKUP_CORRUPT. */
async function opened(name: string, plain: AsyncIterable<Uint8Array>): Promise<Bytes> {
  try {
    return await collect(plain)
  } catch (error) {
    throw error instanceof AgeFailure ? corrupt(name, error.message, error) : error
  }
}

async function decompressed(name: string, compressed: Bytes): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const options = { maxOutputLength: SEGMENT_BYTES_MAX }
  zlib.zstdDecompress(compressed, options, (error, plain) => {
    if (error === null) resolve(plain)
    else reject(corrupt(name, 'it does not hold a zstd frame of bounded length', error))
  })
  return promise
}

export function corrupt(name: string, reason: string, cause?: unknown): Fault {
  return new Fault('BACKUP_CORRUPT', { detail: `${name}: ${reason}`, cause })
}
