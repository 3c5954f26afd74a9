/** Length-prefixed frames in byte streams, for both ends of the socket. */
import { ValidationError } from '../../value/validation-error.ts'
import { FRAME_BYTES_MAX } from './messages.ts'

/** The descriptor of a runner that is connected with the server, for both directions. */
export const FRAMES_DESCRIPTOR = 4

const HEADER_BYTES = 4
const INITIAL_BYTES = 64 * 1024
/** A buffer that one large frame has grown beyond this size is released. */
const KEPT_BYTES = 1024 * 1024

/**
 * Splits chunks into frames. Throws ValidationError if the header of a frame exceeds `bytesMax`.
 */
export class FrameReader {
  readonly #bytesMax: number
  #pending = Buffer.allocUnsafe(INITIAL_BYTES)
  #length = 0

  constructor(bytesMax = FRAME_BYTES_MAX) {
    this.#bytesMax = bytesMax
  }

  /** Calls `onFrame` for each complete frame; the chunk may be reused afterwards. */
  push(chunk: Buffer, onFrame: (text: string) => void): void {
    if (this.#length === 0) {
      const rest = this.#split(chunk, 0, chunk.length, onFrame)
      if (rest < chunk.length) this.#store(chunk, rest)
      return
    }
    this.#store(chunk, 0)
    const frameBytes = this.#length < HEADER_BYTES ? 0 : this.#frameBytes(this.#pending, 0)
    if (this.#length < HEADER_BYTES + frameBytes) return
    const filled = this.#pending
    const length = this.#length
    // The callback may call push, so the state is complete before it runs.
    this.#pending = length > KEPT_BYTES ? Buffer.allocUnsafe(INITIAL_BYTES) : filled
    this.#length = 0
    const rest = this.#split(filled, 0, length, onFrame)
    if (rest < length) this.#store(filled.subarray(0, length), rest)
  }

  #store(chunk: Buffer, from: number): void {
    const added = chunk.length - from
    this.#reserve(this.#length + added)
    chunk.copy(this.#pending, this.#length, from)
    this.#length += added
    // Grows once for a large frame, by no more than it needs.
    if (this.#length >= HEADER_BYTES) {
      this.#reserve(HEADER_BYTES + this.#frameBytes(this.#pending, 0))
    }
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#pending.length) return
    const grown = Buffer.allocUnsafe(bytes)
    this.#pending.copy(grown, 0, 0, this.#length)
    this.#pending = grown
  }

  /** Returns the offset of the first incomplete frame. */
  #split(bytes: Buffer, from: number, to: number, onFrame: (text: string) => void): number {
    let at = from
    while (to - at >= HEADER_BYTES) {
      const end = at + HEADER_BYTES + this.#frameBytes(bytes, at)
      if (end > to) break
      onFrame(bytes.toString('utf8', at + HEADER_BYTES, end))
      at = end
    }
    return at
  }

  #frameBytes(bytes: Buffer, at: number): number {
    const length =
      (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
    if (length > this.#bytesMax)
      throw new ValidationError(`frames of at most ${this.#bytesMax} bytes`)
    return length
  }
}

/** Gathers frames, so that many are sent in one write. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafe(INITIAL_BYTES)
  #length = 0
  #frames = 0

  get length(): number {
    return this.#length
  }

  /** Total number of gathered frames. */
  get frames(): number {
    return this.#frames
  }

  append(text: string): void {
    // UTF-8 needs at most three bytes a UTF-16 unit; counting the bytes of long texts costs less
    // than growing.
    const most = text.length < 4_096 ? text.length * 3 : Buffer.byteLength(text)
    this.#reserve(HEADER_BYTES + most)
    const at = this.#length
    const buffer = this.#buffer
    const written = buffer.write(text, at + HEADER_BYTES)
    buffer[at] = written
    buffer[at + 1] = written >>> 8
    buffer[at + 2] = written >>> 16
    buffer[at + 3] = written >>> 24
    this.#length = at + HEADER_BYTES + written
    this.#frames += 1
  }

  /** Returns the gathered bytes, which are valid until the next append, and starts anew. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length)
    this.#length = 0
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = Buffer.allocUnsafe(INITIAL_BYTES)
    return taken
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, needed))
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}
