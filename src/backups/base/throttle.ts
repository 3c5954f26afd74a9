/** Leaves calls their time: the steps of a backup take at most a third of the event loop. */

/** Time to wait for each unit of time that a step took. */
const IDLE_SHARE = 2

export class Throttle {
  readonly #system: { monotonicMillis(): number }

  constructor(system: { monotonicMillis(): number }) {
    this.#system = system
  }

  /** Begins a step of a few milliseconds. The returned function ends it, then waits. */
  begin(): () => Promise<void> {
    const begun = this.#system.monotonicMillis()
    return () => {
      const millis = IDLE_SHARE * (this.#system.monotonicMillis() - begun)
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
