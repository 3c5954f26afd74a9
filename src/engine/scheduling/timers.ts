/**
 * Timers of the scheduler. A server uses those of the runtime; a test advances its own clock and
 * lets the scheduler notice.
 */
import type { System } from '../../system/system.ts'

export interface Timers {
  /** Longest sleep in milliseconds: a step of the wall clock is noticed after it. */
  readonly sleepMillisMax: number
  /** Calls the task once after `millis`. Returns the function that cancels it. */
  set(millis: number, task: () => void): () => void
}

const SLEEP_MILLIS_MAX = 60_000

export const REAL_TIMERS: Timers = {
  sleepMillisMax: SLEEP_MILLIS_MAX,
  set(millis, task) {
    const timer = setTimeout(task, millis)
    return () => clearTimeout(timer)
  },
}

interface ManualTimer {
  readonly atMillis: number
  readonly task: () => void
}

/** Timers over a clock that is advanced by hand: nothing is called before `run`. */
export class ManualTimers implements Timers {
  readonly #clock: Pick<System, 'monotonicMillis'>
  readonly #timers = new Set<ManualTimer>()
  readonly sleepMillisMax: number

  /** `sleepMillisMax` may be infinite where the wall clock is never set. */
  constructor(clock: Pick<System, 'monotonicMillis'>, sleepMillisMax = SLEEP_MILLIS_MAX) {
    this.#clock = clock
    this.sleepMillisMax = sleepMillisMax
  }

  set(millis: number, task: () => void): () => void {
    const timer = { atMillis: this.#clock.monotonicMillis() + millis, task }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Monotonic milliseconds of the next call; null for none. */
  get nextMillis(): number | null {
    const times = [...this.#timers].map(({ atMillis }) => atMillis)
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Calls the tasks whose time has come, in the order of their times. */
  run(): void {
    const nowMillis = this.#clock.monotonicMillis()
    const due = [...this.#timers].filter(({ atMillis }) => atMillis <= nowMillis)
    for (const timer of due.sort((a, b) => a.atMillis - b.atMillis)) {
      if (this.#timers.delete(timer)) timer.task()
    }
  }
}
