/** Crons: calls of Functions at times of a calendar or at intervals (contract/wire.md, Crons). */
import { DELAY_MILLIS_MAX } from './scheduled-work.ts'

export const CRON_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
/** @limit Crons: Crons of a Release */
export const CRONS_MAX = 256
/**
 * Milliseconds between two runs of a Cron with an interval.
 * @limit Crons: shortest interval of `every`
 */
export const INTERVAL_MILLIS_MIN = 1_000
/** Milliseconds between two runs of a Cron with an interval, 10 years. */
export const INTERVAL_MILLIS_MAX = DELAY_MILLIS_MAX
/** @limit Crons: runs that wait for the one before, with `overlap: "queue"` */
export const QUEUED_MAX = 100
/**
 * Characters of Stored JSON.
 * @limit Crons: arguments of a Cron, as stored JSON
 */
export const CRON_ARGUMENTS_CHARACTERS_MAX = 64 * 1024

/** A run that is due while the one before is still running is skipped, or waits for its end. */
export const OVERLAPS = ['skip', 'queue'] as const
export type Overlap = (typeof OVERLAPS)[number]
export const ACTIVATIONS = ['enabled', 'disabled'] as const
export type Activation = (typeof ACTIVATIONS)[number]

const ZONE = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/

/** Returns the declared times in words: the expression with its zone, or the interval. */
export function timesText(cron: {
  readonly schedule: string | null
  readonly timeZone: string | null
  readonly everyMillis: number | null
}): string {
  const { schedule, timeZone, everyMillis } = cron
  return everyMillis === null ? `${schedule} ${timeZone}` : `every ${everyMillis / 1_000} s`
}

/** Returns whether the text is UTC or the name of a zone of the IANA time zone database. */
export function isTimeZone(text: string): boolean {
  if (!ZONE.test(text)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: text })
    return true
  } catch {
    return false
  }
}
