/** The health of the scheduler: whether due work starts. */
import type { HealthStatus } from '../usage/health.ts'

/** A task that fails for so long needs an operator. */
const UNAVAILABLE_MILLIS = 10_000
/** Due work that waits longer shows that the runs do not keep up. */
const LATE_MICROS = 60_000_000n

export interface SchedulerState {
  /** Monotonic milliseconds of the first failure of each task that fails now; null for others. */
  readonly failingSinceMillis: readonly (number | null)[]
  readonly nowMillis: number
  /** The time for which the oldest due work has waited for a run; null if none waits. */
  readonly waitingMicros: bigint | null
}

/** Degraded while a task fails or runs do not keep up; unavailable where it fails for 10 s. */
export function schedulerHealth(state: SchedulerState): HealthStatus {
  const { failingSinceMillis, nowMillis, waitingMicros } = state
  const since = failingSinceMillis.filter((millis) => millis !== null)
  if (since.some((millis) => nowMillis - millis >= UNAVAILABLE_MILLIS)) return 'unavailable'
  const isLate = waitingMicros !== null && waitingMicros > LATE_MICROS
  return since.length > 0 || isLate ? 'degraded' : 'healthy'
}
