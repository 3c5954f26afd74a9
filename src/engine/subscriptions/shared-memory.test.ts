import { expect, test } from 'vitest'
import { MemoryBudget, type MemoryShare } from '../../system/memory/memory-budget.ts'
import { type Keeper, SharedMemory } from './shared-memory.ts'

/** Each address may hold 100 bytes. */
const budget = () => new MemoryBudget(400)

class Subscriber implements Keeper {
  isEvicted = false
  readonly memory: MemoryShare
  #shares: readonly MemoryShare[]

  constructor(memory: MemoryShare) {
    this.memory = memory
    this.#shares = [memory]
  }

  shares(): readonly MemoryShare[] {
    return this.#shares
  }

  leave(): void {
    this.#shares = []
  }

  evicted(): void {
    this.isEvicted = true
  }
}

function subscriber(whole: MemoryBudget, peer: string): Subscriber {
  return new Subscriber(whole.shareOf({ credential: null, peer }))
}

test('memory that several keep is charged once, and freed with the last of them', () => {
  const whole = budget()
  const [first, second] = [subscriber(whole, 'a'), subscriber(whole, 'b')]
  const memory = new SharedMemory(60)
  expect([memory.keep(first), memory.keep(second), memory.keep(first)]).toEqual([true, true, true])
  expect(whole.used).toBe(60)
  memory.drop(first)
  memory.drop(first)
  expect(whole.used).toBe(60)
  memory.drop(second)
  expect(whole.used).toBe(0)
})

test('the next keeper pays where the one that paid is gone', () => {
  const whole = budget()
  const [first, second] = [subscriber(whole, 'a'), subscriber(whole, 'b')]
  const memory = new SharedMemory(60)
  memory.keep(first)
  memory.keep(second)
  memory.drop(first)
  expect(whole.fits(60, second.memory.holder)).toBe(false)
  expect(whole.fits(100, first.memory.holder)).toBe(true)
  expect(second.isEvicted).toBe(false)
})

test('a keeper without room joins what another pays for, and is evicted with its payer', () => {
  const whole = budget()
  const [rich, poor] = [subscriber(whole, 'a'), subscriber(whole, 'b')]
  poor.memory.reserve(60)
  expect(new SharedMemory(60).keep(poor)).toBe(false)
  const memory = new SharedMemory(60)
  memory.keep(rich)
  expect(memory.keep(poor)).toBe(true)
  rich.leave()
  memory.left(rich, rich.memory)
  expect([rich.isEvicted, poor.isEvicted]).toEqual([true, true])
  expect(whole.used).toBe(60)
})
