/** Moves the clock of a test environment from one due time to the next. */
import type { Engine } from '../../engine/engine.ts'
import type { ManualTimers } from '../../engine/scheduling/timers.ts'
import { Fault } from '../../errors/fault.ts'
import type { SimulatedClock } from './simulated-system.ts'

/** Bound of the work that runs at one time of the clock. More means that it schedules itself. */
const RUNS_MAX = 10_000
const CHECK_MILLIS = 50

/** The part of a scheduler that follows the clock. */
export interface SimulatedScheduler {
  readonly statistics: Pick<Engine['scheduler']['statistics'], 'succeeded' | 'failed'>
  wake(): void
  whenSettled(): Promise<void>
}

export class SimulatedTime {
  readonly #clock: SimulatedClock
  readonly #timers: ManualTimers
  readonly #scheduler: SimulatedScheduler
  /** Scheduled work starts only while the clock is advanced, so that tests are repeatable. */
  #isAdvancing = false
  #last: Promise<void> = Promise.resolve()

  constructor(clock: SimulatedClock, timers: ManualTimers, scheduler: SimulatedScheduler) {
    this.#clock = clock
    this.#timers = timers
    this.#scheduler = scheduler
  }

  get admits(): boolean {
    return this.#isAdvancing
  }

  /**
   * Moves the clock by `millis` and runs the work that becomes due, in the order of the
   * due times. Calls `prepare` first, once earlier calls have ended. Throws LIMIT_EXCEEDED if work
   * schedules itself without a delay.
   */
  advance(millis: number, prepare = (): void => undefined): Promise<void> {
    const advanced = this.#last.then(() => {
      prepare()
      return this.#advance(millis)
    })
    this.#last = advanced.catch(() => undefined)
    return advanced
  }

  async #advance(millis: number): Promise<void> {
    const untilMillis = this.#clock.millis + millis
    this.#isAdvancing = true
    try {
      this.#scheduler.wake()
      await this.#whenIdle()
      for (;;) {
        const next = this.#timers.nextMillis
        if (next === null || next > untilMillis) break
        this.#clock.move(Math.max(0, next - this.#clock.millis))
        this.#timers.run()
        await this.#whenIdle()
      }
      // Calls that ran meanwhile have moved the clock too.
      this.#clock.move(Math.max(0, untilMillis - this.#clock.millis))
    } finally {
      this.#isAdvancing = false
    }
  }

  /** Waits until all work that is due has ended. */
  async #whenIdle(): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>()
    const before = this.#runs
    const timer = setInterval(() => {
      if (this.#runs - before <= RUNS_MAX) return
      const detail =
        `Over ${RUNS_MAX} pieces of scheduled work ran at one time. ` +
        'Schedule repeated work with a delay.'
      reject(new Fault('LIMIT_EXCEEDED', { detail }))
    }, CHECK_MILLIS)
    try {
      await Promise.race([promise, this.#scheduler.whenSettled()])
    } finally {
      clearInterval(timer)
    }
  }

  get #runs(): number {
    const { succeeded, failed } = this.#scheduler.statistics
    return succeeded + failed
  }
}
