import { expect, test } from 'vitest'
import { MemoryBudget } from './memory-budget.ts'

const holder = (peer: string, credential: string | null = null) => ({ peer, credential })

test('a peer gets a quarter of the budget, and others get the rest', () => {
  const budget = new MemoryBudget(100)
  expect(budget.reserve(25, holder('a'))).not.toBeNull()
  expect(budget.reserve(1, holder('a'))).toBeNull()
  for (const peer of ['b', 'c', 'd']) expect(budget.reserve(25, holder(peer))).not.toBeNull()
  expect(budget.reserve(1, holder('e'))).toBeNull()
  expect(budget.used).toBe(100)
})

test('a credential gets half of the budget, from however many peers', () => {
  const budget = new MemoryBudget(100)
  const reserved = ['a', 'b', 'c'].map((peer) => budget.reserve(25, holder(peer, 'key')))
  expect(reserved.map((each) => each !== null)).toEqual([true, true, false])
  expect(budget.reserve(25, holder('c', 'other'))).not.toBeNull()
})

test('released memory is available again, and a second release does nothing', () => {
  const budget = new MemoryBudget(100)
  const first = budget.reserve(25, holder('a', 'key'))!
  budget.reserve(10, holder('b'))
  first.release()
  first.release()
  expect(budget.used).toBe(10)
  expect(budget.fits(25, holder('a', 'key'))).toBe(true)
})
