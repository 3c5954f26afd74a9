/** Leaves calls their time: the steps of a backup take at most a third of the event loop. */
import { Fault } from '../../errors/fault.ts'

/** Time to wait for each unit of time that a step took. */
const IDLE_SHARE = 2

export class Throttle {
  readonly #system: { monotonicMillis(): number }
  readonly #signal: AbortSignal | undefined

  /** The signal ends the backup before its next step. */
  constructor(system: { monotonicMillis(): number }, signal?: AbortSignal) {
    this.#system = system
    this.#signal = signal
  }

  /**
   * Begins a step of a few milliseconds. The returned function ends it, then waits. Raises
   * UNAVAILABLE once the backup is to end.
   */
  begin(): () => Promise<void> {
    if (this.#signal?.aborted) throw new Fault('UNAVAILABLE', { detail: 'the backup was stopped' })
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
