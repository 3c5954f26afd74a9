/**
 * A table of Cron expressions and zones, with two references for their times. `cron-parser` is
 * another implementation, which treats changes of the local time in its own way. `definedTimes`
 * follows the definition minute by minute, and is too slow for more than some days.
 */
import { CronExpressionParser } from 'cron-parser'
import { cronTimes } from '../../src/engine/scheduling/crons/cron-times.ts'
import {
  type CronExpression,
  parseCronExpression,
} from '../../src/value/scheduling/cron-expressions.ts'

const MINUTES = ['0', '30', '5,35', '*/15', '50-59/3']
const HOURS = ['*', '0', '2', '3', '1-4', '*/6', '23', '0-3,12']
const DAYS = ['* * *', '* * mon-fri', '1,29-31 * *', '* mar,oct,nov sun', '13 * fri']

/** 200 expressions. */
export const EXPRESSIONS: readonly string[] = MINUTES.flatMap((minute) =>
  HOURS.flatMap((hour) => DAYS.map((days) => `${minute} ${hour} ${days}`)),
)

/** Zones with changes at night, at midnight, of half an hour, in both hemispheres, and without. */
export const ZONES: readonly string[] = [
  'UTC',
  'Europe/Rome',
  'Europe/London',
  'America/New_York',
  'America/Los_Angeles',
  'America/Santiago',
  'America/Sao_Paulo',
  'Africa/Cairo',
  'Asia/Kolkata',
  'Australia/Sydney',
  'Australia/Lord_Howe',
  'Pacific/Chatham',
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
 * Returns null if the other implementation has no answer. Changes of half an hour make it search
 * for ever, which it notices. Where a change is not at a whole hour of local time, it may go back
 * to a time that it has returned, and would repeat the times between for ever.
 */
export function otherTimes(
  schedule: string,
  timeZone: string,
  { from, until }: Window,
): number[] | null {
  const parsed = CronExpressionParser.parse(schedule, {
    currentDate: new Date(from - 1),
    tz: timeZone,
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
    if (next <= (found.at(-1) ?? 0)) return null
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
  const isEveryHour = expression.hours.length === 24
  return minutesOf(timeZone, window)
    .filter(({ local, isFirst, skipped }) => {
      if (isEveryHour) return fits(expression, local)
      return (isFirst && fits(expression, local)) || skipped.some((time) => fits(expression, time))
    })
    .map(({ at }) => at)
}

interface ZoneMinute {
  readonly at: number
  readonly local: number
  /** True if no earlier minute had this local time. */
  readonly isFirst: boolean
  /** The local times that are skipped right before it. */
  readonly skipped: readonly number[]
}

const knownMinutes = new Map<string, readonly ZoneMinute[]>()

/** Returns the minutes of a window. They are the same for all expressions, so they are kept. */
function minutesOf(timeZone: string, { from, until }: Window): readonly ZoneMinute[] {
  const key = `${timeZone} ${from} ${until}`
  const known = knownMinutes.get(key)
  if (known !== undefined) return known
  const clock = localClock(timeZone)
  const minutes: ZoneMinute[] = []
  const seen = new Set<number>()
  // Local times before the window may be repeated in it.
  let before = clock(from - DAY - MINUTE)
  for (let at = from - DAY; at < until; at += MINUTE) {
    const local = clock(at)
    const skipped: number[] = []
    for (let time = before + MINUTE; time < local; time += MINUTE) skipped.push(time)
    if (at >= from) minutes.push({ at, local, isFirst: !seen.has(local), skipped })
    seen.add(local)
    before = local
  }
  knownMinutes.set(key, minutes)
  return minutes
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
    timeZone,
    dateStyle: 'short',
    timeStyle: 'medium',
  })
  return (millis) => Date.parse(`${format.format(millis).replace(' ', 'T')}Z`)
}
