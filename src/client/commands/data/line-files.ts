/** Reads the lines of a file with their positions, so that a reader can continue at one of them. */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { Fault } from '../../../errors/fault.ts'
import { errorCode } from '../../files.ts'

const CHUNK_BYTES = 1024 * 1024
const NEWLINE = 10
const CARRIAGE_RETURN = 13
/** Some programs begin UTF-8 text with it. */
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]
/** Bytes of one line: a document as it may be sent. */
const LINE_BYTES_MAX = 12 * 1024 * 1024

/** A position after a line. */
export interface LinePosition {
  /** Lines before it, empty ones included. */
  readonly lines: number
  /** Bytes before it. */
  readonly bytes: number
  /** SHA-256 of these bytes, in hex. */
  readonly digest: string
}

export const START: LinePosition = {
  lines: 0,
  bytes: 0,
  digest: createHash('sha256').digest('hex'),
}

export interface FileLine {
  /** Counted from 1. */
  readonly number: number
  /** The content without the end of the line. */
  readonly content: Uint8Array
}

export class LineFile {
  readonly #path: string
  readonly #file: FileHandle
  readonly #size: number
  readonly #hash = createHash('sha256')
  #lines = 0
  #bytes = 0

  private constructor(path: string, file: FileHandle, size: number) {
    this.#path = path
    this.#file = file
    this.#size = size
  }

  /** Throws CLIENT_FILE_FAILED. */
  static async open(path: string): Promise<LineFile> {
    try {
      const file = await open(path, 'r')
      return new LineFile(path, file, (await file.stat()).size)
    } catch (error) {
      throw failed(path, error)
    }
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  /** Part of the file that was read, from 0 to 1. */
  get progress(): number {
    return this.#size === 0 ? 1 : this.#bytes / this.#size
  }

  /** The position after the line that was read last. */
  position(): LinePosition {
    const digest = this.#hash.copy().digest('hex')
    return { lines: this.#lines, bytes: this.#bytes, digest }
  }

  /** Continues at the position; returns false if the bytes before it are not the same. */
  async skipTo({ lines, bytes, digest }: LinePosition): Promise<boolean> {
    while (this.#bytes < bytes) {
      const chunk = await this.#read(Math.min(CHUNK_BYTES, bytes - this.#bytes))
      if (chunk.length === 0) return false
      this.#take(chunk)
    }
    this.#lines = lines
    return this.position().digest === digest
  }

  /**
   * Yields the lines that follow. Throws CLIENT_FILE_FAILED, and PRODUCT_INVALID for a line that is
   * too long.
   */
  async *lines(): AsyncGenerator<FileLine> {
    let rest: Uint8Array = new Uint8Array()
    for (let offset = this.#bytes; ; ) {
      const chunk = await this.#read(CHUNK_BYTES, offset)
      offset += chunk.length
      if (chunk.length === 0) break
      const text = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let from = 0
      for (let end = text.indexOf(NEWLINE); end !== -1; end = text.indexOf(NEWLINE, from)) {
        yield this.#line(text.subarray(from, end + 1))
        from = end + 1
      }
      rest = text.slice(from)
      if (rest.length > LINE_BYTES_MAX) {
        const rule = `at most ${LINE_BYTES_MAX} bytes`
        throw new Fault('PRODUCT_INVALID', {
          violations: [{ path: `line ${this.#lines + 1}`, rule }],
        })
      }
    }
    if (rest.length > 0) yield this.#line(rest)
  }

  /** `raw` has the end of the line, which the last one may lack. */
  #line(raw: Uint8Array): FileLine {
    this.#take(raw)
    this.#lines += 1
    let end = raw.length
    if (raw[end - 1] === NEWLINE) end -= 1
    if (raw[end - 1] === CARRIAGE_RETURN) end -= 1
    const start = this.#lines === 1 && hasMark(raw) ? BYTE_ORDER_MARK.length : 0
    return { number: this.#lines, content: raw.subarray(start, end) }
  }

  #take(bytes: Uint8Array): void {
    this.#hash.update(bytes)
    this.#bytes += bytes.length
  }

  async #read(length: number, offset = this.#bytes): Promise<Uint8Array> {
    try {
      const buffer = new Uint8Array(length)
      const { bytesRead } = await this.#file.read(buffer, 0, length, offset)
      return buffer.subarray(0, bytesRead)
    } catch (error) {
      throw failed(this.#path, error)
    }
  }
}

function hasMark(bytes: Uint8Array): boolean {
  return BYTE_ORDER_MARK.every((byte, i) => bytes[i] === byte)
}

function failed(path: string, error: unknown): Fault {
  const reason = errorCode(error) ?? 'cannot be read'
  return new Fault('CLIENT_FILE_FAILED', { detail: `${path}: ${reason}.`, cause: error })
}
