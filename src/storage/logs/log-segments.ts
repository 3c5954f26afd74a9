/**
 * Archive segments: immutable files of consecutive log records, compressed with Zstandard. The
 * first line of a segment names the SHA-256 of the segment before it, so that the digests chain.
 */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../system/digests.ts'

/** The destination of segments. */
export interface SegmentFiles {
  /** Stores the bytes durably. */
  put(name: string, bytes: Uint8Array): void
  /** Returns null if the segment does not exist. */
  get(name: string): Uint8Array | null
  /** Returns the number of bytes; null if the segment does not exist. */
  size(name: string): number | null
  /** Does nothing if the segment does not exist. */
  remove(name: string): void
  /** Names of all files, those that were never finished included. */
  names(): readonly string[]
}

const UNFINISHED = '.tmp'

/** Returns whether a process ended while it wrote this file. */
export function isUnfinished(name: string): boolean {
  return name.endsWith(UNFINISHED)
}

export class DirectorySegments implements SegmentFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  }

  put(name: string, bytes: Uint8Array): void {
    const path = join(this.#directory, name)
    const temporary = `${path}${UNFINISHED}`
    writeFileSync(temporary, bytes, { mode: 0o600 })
    sync(temporary)
    renameSync(temporary, path)
    sync(this.#directory)
  }

  get(name: string): Uint8Array | null {
    return unlessAbsent(() => readFileSync(join(this.#directory, name)))
  }

  size(name: string): number | null {
    return unlessAbsent(() => statSync(join(this.#directory, name)).size)
  }

  remove(name: string): void {
    rmSync(join(this.#directory, name), { force: true })
  }

  names(): readonly string[] {
    return readdirSync(this.#directory)
  }
}

function sync(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function unlessAbsent<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** The first line of a segment. */
export interface SegmentHead {
  readonly version: 1
  readonly environmentId: string
  readonly number: number
  /** Sequences of the first and the last record. */
  readonly first: number
  readonly last: number
  readonly records: number
  /** SHA-256 of the segment before it, in hexadecimal; null for the first one. */
  readonly previous: string | null
}

/** The digest keeps the segments of a lost or restored logs.db from being replaced. */
export function segmentName(number: number, digest: Uint8Array): string {
  const part = Buffer.from(digest).toString('hex').slice(0, 16)
  return `${String(number).padStart(10, '0')}-${part}.jsonl.zst`
}

/** `lines` are JSON texts of the records. */
export function encodeSegment(head: SegmentHead, lines: readonly string[]): Uint8Array {
  return Bun.zstdCompressSync(`${JSON.stringify(head)}\n${lines.join('\n')}\n`)
}

/** Returns whether the file can be read and has the records that its head declares. */
export function isWhole(bytes: Uint8Array, digest: Uint8Array, expected: SegmentHead): boolean {
  if (!Buffer.from(digest).equals(sha256(bytes))) return false
  let text: string
  try {
    text = Buffer.from(Bun.zstdDecompressSync(bytes)).toString()
  } catch {
    return false
  }
  const lines = text.split('\n')
  return (
    lines[0] === JSON.stringify(expected) &&
    lines.at(-1) === '' &&
    lines.length === expected.records + 2
  )
}
