/** Reads HTTP responses of a raw connection, as far as a load needs them. */
import { assert } from '../src/errors/assert.ts'

const HEADER_END = '\r\n\r\n'
/** JSON cannot contain this text. */
const LAST_CHUNK = '\r\n0\r\n\r\n'
const BEGINNING_BYTES_MAX = 2_000
const NOTHING = Buffer.alloc(0)

/** Counts the bytes of a response and parses only its head, so that long bodies cost little. */
export class ResponseReader {
  /** Empty until the head is complete. */
  head = ''
  #start = NOTHING
  /** Null for a chunked response, which ends with its last chunk. */
  #missing: number | null = 0
  #end = ''

  /** The first 2,000 bytes of the response at most. */
  get beginning(): string {
    return this.#start.toString('latin1', 0, BEGINNING_BYTES_MAX)
  }

  /** Adds a chunk. Returns whether it completes the response. */
  take(chunk: Buffer): boolean {
    if (this.head !== '') {
      if (this.#start.length < BEGINNING_BYTES_MAX)
        this.#start = Buffer.concat([this.#start, chunk])
      return this.#isWhole(chunk, chunk.length)
    }
    this.#start =
      this.#start.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#start, chunk])
    const end = this.#start.indexOf(HEADER_END)
    if (end === -1) return false
    this.head = this.#start.toString('latin1', 0, end + 2)
    const match = /\r\ncontent-length: (\d+)/i.exec(this.head)
    this.#missing = match === null ? null : Number(match[1])
    assert(match !== null || this.head.includes('chunked'), 'a response without a length')
    return this.#isWhole(chunk, this.#start.length - end - HEADER_END.length)
  }

  #isWhole(chunk: Buffer, bodyBytes: number): boolean {
    if (this.#missing !== null) {
      this.#missing -= bodyBytes
      return this.#missing <= 0
    }
    const end = chunk.toString('latin1', Math.max(0, chunk.length - LAST_CHUNK.length))
    this.#end = (this.#end + end).slice(-LAST_CHUNK.length)
    return this.#end === LAST_CHUNK
  }

  clear(): void {
    this.head = ''
    this.#start = NOTHING
    this.#missing = 0
    this.#end = ''
  }
}
