/**
 * A part of the table of Cron expressions: cron-table.long.test.ts has all of it. Around a change
 * of local time the definition decides, elsewhere another implementation has the same times.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest'
import {
  around,
  changesOf,
  definedTimes,
  EXPRESSIONS,
  FROM,
  isNear,
  otherTimes,
  ourTimes,
} from '../../../../testing/crons/cron-table.ts'

const PART = EXPRESSIONS.filter((_, i) => i % 23 === 0)

test.each(['Europe/Rome', 'Australia/Lord_Howe', 'America/Santiago'])(
  'times follow their definition around a change of local time: %s',
  (zone) => {
    const changes = changesOf(zone).slice(0, 2)
    expect(changes).toHaveLength(2)
    for (const schedule of PART) {
      for (const at of changes) {
        const window = around(at)
        expect(ourTimes(schedule, zone, window), schedule).toEqual(
          definedTimes(schedule, zone, window),
        )
      }
    }
  },
)

test('times are those of another implementation apart from changes of local time', () => {
  const window = { from: FROM, until: Date.UTC(2026, 1, 15) }
  const changes = changesOf('America/New_York')
  const away = (times: readonly number[]) => times.filter((at) => !isNear(at, changes))
  for (const schedule of PART) {
    const [ours, others] = [ourTimes, otherTimes].map((of) =>
      away(of(schedule, 'America/New_York', window)!),
    )
    expect(ours, schedule).toEqual(others)
  }
})
