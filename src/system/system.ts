/** Clock, randomness and identifiers of the server. Tests replace them. */
import { randomBytes } from 'node:crypto'
import { IdFactory, type IdSource } from '../value/ids.ts'

export interface System extends IdSource {
  /** Wall clock, in milliseconds since the Unix epoch. */
  nowMillis(): number
  /** Wall clock, in microseconds since the Unix epoch. */
  nowMicros(): bigint
  /** Monotonic clock, in milliseconds. */
  monotonicMillis(): number
  randomBytes(length: number): Uint8Array
  readonly ids: IdFactory
}

export function realSystem(): System {
  const source = {
    nowMillis: () => Date.now(),
    nowMicros: () => BigInt(Date.now() * 1000),
    monotonicMillis: () => performance.now(),
    randomBytes: randomSource(),
  }
  return { ...source, ids: new IdFactory(source) }
}

/** Random bytes are generated in blocks, since a call of the generator costs 1 us at any length. */
const BLOCK_BYTES = 4_096

function randomSource(): (length: number) => Uint8Array {
  let block = new Uint8Array(0)
  let at = 0
  return (length) => {
    if (length > BLOCK_BYTES / 8) return randomBytes(length)
    if (at + length > block.length) {
      block = new Uint8Array(randomBytes(BLOCK_BYTES))
      at = 0
    }
    const bytes = block.slice(at, at + length)
    // Bytes that were returned are erased here.
    block.fill(0, at, at + length)
    at += length
    return bytes
  }
}

/** A system for tests, with a manual clock and seeded randomness. */
export class TestSystem implements System {
  #millis: number
  #state: number
  readonly ids: IdFactory

  constructor(options: { millis?: number; seed?: number } = {}) {
    this.#millis = options.millis ?? 1_800_000_000_000
    this.#state = options.seed ?? 1
    this.ids = new IdFactory(this)
  }

  advance(millis: number): void {
    this.#millis += millis
  }

  nowMillis(): number {
    return this.#millis
  }

  nowMicros(): bigint {
    return BigInt(this.#millis) * 1000n
  }

  monotonicMillis(): number {
    return this.#millis
  }

  randomBytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    for (let i = 0; i < length; i++) {
      // xorshift32
      this.#state ^= this.#state << 13
      this.#state ^= this.#state >>> 17
      this.#state ^= this.#state << 5
      bytes[i] = this.#state & 255
    }
    return bytes
  }
}
