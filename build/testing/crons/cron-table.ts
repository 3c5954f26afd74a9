/**
 * A table of Cron expressions and zones, with two references for their times. `cron-parser` is
 * another implementation, which treats changes of the local time in its own way. `definedTimes`
 * follows the definition minute by minute, and is too slow for more than some days.
 */
import { CronExpressionParser } from 'cron-parser'
import { cronTimes } from '../../../src/engine/scheduling/crons/cron-times.ts'
import {
  type CronExpression,
  parseCronExpression,
} from '../../../src/value/scheduling/cron-expressions.ts'

const MINUTES = ['0', '30', '5,35', '*/15', '50-59/3']
const HOURS = ['*', '0', '2', '3', '1-4', '*/6', '23', '0-3,12']
const DAYS = ['* * *', '* * mon-fri', '1,29-31 * *', '* mar,oct,nov sun', '13 * fri']

/** 200 expressions. */
export const EXPRESSIONS: readonly string[] = MINUTES.flatMap((minute) =>
  HOURS.flatMap((hour) => DAYS.map((days) => `${minute} ${hour} ${days}`)),
)

/** Zones with changes at night, at midnight, of half an hour, in both hemispheres, and without. */
export const ZONES: readonly string[] = [
  ...['UTC', 'Europe/Rome', 'Europe/London', 'America/New_York', 'America/Los_Angeles'],
  ...['America/Santiago', 'America/Sao_Paulo', 'Africa/Cairo', 'Asia/Kolkata'],
  ...['Australia/Sydney', 'Australia/Lord_Howe', 'Pacific/Chatham'],
]

export const FROM = Date.UTC(2026, 0, 1)
export const UNTIL = Date.UTC(2028, 0, 1)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** Times so close to a change may differ from those of the other implementation. */
const NEAR_MILLIS = 4 * HOUR

export interface Window {
  readonly from: number
  readonly until: number
}

export function ourTimes(schedule: string, timeZone: string, { from, until }: Window): number[] {
  const times = cronTimes({ schedule, timeZone, everyMillis: null })
  const found: number[] = []
  for (let micros = BigInt(from) * 1_000n - 1n; ; ) {
    const next = times.after(micros, null)
    if (next === null || next >= BigInt(until) * 1_000n) return found
    found.push(Number(next / 1_000n))
    micros = next
  }
}

/**
 * Returns null where the other implementation gives up: changes of half an hour make it search for
 * ever, which it notices.
 */
export function otherTimes(
  schedule: string,
  timeZone: string,
  { from, until }: Window,
): number[] | null {
  const parsed = CronExpressionParser.parse(schedule, {
    ...{ currentDate: new Date(from - 1), tz: timeZone },
  })
  const found: number[] = []
  for (;;) {
    let next: number
    try {
      next = parsed.next().getTime()
    } catch (error) {
      if (/loop limit exceeded/.test(String(error))) return null
      throw error
    }
    if (next >= until) return found
    found.push(next)
  }
}

/** The instants within the two years at which local time changes, found minute by minute. */
export function changesOf(timeZone: string): number[] {
  const local = localClock(timeZone)
  const offset = (millis: number) => local(millis) - millis
  const changes: number[] = []
  for (let day = FROM; day < UNTIL; day += DAY) {
    if (offset(day) === offset(day + DAY)) continue
    for (let at = day + MINUTE; at <= day + DAY; at += MINUTE) {
      if (offset(at) !== offset(at - MINUTE)) changes.push(at)
    }
  }
  return changes
}

export function isNear(millis: number, changes: readonly number[]): boolean {
  return changes.some((at) => Math.abs(millis - at) <= NEAR_MILLIS)
}

/** The days around a change, and the change. */
export function around(at: number): Window {
  return { from: at - DAY, until: at + DAY }
}

/**
 * Follows the definition: each minute that fits where every hour matches; otherwise the first
 * minute of each local time that fits, and the minute after a change that skips such times.
 */
export function definedTimes(schedule: string, timeZone: string, window: Window): number[] {
  const expression = parseCronExpression(schedule)
  const local = localClock(timeZone)
  const isEveryHour = expression.hours.length === 24
  const found: number[] = []
  const seen = new Set<number>()
  // Local times before the window may be repeated in it.
  for (let at = window.from - DAY; at < window.until; at += MINUTE) {
    const time = local(at)
    const before = local(at - MINUTE)
    const isFirst = !seen.has(time)
    seen.add(time)
    let runs = fits(expression, time) && (isEveryHour || isFirst)
    if (!isEveryHour) {
      for (let skipped = before + MINUTE; skipped < time; skipped += MINUTE) {
        runs ||= fits(expression, skipped)
      }
    }
    if (runs && at >= window.from) found.push(at)
  }
  return found
}

function fits(expression: CronExpression, localMillis: number): boolean {
  const date = new Date(localMillis)
  const { minutes, hours, months, daysOfMonth, daysOfWeek } = expression
  if (!minutes.includes(date.getUTCMinutes()) || !hours.includes(date.getUTCHours())) return false
  if (!months.includes(date.getUTCMonth() + 1)) return false
  const ofMonth = daysOfMonth?.includes(date.getUTCDate())
  const ofWeek = daysOfWeek?.includes(date.getUTCDay())
  return ofMonth === undefined || ofWeek === undefined
    ? (ofMonth ?? ofWeek ?? true)
    : ofMonth || ofWeek
}

/** Returns local time as if it were UTC, from the text that the runtime prints. */
function localClock(timeZone: string): (millis: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', {
    ...{ timeZone, dateStyle: 'short', timeStyle: 'medium' },
  })
  return (millis) => Date.parse(`${format.format(millis).replace(' ', 'T')}Z`)
}
