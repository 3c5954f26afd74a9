/** The clock and the randomness of a test environment, which are equal for equal seeds. */
import { createHash } from 'node:crypto'
import type { System } from '../../system/system.ts'
import { IdFactory } from '../../value/ids.ts'

/** A wall clock that moves only when a method of it is called. */
export class SimulatedClock {
  #millis: number
  #moves = 0

  constructor(millis: number) {
    this.#millis = millis
  }

  get millis(): number {
    return this.#millis
  }

  /** Number of moves of the clock. */
  get moves(): number {
    return this.#moves
  }

  move(millis: number): void {
    this.#millis += millis
    this.#moves += 1
  }

  /** Implements the clock of ManualTimers. */
  monotonicMillis(): number {
    return this.#millis
  }
}

/**
 * A system with a simulated wall clock. Deadlines of calls follow the monotonic clock, which is
 * that of the machine, so that an endless Function is terminated although no simulated time passes.
 */
export class SimulatedSystem implements System {
  readonly #clock: SimulatedClock
  readonly #seed: string
  readonly ids: IdFactory
  #block = new Uint8Array(0)
  #blocks = 0

  constructor(clock: SimulatedClock, seed: string) {
    this.#clock = clock
    this.#seed = seed
    this.ids = new IdFactory(this)
  }

  nowMillis(): number {
    return this.#clock.millis
  }

  nowMicros(): bigint {
    return BigInt(this.#clock.millis) * 1_000n
  }

  monotonicMillis(): number {
    return performance.now()
  }

  /** Returns the next bytes of the sequence SHA-512(seed, 0), SHA-512(seed, 1), ... */
  randomBytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    for (let at = 0; at < length; ) {
      if (this.#block.length === 0) {
        this.#block = createHash('sha512')
          .update(`${this.#seed}/${this.#blocks++}`)
          .digest()
      }
      const part = this.#block.subarray(0, length - at)
      bytes.set(part, at)
      this.#block = this.#block.subarray(part.length)
      at += part.length
    }
    return bytes
  }
}
