/**
 * The progress record: the call that a runner executes, in memory that it shares with the server.
 * It shows the server which call keeps a runner busy that no longer sends frames.
 */
import { writeSync } from 'node:fs'
import { mapShared } from './libc.ts'

export const PROGRESS_DESCRIPTOR = 3
/** u32 call (0 for none), u32 count of segments, f64 CPU microseconds before this segment. */
export const PROGRESS_BYTES = 16

export interface ProgressRecord {
  readonly call: number
  readonly segment: number
  readonly spentMicros: number
}

/** Reads the record, on the server's side. */
export function readProgress(bytes: Uint8Array): ProgressRecord {
  const view = new DataView(bytes.buffer, bytes.byteOffset, PROGRESS_BYTES)
  return {
    call: view.getUint32(0, true),
    segment: view.getUint32(4, true),
    spentMicros: view.getFloat64(8, true),
  }
}

/** The record on the runner's side. */
export class Progress {
  readonly #words: Uint32Array
  readonly #numbers: Float64Array
  readonly #bytes: Uint8Array
  readonly #mapped: boolean

  constructor() {
    const shared =
      process.platform === 'linux' ? mapShared(PROGRESS_DESCRIPTOR, PROGRESS_BYTES) : null
    const memory = shared ?? new ArrayBuffer(PROGRESS_BYTES)
    this.#mapped = shared !== null
    this.#words = new Uint32Array(memory)
    this.#numbers = new Float64Array(memory)
    this.#bytes = new Uint8Array(memory)
  }

  begin(call: number, spentMicros: number): void {
    this.#words[1] = (this.#words[1]! + 1) >>> 0
    this.#numbers[1] = spentMicros
    this.#words[0] = call
    this.#publish()
  }

  end(): void {
    this.#words[0] = 0
    this.#publish()
  }

  #publish(): void {
    if (!this.#mapped) writeSync(PROGRESS_DESCRIPTOR, this.#bytes, 0, PROGRESS_BYTES, 0)
  }
}
