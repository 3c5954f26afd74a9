import { describe, expect, test } from 'vitest'
import { type Counts, OwnCounts, SharedCounts, sharedCountsBytes } from './shared-counts.ts'

function shared(processes: number, memory = new BigInt64Array(sharedCountsBytes(processes) / 8)) {
  return (number: number) => new SharedCounts(memory, { processes, number, salt: 'salt' })
}

describe.each([
  ['one process', () => new OwnCounts()],
  ['shared memory', () => shared(3)(1)],
] as const)('counts of %s', (_, open: () => Counts) => {
  test('a key is counted up to its bound, and again once one was released', () => {
    const counts = open()
    expect([counts.take('a', 2), counts.take('a', 2), counts.take('a', 2)]).toEqual([
      true,
      true,
      false,
    ])
    expect([counts.count('a'), counts.count('b')]).toEqual([2, 0])
    counts.release('a')
    expect(counts.count('a')).toBe(1)
    expect([counts.take('a', 2), counts.take('a', 2)]).toEqual([true, false])
    expect(counts.take('b', 1)).toBe(true)
  })
})

test('a bound holds for all processes together', () => {
  const open = shared(3)
  const [main, one, other] = [open(0), open(1), open(2)]
  expect(one.take('a', 3)).toBe(true)
  expect(other.take('a', 3)).toBe(true)
  expect(main.take('a', 3)).toBe(true)
  expect([main, one, other].map((each) => each.take('a', 3))).toEqual([false, false, false])
  expect(one.count('a')).toBe(3)
  other.release('a')
  expect(one.take('a', 3)).toBe(true)
})

test('the counts of a process that has ended can be removed', () => {
  const memory = new BigInt64Array(sharedCountsBytes(3) / 8)
  const open = shared(3, memory)
  const [one, killed] = [open(1), open(2)]
  one.take('a', 10)
  for (let i = 0; i < 5; i++) killed.take('a', 10)
  expect(one.count('a')).toBe(6)
  SharedCounts.clear(memory, { processes: 3, number: 2 })
  expect(one.count('a')).toBe(1)
})

test('among a thousand keys a bound is never exceeded, and rarely met early', () => {
  const open = shared(2)
  const [one, other] = [open(0), open(1)]
  let early = 0
  for (let key = 0; key < 1_000; key++) {
    const taken = [one, other, one, other, one].map((each) => each.take(`address ${key}`, 4))
    expect(taken.filter((isTaken) => isTaken).length).toBeLessThanOrEqual(4)
    if (taken.filter((isTaken) => isTaken).length < 4) early += 1
  }
  expect(early).toBeLessThan(50)
})
