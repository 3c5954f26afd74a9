/** The one time that an invocation sees, and the ways of JavaScript to ask for it. */

/** `now` answers the invocation's milliseconds and notes that it was asked. */
export function makeDate(now: () => number): DateConstructor {
  const Real = Date
  const { construct } = Reflect

  function FixedDate(...parts: unknown[]): unknown {
    if (new.target === undefined) return new Real(now()).toString()
    return construct(Real, parts.length === 0 ? [now()] : parts, new.target)
  }
  Object.defineProperties(FixedDate, {
    name: { value: 'Date' },
    length: { value: 7 },
    prototype: { value: Real.prototype, writable: false },
    now: { value: () => now(), writable: true, configurable: true },
    parse: { value: Real.parse, writable: true, configurable: true },
    UTC: { value: Real.UTC, writable: true, configurable: true },
  })
  Object.defineProperty(Real.prototype, 'constructor', { value: FixedDate })
  return FixedDate as unknown as DateConstructor
}

/** Intl.DateTimeFormat reads the real clock where it is given no date. */
export function makeFixedFormats(now: () => number): void {
  const prototype = Intl.DateTimeFormat.prototype
  const { apply, getOwnPropertyDescriptor } = Reflect
  const getFormat = getOwnPropertyDescriptor(prototype, 'format')!.get!
  const formatToParts = prototype.formatToParts
  Object.defineProperty(prototype, 'format', {
    get(this: Intl.DateTimeFormat) {
      const format = apply(getFormat, this, []) as (date: unknown) => string
      return (date?: unknown) => format(date === undefined ? now() : date)
    },
    configurable: true,
  })
  Object.defineProperty(prototype, 'formatToParts', {
    value(this: Intl.DateTimeFormat, date?: unknown) {
      return apply(formatToParts, this, [date === undefined ? now() : date])
    },
    writable: true,
    configurable: true,
  })
}

/** Temporal.Now, where the engine has Temporal. */
export function makeFixedTemporal(now: () => number): void {
  interface Zoned {
    toPlainDate(): unknown
    toPlainDateTime(): unknown
    toPlainTime(): unknown
  }
  interface Instant {
    toZonedDateTimeISO(zone: unknown): Zoned
  }
  const temporal = (globalThis as Record<string, unknown>).Temporal as
    | { Now: unknown; Instant: { fromEpochMilliseconds(millis: number): Instant } }
    | undefined
  if (temporal === undefined) return
  const { Instant } = temporal
  const instant = () => Instant.fromEpochMilliseconds(now())
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
