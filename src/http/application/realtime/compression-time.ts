/**
 * Bounds the time that the event loop compresses states. The compressed state of a Query with many
 * subscribers cannot be shared, since each message names its subscription. Beyond the bound states
 * are sent as they are.
 */
import type { System } from '../../../system/system.ts'

/** The share of the time of the event loop that compression may take. */
const SHARE = 1 / 4
/** Milliseconds that compression may take at once after a time without it. */
const BURST_MILLIS = 50

export class CompressionTime {
  readonly #system: Pick<System, 'monotonicMillis'>
  #leftMillis = BURST_MILLIS
  /** Monotonic milliseconds at which `#leftMillis` was correct. */
  #at: number

  constructor(system: Pick<System, 'monotonicMillis'>) {
    this.#system = system
    this.#at = system.monotonicMillis()
  }

  /** Returns whether a message may be compressed now. */
  isLeft(): boolean {
    const now = this.#system.monotonicMillis()
    this.#leftMillis = Math.min(BURST_MILLIS, this.#leftMillis + (now - this.#at) * SHARE)
    this.#at = now
    return this.#leftMillis > 0
  }

  /** Calls `compress` and charges the time that it takes. */
  measure<T>(compress: () => T): T {
    const result = compress()
    // `isLeft` was called right before, so that all of the time since then was the compression.
    const now = this.#system.monotonicMillis()
    this.#leftMillis -= now - this.#at
    this.#at = now
    return result
  }
}
