/** The transitions of the state of a Cron as time passes, without a clock or a store. */
import { type Overlap, QUEUED_MAX } from '../../../value/scheduling/crons.ts'
import type { CronState } from './cron-states.ts'
import type { CronTimes } from './cron-times.ts'

/**
 * A clock that was set back by at most this repeats no time that has run; one that was further
 * ahead starts over.
 */
const REPEAT_MICROS_MAX = 3_600_000_000n

export interface CronStepInput {
  readonly times: CronTimes
  readonly basis: string
  readonly overlap: Overlap
  readonly nowMicros: bigint
  /** True if the newest run has not ended. */
  readonly isBusy: boolean
}

export interface CronStep {
  readonly state: CronState
  /** The due time of the run to schedule now; null for none. */
  readonly runsAtMicros: bigint | null
  /** True if a time that has come is left out. */
  readonly isSkipped: boolean
}

/**
 * Returns the next state. A Cron that comes into force, or whose times or activation changed, waits
 * for its next time. All times that passed while nothing ran are one run.
 */
export function cronStep(stored: CronState | null, input: CronStepInput): CronStep {
  const { times, basis, nowMicros } = input
  if (stored?.basis !== basis) {
    const { lastRunAtMicros = null, scheduledId = null } = stored ?? {}
    const next = { basis, nextAtMicros: times.after(nowMicros, null), lastDueAtMicros: null }
    const state = { ...next, lastRunAtMicros, scheduledId, queued: 0 }
    return { state, runsAtMicros: null, isSkipped: false }
  }
  const { nextAtMicros } = stored
  if (nextAtMicros !== null && nextAtMicros <= nowMicros)
    return dueStep(stored, nextAtMicros, input)
  const state = { ...stored, nextAtMicros: earliest(stored, input) }
  if (stored.queued === 0 || input.isBusy) return { state, runsAtMicros: null, isSkipped: false }
  return {
    state: { ...state, queued: stored.queued - 1 },
    runsAtMicros: nowMicros,
    isSkipped: false,
  }
}

function dueStep(stored: CronState, dueAtMicros: bigint, input: CronStepInput): CronStep {
  const { times, overlap, nowMicros, isBusy } = input
  const nextAtMicros = times.after(nowMicros, dueAtMicros)
  const state = { ...stored, nextAtMicros, lastDueAtMicros: dueAtMicros }
  // Runs that wait go first.
  if (!isBusy && stored.queued === 0) return { state, runsAtMicros: dueAtMicros, isSkipped: false }
  const isSkipped = overlap === 'skip' || stored.queued >= QUEUED_MAX
  const queued = stored.queued + (isSkipped ? 0 : 1)
  if (isBusy) return { state: { ...state, queued }, runsAtMicros: null, isSkipped }
  return { state: { ...state, queued: queued - 1 }, runsAtMicros: nowMicros, isSkipped }
}

/** A clock that was ahead may have left a next time that is too late. */
function earliest(
  { nextAtMicros, lastDueAtMicros }: CronState,
  { times, nowMicros }: CronStepInput,
): bigint | null {
  if (nextAtMicros === null) return null
  const isAhead = lastDueAtMicros !== null && lastDueAtMicros > nowMicros
  const repeats = isAhead && lastDueAtMicros - nowMicros > REPEAT_MICROS_MAX
  const from = isAhead && !repeats ? lastDueAtMicros : nowMicros
  const next = times.after(from, null)
  return next !== null && next < nextAtMicros ? next : nextAtMicros
}
