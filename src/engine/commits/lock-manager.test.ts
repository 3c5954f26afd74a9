import { expect, test } from 'vitest'
import { realSystem } from '../../system/system.ts'
import { LockManager } from './lock-manager.ts'

const system = realSystem()
const within = (millis: number): number => system.monotonicMillis() + millis

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )

test('a key goes to those who wait for it in the order in which they came', async () => {
  const tickets = new LockManager(system)
  const order: number[] = []
  const first = await tickets.acquire(['a'], within(10_000))
  const others = [1, 2, 3].map(async (n) => {
    const ticket = await tickets.acquire(['a'], within(10_000))
    order.push(n)
    ticket.release()
  })
  expect(tickets.heldByOther(['b', 'a'], null)).toBe('a')
  expect(tickets.heldByOther(['a'], first)).toBeNull()
  first.release()
  first.release()
  await Promise.all(others)
  expect(order).toEqual([1, 2, 3])
  expect(tickets.size).toBe(0)
})

test('whoever waits beyond the deadline leaves the line, and holds up nobody behind', async () => {
  const tickets = new LockManager(system)
  const first = await tickets.acquire(['b'], within(10_000))
  // It has `a` already and waits for `b`.
  const late = codeOf(tickets.acquire(['b', 'a'], within(20)))
  const patient = tickets.acquire(['a', 'b'], within(10_000))
  const startedAt = system.monotonicMillis()
  expect(await late).toBe('DEADLINE_EXCEEDED')
  expect(system.monotonicMillis() - startedAt).toBeLessThan(5_000)
  first.release()
  const ticket = await patient
  expect(tickets.held(['a', 'b'])).toEqual(['a', 'b'])
  ticket.release()
  expect(tickets.size).toBe(0)
})

test('many who wait for many keys all get them', async () => {
  const tickets = new LockManager(system)
  const holding = new Set<string>()
  const work = async (n: number): Promise<void> => {
    const keys = [n % 3, n % 5, n % 7].map(String)
    const ticket = await tickets.acquire(keys, within(30_000))
    for (const key of ticket.keys) {
      expect(holding.has(key)).toBe(false)
      holding.add(key)
    }
    await new Promise((resolve) => setImmediate(resolve))
    for (const key of ticket.keys) holding.delete(key)
    ticket.release()
  }
  await Promise.all(Array.from({ length: 200 }, (_, n) => work(n)))
  expect(tickets.size).toBe(0)
})
