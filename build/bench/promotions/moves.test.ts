import { expect, test } from 'vitest'
import { isOfServed, type Move } from './moves.ts'

const MOVES: readonly Move[] = [
  { releaseId: 'a', asked: 0, effective: 1 },
  { releaseId: 'b', asked: 10, effective: 12 },
  { releaseId: 'c', asked: 20, effective: 25 },
  { releaseId: 'a', asked: 30, effective: 31 },
]

test.each([
  ['a', 2, 3, true],
  ['a', 11, 13, true],
  ['a', 13, 14, false],
  ['a', 13, 31, true],
  ['b', 5, 9, false],
  ['b', 5, 10, true],
  ['b', 24, 40, true],
  ['b', 26, 40, false],
  ['c', 12, 19, false],
  ['c', 31, 32, true],
  ['c', 32, 33, false],
  ['a', 32, 33, true],
  ['d', 0, 100, false],
])('an answer of %s to what was asked at %i and answered at %i: %s', (...row) => {
  const [releaseId, sent, received, expected] = row
  expect(isOfServed(MOVES, { releaseId, sent, received })).toBe(expected)
})
