/** Time zones: the offsets of local time from UTC, and the instants at which they change. */

const DAY_MILLIS = 86_400_000
/** Two changes of a zone are further apart: equal offsets at both ends mean none between. */
const STRIDE_MILLIS = 7 * DAY_MILLIS
/** Search window for the next change of offset; the period of a zone without changes. */
const PERIOD_MILLIS = 400 * DAY_MILLIS
/** No change of a zone repeats, or skips, more of the local time. */
const CHANGE_MILLIS_MAX = 26 * 3_600_000
const PERIODS_KEPT = 8

/** A period in which the offset does not change. Milliseconds since the Unix epoch. */
export interface OffsetPeriod {
  readonly fromMillis: number
  /** Exclusive. The offset changes here, or the search ended. */
  readonly untilMillis: number
  readonly offsetMillis: number
}

/** A change of the offset. */
export interface OffsetChange {
  readonly atMillis: number
  readonly beforeMillis: number
}

export class Zone {
  readonly #format: Intl.DateTimeFormat
  #periods: OffsetPeriod[] = []

  /** Throws RangeError for an unknown zone. */
  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'iso8601',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** Returns local time minus UTC at the instant. */
  offsetAt(millis: number): number {
    const parts: Record<string, number> = {}
    for (const { type, value } of this.#format.formatToParts(millis)) parts[type] = Number(value)
    const { year, month, day, hour, minute, second } = parts as { [part: string]: number }
    const local = Date.UTC(year!, month! - 1, day!, hour!, minute!, second!)
    return local - Math.floor(millis / 1_000) * 1_000
  }

  /** Returns a period that begins at the instant or before it. */
  periodAt(millis: number): OffsetPeriod {
    const known = this.#periods.find(
      ({ fromMillis, untilMillis }) => fromMillis <= millis && millis < untilMillis,
    )
    if (known !== undefined) return known
    const offsetMillis = this.offsetAt(millis)
    let last = millis
    while (last < millis + PERIOD_MILLIS) {
      const next = last + STRIDE_MILLIS
      if (this.offsetAt(next) === offsetMillis) last = next
      else {
        last = this.#changeBetween(last, next)
        break
      }
    }
    const period = { fromMillis: millis, untilMillis: last, offsetMillis }
    this.#periods = [period, ...this.#periods].slice(0, PERIODS_KEPT)
    return period
  }

  /** Returns the change whose skipped or repeated local times are near the instant, or null. */
  changeBefore(millis: number): OffsetChange | null {
    const beforeMillis = this.offsetAt(millis - CHANGE_MILLIS_MAX)
    if (beforeMillis === this.offsetAt(millis)) return null
    return { atMillis: this.#changeBetween(millis - CHANGE_MILLIS_MAX, millis), beforeMillis }
  }

  /** Returns the first instant, of a whole second, with another offset than that at `from`. */
  #changeBetween(from: number, to: number): number {
    const offsetMillis = this.offsetAt(from)
    let same = Math.floor(from / 1_000)
    let other = Math.ceil(to / 1_000)
    while (other - same > 1) {
      const middle = Math.floor((same + other) / 2)
      if (this.offsetAt(middle * 1_000) === offsetMillis) same = middle
      else other = middle
    }
    return other * 1_000
  }
}
