/**
 * Reads SQLite files that another process may have open, without a lock and without a write: SQLite
 * itself would write to the log or to the file when it opens or closes one. Committed pages of the
 * write-ahead log (https://www.sqlite.org/fileformat2.html) replace those of the file.
 */
import { constants, Database } from 'bun:sqlite'
import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs'

export interface DatabaseImage {
  /** Bytes of the file and of its log. */
  readonly bytes: number
  readonly userVersion: number
  /**
   * A read-only connection. That of a file of more than `COPY_BYTES_MAX` does not see what is in
   * its log alone, and a statement may fail while a server writes.
   */
  readonly database: Database
}

/** Reason why a file cannot be read. */
export class DatabaseImageError extends Error {}

/** A larger file is not copied into memory. */
const COPY_BYTES_MAX = 16 * 1024 * 1024
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'
const LOG_HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
/** Each attempt takes milliseconds, and the server must write a checkpoint in the middle of one. */
const ATTEMPTS = 20

/**
 * Returns null if the file is absent or empty, and has no log. Throws a DatabaseImageError, or an
 * error of the file system.
 */
export function readDatabaseImage(path: string): DatabaseImage | null {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = stateOf(path)
    if (before === null) return null
    const pages = committedPages(readLog(path))
    const isSmall = before.size <= COPY_BYTES_MAX
    const file = isSmall ? readFileSync(path) : readStart(path)
    if (before.size === 0 && pages.size === 0) return null
    // A checkpoint copied pages of a log that was not read yet.
    if (stateOf(path)?.changedAt !== before.changedAt) continue
    const image = withPages(file, pages)
    if (image.length < HEADER_BYTES || image.toString('latin1', 0, 16) !== MAGIC) {
      throw new DatabaseImageError('the file is not a database')
    }
    const database = isSmall ? inMemory(image) : unlocked(path)
    return { bytes: before.size, userVersion: image.readUInt32BE(60), database }
  }
  throw new DatabaseImageError('the file changes all the time')
}

function stateOf(path: string): { size: number; changedAt: bigint } | null {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? null : { size: Number(stats.size), changedAt: stats.mtimeNs }
}

function readLog(path: string): Buffer {
  try {
    return readFileSync(`${path}-wal`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

/** The first page, of any size. */
function readStart(path: string): Buffer {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(65_536)
    return start.subarray(0, readSync(file, start))
  } finally {
    closeSync(file)
  }
}

/** Returns the newest committed content of each page in the log, by page number from 1. */
export function committedPages(log: Buffer): Map<number, Buffer> {
  const committed = new Map<number, Buffer>()
  const magic = log.length < LOG_HEADER_BYTES ? 0 : log.readUInt32BE(0)
  if (magic >>> 1 !== 0x377f0682 >>> 1) return committed
  const sum = new LogChecksum((magic & 1) === 1)
  sum.add(log.subarray(0, 24))
  if (!sum.equals(log, 24)) return committed
  const pageBytes = log.readUInt32BE(8)
  const salt = log.subarray(16, 24)
  const pending = new Map<number, Buffer>()
  const frameBytes = FRAME_HEADER_BYTES + pageBytes
  for (let at = LOG_HEADER_BYTES; at + frameBytes <= log.length; at += frameBytes) {
    const page = log.subarray(at + FRAME_HEADER_BYTES, at + frameBytes)
    // What follows was written before the log began anew, or not to its end.
    if (!salt.equals(log.subarray(at + 8, at + 16))) break
    sum.add(log.subarray(at, at + 8))
    sum.add(page)
    if (!sum.equals(log, at + 16)) break
    pending.set(log.readUInt32BE(at), page)
    if (log.readUInt32BE(at + 4) === 0) continue
    for (const [number, content] of pending) committed.set(number, content)
    pending.clear()
  }
  return committed
}

/** The cumulative checksum of the frames of a log. */
class LogChecksum {
  readonly #isBigEndian: boolean
  #first = 0
  #second = 0

  constructor(isBigEndian: boolean) {
    this.#isBigEndian = isBigEndian
  }

  add(bytes: Buffer): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    let [first, second] = [this.#first, this.#second]
    for (let at = 0; at < bytes.length; at += 8) {
      first = (first + view.getUint32(at, !this.#isBigEndian) + second) >>> 0
      second = (second + view.getUint32(at + 4, !this.#isBigEndian) + first) >>> 0
    }
    this.#first = first
    this.#second = second
  }

  equals(log: Buffer, at: number): boolean {
    return log.readUInt32BE(at) === this.#first && log.readUInt32BE(at + 4) === this.#second
  }
}

function withPages(file: Buffer, pages: ReadonlyMap<number, Buffer>): Buffer {
  const [first] = pages.values()
  if (first === undefined) return file
  const bytes = Math.max(file.length, ...[...pages.keys()].map((page) => page * first.length))
  const image = Buffer.alloc(bytes)
  file.copy(image)
  for (const [number, content] of pages) content.copy(image, (number - 1) * first.length)
  return image
}

function inMemory(image: Buffer): Database {
  // A database in memory has no write-ahead log.
  image[18] = 1
  image[19] = 1
  return Database.deserialize(image, true)
}

function unlocked(path: string): Database {
  const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants
  const url = `${Bun.pathToFileURL(path)}?immutable=1`
  return new Database(url, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
}
