/**
 * Sends the states of all connections in short slices of time. A commit may change the state of
 * thousands of subscribers: requests are answered before the first slice and between two of them.
 */
import type { System } from '../../../system/system.ts'

/** Milliseconds of one slice, which bounds the delay of requests. */
const SLICE_MILLIS = 1

/** A connection with states to send. */
export interface Receiver {
  /** Sends as much as the peer takes. Must not throw. */
  deliver(): void
}

export class Deliveries {
  readonly #system: Pick<System, 'monotonicMillis'>
  /** Connections in the order in which they got states. */
  readonly #waiting = new Set<Receiver>()
  #isScheduled = false

  constructor(system: Pick<System, 'monotonicMillis'>) {
    this.#system = system
  }

  add(receiver: Receiver): void {
    this.#waiting.add(receiver)
    this.#schedule()
  }

  remove(receiver: Receiver): void {
    this.#waiting.delete(receiver)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#deliver())
  }

  #deliver(): void {
    this.#isScheduled = false
    const endsAt = this.#system.monotonicMillis() + SLICE_MILLIS
    for (const receiver of this.#waiting) {
      this.#waiting.delete(receiver)
      receiver.deliver()
      if (this.#system.monotonicMillis() >= endsAt) break
    }
    if (this.#waiting.size > 0) this.#schedule()
  }
}
