/** Leaves calls their time: the steps of a backup take at most a quarter of the event loop. */

import type { MaybePromise } from '../../system/maybe-promise.ts'

/** Time to wait for each unit of time that a step took. */
const IDLE_SHARE = 3
/**
 * Steps follow each other for this long before calls get their turn. A call passes the event loop
 * several times, and may wait for a step each time. Shorter waits than 1 ms do not exist.
 */
const SLICE_MILLIS = 0.3
/** Calls get their turn after this number of steps in any case: a clock may stand still. */
const SLICE_STEPS_MAX = 16
/** A step that takes longer has waited for the target, while calls had the event loop. */
const IDLE_MILLIS_MAX = 20

export class Throttle {
  readonly #system: { monotonicMillis(): number }
  /** Time and number of the steps since the last wait. */
  #tookMillis = 0
  #steps = 0

  constructor(system: { monotonicMillis(): number }) {
    this.#system = system
  }

  /** Begins a step of less than a millisecond. The returned function ends it, then may wait. */
  begin(): () => Promise<void> | undefined {
    const begun = this.#system.monotonicMillis()
    return () => {
      this.#tookMillis += this.#system.monotonicMillis() - begun
      this.#steps += 1
      if (this.#tookMillis < SLICE_MILLIS && this.#steps < SLICE_STEPS_MAX) return undefined
      const millis = Math.min(IDLE_MILLIS_MAX, IDLE_SHARE * this.#tookMillis)
      this.#tookMillis = 0
      this.#steps = 0
      return new Promise((resolve) => setTimeout(resolve, millis))
    }
  }

  /** Runs a step of less than a millisecond, then may wait. */
  async step<T>(run: () => T | Promise<T>): Promise<T> {
    const end = this.begin()
    const result = await run()
    await end()
    return result
  }

  /**
   * Runs a step of which only the part before its first wait counts, such as a read of a remote
   * store: calls have the event loop while its answer is on the way.
   */
  async stepBeforeWait<T>(run: () => MaybePromise<T>): Promise<T> {
    const end = this.begin()
    const [result] = await Promise.all([run(), end()])
    return result
  }
}
