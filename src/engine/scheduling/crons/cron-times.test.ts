/** The times of Crons: daylight saving, intervals, and expressions that a calendar rarely meets. */
import { describe, expect, test } from 'vitest'
import { cronTimes } from './cron-times.ts'

/** Returns the first `count` times of an expression after an instant, in ISO 8601. */
function times(schedule: string, timeZone: string, after: string, count: number): string[] {
  const calendar = cronTimes({ schedule, timeZone, everyMillis: null })
  const found: string[] = []
  let micros = BigInt(Date.parse(after)) * 1_000n
  while (found.length < count) {
    micros = calendar.after(micros, null)!
    found.push(new Date(Number(micros / 1_000n)).toISOString().replace(':00.000Z', 'Z'))
  }
  return found
}

describe('a local time that the zone skips', () => {
  // Rome changes at 01:00 UTC: 02:00 is followed by 03:00.
  test('runs once right after the change', () => {
    expect(times('30 2 * * *', 'Europe/Rome', '2026-03-28T12:00Z', 2)).toEqual([
      '2026-03-29T01:00Z',
      '2026-03-30T00:30Z',
    ])
  })

  test('a skipped time is one run together with others and with the time of the change', () => {
    expect(times('*/20 2,3 29 3 *', 'Europe/Rome', '2026-03-28T12:00Z', 4)).toEqual([
      '2026-03-29T01:00Z',
      '2026-03-29T01:20Z',
      '2026-03-29T01:40Z',
      '2027-03-29T00:00Z',
    ])
  })

  test('a skipped time is left out if every hour matches', () => {
    expect(times('30 * * * *', 'Europe/Rome', '2026-03-28T23:45Z', 3)).toEqual([
      '2026-03-29T00:30Z',
      '2026-03-29T01:30Z',
      '2026-03-29T02:30Z',
    ])
  })

  test('the skipped time may be midnight, half an hour, or a whole day', () => {
    expect(times('0 0 * * *', 'America/Santiago', '2026-09-05T12:00Z', 2)).toEqual([
      '2026-09-06T04:00Z',
      '2026-09-07T03:00Z',
    ])
    expect(times('15 2 4 10 *', 'Australia/Lord_Howe', '2026-10-01T00:00Z', 1)).toEqual([
      '2026-10-03T15:30Z',
    ])
    expect(times('0 12 * * *', 'Pacific/Apia', '2011-12-29T12:00Z', 3)).toEqual([
      '2011-12-29T22:00Z',
      '2011-12-30T10:00Z',
      '2011-12-30T22:00Z',
    ])
  })
})

describe('a local time that the zone repeats', () => {
  test('runs the first time only', () => {
    expect(times('30 2 * * *', 'Europe/Rome', '2026-10-24T12:00Z', 2)).toEqual([
      '2026-10-25T00:30Z',
      '2026-10-26T01:30Z',
    ])
  })

  test('a repeated time does not run again if the search begins inside the repetition', () => {
    expect(times('*/30 2 25 10 *', 'Europe/Rome', '2026-10-25T01:10Z', 1)).toEqual([
      '2027-10-25T00:00Z',
    ])
  })

  test('runs at every real minute where every hour matches', () => {
    expect(times('30 * 25 10 *', 'Europe/Rome', '2026-10-24T23:45Z', 3)).toEqual([
      '2026-10-25T00:30Z',
      '2026-10-25T01:30Z',
      '2026-10-25T02:30Z',
    ])
  })

  test('the repeated time may be the end of the day before', () => {
    // Santiago repeats 23:00 to 24:00 of April 4.
    expect(times('30 * 4 4 *', 'America/Santiago', '2026-04-05T02:15Z', 3)).toEqual([
      '2026-04-05T02:30Z',
      '2026-04-05T03:30Z',
      '2027-04-04T04:30Z',
    ])
    expect(times('30 23 * * *', 'America/Santiago', '2026-04-04T12:00Z', 2)).toEqual([
      '2026-04-05T02:30Z',
      '2026-04-06T03:30Z',
    ])
  })
})

test('either day is enough where both are given', () => {
  expect(times('0 0 13 * fri', 'UTC', '2026-02-01T00:00Z', 5)).toEqual([
    '2026-02-06T00:00Z',
    '2026-02-13T00:00Z',
    '2026-02-20T00:00Z',
    '2026-02-27T00:00Z',
    '2026-03-06T00:00Z',
  ])
  expect(times('0 0 */31 * mon', 'UTC', '2026-01-31T00:00Z', 2)).toEqual([
    '2026-02-01T00:00Z',
    '2026-02-02T00:00Z',
  ])
})

test('a leap day is found, also across a century without one', () => {
  expect(times('0 0 29 2 *', 'Europe/Rome', '2096-03-01T00:00Z', 1)).toEqual(['2104-02-28T23:00Z'])
})

test('an interval keeps its phase, and passed times are one', () => {
  const interval = cronTimes({ schedule: null, timeZone: null, everyMillis: 10_000 })
  expect(interval.after(5_000_000n, null)).toBe(15_000_000n)
  expect(interval.after(15_000_000n, 15_000_000n)).toBe(25_000_000n)
  expect(interval.after(99_000_000n, 15_000_000n)).toBe(105_000_000n)
})
