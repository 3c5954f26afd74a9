import { expect, test } from 'vitest'
import { durationMillis } from './scheduled-work.ts'

test('a duration is the sum of its units, rounded up', () => {
  expect(durationMillis({ minutes: 1, seconds: 0.0015 })).toBe(60_002)
  expect(durationMillis({ seconds: 0 })).toBe(0)
  expect(durationMillis({ hours: 1, minutes: undefined })).toBe(3_600_000)
})

test.each([
  {},
  [],
  { seconds: undefined },
  new Date(0),
  null,
  undefined,
  5,
  '5 s',
  { weeks: 1 },
  { hours: '1' },
  { hours: -1 },
  { hours: Number.NaN },
  { days: 3_651 },
])('%j is not a duration', (value) => {
  expect(durationMillis(value)).toBeNull()
})
