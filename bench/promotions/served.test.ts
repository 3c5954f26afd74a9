import { expect, test } from 'vitest'
import { type Promotion, wasServed } from './served.ts'

const PROMOTIONS: readonly Promotion[] = [
  { releaseId: 'first', requestedAt: 0, effectiveAt: 1 },
  { releaseId: 'second', requestedAt: 10, effectiveAt: 12 },
  { releaseId: 'third', requestedAt: 20, effectiveAt: 25 },
  { releaseId: 'first', requestedAt: 30, effectiveAt: 31 },
]

test.each([
  ['first', 2, 3, true],
  ['first', 11, 13, true],
  ['first', 13, 14, false],
  ['first', 13, 31, true],
  ['second', 5, 9, false],
  ['second', 5, 10, true],
  ['second', 24, 40, true],
  ['second', 26, 40, false],
  ['third', 12, 19, false],
  ['third', 31, 32, true],
  ['third', 32, 33, false],
  ['first', 32, 33, true],
  ['never promoted', 0, 100, false],
])(
  'a response from %s, requested at %i and received at %i, is from a served Release: %s',
  (...row) => {
    const [releaseId, sent, received, expected] = row
    expect(wasServed(PROMOTIONS, { releaseId, sent, received })).toBe(expected)
  },
)
