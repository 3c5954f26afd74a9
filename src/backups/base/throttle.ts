/** Leaves calls their time: the steps of a backup take at most a third of the event loop. */

/** Time to wait for each unit of time that a step took. */
const IDLE_SHARE = 2
/** A machine that slept during a step must not stop the backup for twice as long. */
const IDLE_MILLIS_MAX = 1_000

export class Throttle {
  readonly #system: { monotonicMillis(): number }

  constructor(system: { monotonicMillis(): number }) {
    this.#system = system
  }

  /** Begins a step of a few milliseconds. The returned function ends it, then waits. */
  begin(): () => Promise<void> {
    const begun = this.#system.monotonicMillis()
    return () => {
      const took = this.#system.monotonicMillis() - begun
      const millis = Math.min(IDLE_MILLIS_MAX, IDLE_SHARE * took)
      return new Promise((resolve) => setTimeout(resolve, millis))
    }
  }

  /** Runs a step of a few milliseconds, then waits twice as long as it took. */
  async step<T>(run: () => T | Promise<T>): Promise<T> {
    const end = this.begin()
    const result = await run()
    await end()
    return result
  }
}
