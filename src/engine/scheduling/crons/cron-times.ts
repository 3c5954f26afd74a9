/**
 * The times of a Cron. An expression is read in the local time of its zone (contract/wire.md,
 * Crons). Where every hour matches, it runs at every real minute that fits. Otherwise it runs once
 * a local time: a time that the zone skips runs right after the change, a repeated time the first
 * time only.
 */
import { Cron } from 'croner'
import {
  type CronExpression,
  numericExpression,
  parseCronExpression,
} from '../../../value/scheduling/cron-expressions.ts'
import { Zone } from './zones.ts'

export interface CronTimes {
  /**
   * Returns the first time after the instant; null if there is none. `anchor` is a time of the
   * Cron, from which intervals are counted, or null. Microseconds since the Unix epoch.
   */
  after(micros: bigint, anchor: bigint | null): bigint | null
}

export interface DeclaredTimes {
  readonly schedule: string | null
  readonly timeZone: string | null
  readonly everyMillis: number | null
}

const MINUTE_MILLIS = 60_000
const HOURS = 24

/** Throws ValidationError for an expression, and RangeError for a zone, that a manifest rejects. */
export function cronTimes({ schedule, timeZone, everyMillis }: DeclaredTimes): CronTimes {
  if (schedule !== null) return new CalendarTimes(parseCronExpression(schedule), timeZone ?? 'UTC')
  const everyMicros = BigInt(everyMillis!) * 1_000n
  return {
    after(micros, anchor) {
      if (anchor === null) return micros + everyMicros
      if (anchor > micros) return anchor
      return anchor + ((micros - anchor) / everyMicros + 1n) * everyMicros
    },
  }
}

class CalendarTimes implements CronTimes {
  readonly #zone: Zone
  readonly #everyHour: boolean
  /** Local times are handled as if they were UTC. */
  readonly #cron: Cron

  constructor(expression: CronExpression, timeZone: string) {
    this.#zone = new Zone(timeZone)
    this.#everyHour = expression.hours.length === HOURS
    this.#cron = new Cron(numericExpression(expression), { utcOffset: 0 })
  }

  after(micros: bigint): bigint | null {
    const millis = Number(micros / 1_000n)
    const next = (Math.floor(millis / MINUTE_MILLIS) + 1) * MINUTE_MILLIS
    const found = this.#everyHour ? this.#everyFrom(next) : this.#onceFrom(next)
    return found === null ? null : BigInt(found) * 1_000n
  }

  /** Returns the first instant from this one on whose local time fits. */
  #everyFrom(millis: number): number | null {
    for (let from = millis; ; ) {
      const { offsetMillis, untilMillis } = this.#zone.periodAt(from)
      const local = this.#localFrom(from + offsetMillis)
      if (local === null) return null
      if (local - offsetMillis < untilMillis) return local - offsetMillis
      from = wholeMinute(untilMillis)
    }
  }

  /** Returns the first instant from this one on for a local time that had none before. */
  #onceFrom(millis: number): number | null {
    let period = this.#zone.periodAt(millis)
    let localMillis = millis + period.offsetMillis
    const change = this.#zone.changeBefore(millis)
    if (change !== null) {
      const before = change.atMillis + change.beforeMillis
      if (change.beforeMillis > period.offsetMillis) localMillis = Math.max(localMillis, before)
      else if (millis === change.atMillis && this.#skips(before, localMillis)) return millis
    }
    for (;;) {
      const { offsetMillis, untilMillis } = period
      const local = this.#localFrom(localMillis)
      if (local === null) return null
      if (local - offsetMillis < untilMillis) return local - offsetMillis
      period = this.#zone.periodAt(untilMillis)
      const [before, after] = [offsetMillis, period.offsetMillis].map((each) => untilMillis + each)
      if (this.#skips(before!, after!)) return wholeMinute(untilMillis)
      localMillis = Math.max(before!, after!)
    }
  }

  /** Returns whether a change from one local time to the other skips a time of the Cron. */
  #skips(before: number, after: number): boolean {
    if (after <= before) return false
    const local = this.#localFrom(before)
    return local !== null && local < after
  }

  /** Returns the first local time from this one on that fits; null if the calendar ends. */
  #localFrom(localMillis: number): number | null {
    // The search begins a second after what it is given.
    return this.#cron.nextRun(new Date(localMillis - 1_000))?.getTime() ?? null
  }
}

/** Rounds up: some changes of the past were not at a whole minute of UTC. */
function wholeMinute(millis: number): number {
  return Math.ceil(millis / MINUTE_MILLIS) * MINUTE_MILLIS
}
