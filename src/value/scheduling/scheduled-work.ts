/**
 * Scheduled work: names, states and bounds (contract/wire.md, Scheduled work). Each piece is a
 * document of a reserved table.
 */

/**
 * The table of the document store that holds scheduled work. Its name is the prefix of its IDs, so
 * no author can declare it.
 */
export const SCHEDULED_DOCUMENTS = 'sch'
/** The table of the document store that holds when each Cron runs next. */
export const CRON_DOCUMENTS = 'crn'

/**
 * `running` is a state of Actions alone: a Mutation is pending until the commit that completes it.
 */
export const SCHEDULED_STATES = ['pending', 'running', 'succeeded', 'failed', 'canceled'] as const
export type ScheduledState = (typeof SCHEDULED_STATES)[number]
/** The origin of the work: the code of a Function, a Cron, or a request of another service. */
export const SCHEDULED_SOURCES = ['function', 'cron', 'http'] as const
export type ScheduledSource = (typeof SCHEDULED_SOURCES)[number]

/** @limit Scheduled work: pieces that one call schedules */
export const SCHEDULES_MAX = 1_024
/** @limit Scheduled work: pending pieces of an Environment */
export const PENDING_MAX = 1_000_000
/**
 * Milliseconds between a call and the work that it schedules, 10 years.
 * @limit Scheduled work: delay of `ctx.scheduler.runAfter`
 */
export const DELAY_MILLIS_MAX = 3_650 * 24 * 3_600_000

/** Milliseconds of the units of a duration. */
export const DURATION_UNITS = {
  milliseconds: 1,
  seconds: 1_000,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
} as const
export type DurationUnit = keyof typeof DURATION_UNITS
/** A duration is the sum of its units, each of which is a finite number from 0. */
export type Duration = { readonly [Unit in DurationUnit]?: number }

/** @limit Scheduled work: attempts of an Action that declares `retry` */
export const ATTEMPTS_MAX = 100
/**
 * Milliseconds between two attempts, 1 day.
 * @limit Scheduled work: pause between two attempts of an Action
 */
export const BACKOFF_MILLIS_MAX = 86_400_000
/** Most times that a pause is longer than the one before. */
export const BACKOFF_FACTOR_MAX = 100

/**
 * Returns whole milliseconds, rounded up; null unless the value is a duration up to 10 years. A
 * unit that is undefined counts as absent, and a duration has at least one.
 */
export function durationMillis(value: unknown): number | null {
  if (typeof value !== 'object' || value === null) return null
  let total = 0
  const parts = Object.entries(value).filter(([, amount]) => amount !== undefined)
  for (const [unit, amount] of parts) {
    if (!Object.hasOwn(DURATION_UNITS, unit)) return null
    if (typeof amount !== 'number' || !(amount >= 0)) return null
    total += amount * DURATION_UNITS[unit as DurationUnit]
  }
  const millis = Math.ceil(total)
  return parts.length > 0 && millis <= DELAY_MILLIS_MAX ? millis : null
}
