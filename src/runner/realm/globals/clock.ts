/** The clock of a call, and the globals that read it. */
import { bridge } from '../bridge.ts'
import { type Call, runningCall } from '../calls.ts'
import { limits } from '../limits.ts'

/** Microseconds since the epoch: the one time of a Query or a Mutation, wall clock in an Action. */
export function callMicros(call: Call): bigint {
  if (limits.actions && !limits.fixedClock) return BigInt(Math.floor(bridge.nowMicros()))
  call.usedClock = true
  return BigInt(call.nowMicros)
}

/** Milliseconds since the epoch for the running call; 0 while the script loads. */
export function nowMillis(): number {
  const call = runningCall()
  return call === null ? 0 : Number(callMicros(call) / 1000n)
}

/** Returns `Date` with the clock of the running call. */
export function fixDate(): DateConstructor {
  const Real = Date
  const { construct } = Reflect

  function FixedDate(...parts: unknown[]): unknown {
    if (new.target === undefined) return new Real(nowMillis()).toString()
    return construct(Real, parts.length === 0 ? [nowMillis()] : parts, new.target)
  }
  Object.defineProperties(FixedDate, {
    length: { value: 7 },
    prototype: { value: Real.prototype, writable: false },
    now: { value: () => nowMillis(), writable: true, configurable: true },
    parse: { value: Real.parse, writable: true, configurable: true },
    UTC: { value: Real.UTC, writable: true, configurable: true },
  })
  Object.defineProperty(Real.prototype, 'constructor', { value: FixedDate })
  return FixedDate as unknown as DateConstructor
}

/** Gives Intl.DateTimeFormat the clock of the running call where it is given no date. */
export function fixFormats(): void {
  const prototype = Intl.DateTimeFormat.prototype
  const { apply, getOwnPropertyDescriptor } = Reflect
  const getFormat = getOwnPropertyDescriptor(prototype, 'format')!.get!
  const formatToParts = prototype.formatToParts
  Object.defineProperty(prototype, 'format', {
    get(this: Intl.DateTimeFormat) {
      const format = apply(getFormat, this, []) as (date: unknown) => string
      return (date?: unknown) => format(date === undefined ? nowMillis() : date)
    },
    configurable: true,
  })
  Object.defineProperty(prototype, 'formatToParts', {
    value(this: Intl.DateTimeFormat, date?: unknown) {
      return apply(formatToParts, this, [date === undefined ? nowMillis() : date])
    },
    writable: true,
    configurable: true,
  })
}

interface Zoned {
  toPlainDate(): unknown
  toPlainDateTime(): unknown
  toPlainTime(): unknown
}
interface Instant {
  toZonedDateTimeISO(zone: unknown): Zoned
}

/** Gives Temporal.Now the clock of the running call, if the engine has Temporal. */
export function fixTemporal(): void {
  const temporal = (globalThis as Record<string, unknown>).Temporal as
    | { Now: unknown; Instant: { fromEpochMilliseconds(millis: number): Instant } }
    | undefined
  if (temporal === undefined) return
  const { Instant } = temporal
  const instant = () => Instant.fromEpochMilliseconds(nowMillis())
  const zoned = (zone: unknown = 'UTC') => instant().toZonedDateTimeISO(zone)
  temporal.Now = {
    instant,
    timeZoneId: () => 'UTC',
    zonedDateTimeISO: zoned,
    plainDateISO: (zone?: unknown) => zoned(zone).toPlainDate(),
    plainDateTimeISO: (zone?: unknown) => zoned(zone).toPlainDateTime(),
    plainTimeISO: (zone?: unknown) => zoned(zone).toPlainTime(),
  }
}
