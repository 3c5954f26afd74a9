import { expect, test } from 'vitest'
import { realSystem } from '../../system/system.ts'
import { LockManager } from './lock-manager.ts'

const system = realSystem()
const within = (millis: number): number => system.monotonicMillis() + millis

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )

test('waiters get the lock on a key in the order in which they requested it', async () => {
  const locks = new LockManager(system)
  const order: number[] = []
  const first = await locks.acquire(['a'], within(600_000))
  const others = [1, 2, 3].map(async (number) => {
    const lock = await locks.acquire(['a'], within(600_000))
    order.push(number)
    lock.release()
  })
  expect(locks.lockedByOther(['b', 'a'], null)).toBe('a')
  expect(locks.lockedByOther(['a'], first)).toBeNull()
  first.release()
  first.release()
  await Promise.all(others)
  expect(order).toEqual([1, 2, 3])
  expect(locks.size).toBe(0)
})

test('a waiter whose deadline passes releases its keys and delays no later waiter', async () => {
  const locks = new LockManager(system)
  const first = await locks.acquire(['b'], within(600_000))
  // It has locked `a` already and waits for `b`.
  const expired = codeOf(locks.acquire(['b', 'a'], within(20)))
  const later = locks.acquire(['a', 'b'], within(600_000))
  const startedAt = system.monotonicMillis()
  expect(await expired).toBe('DEADLINE_EXCEEDED')
  expect(system.monotonicMillis() - startedAt).toBeLessThan(60_000)
  first.release()
  const lock = await later
  expect(['a', 'b', 'c'].map((key) => locks.isLocked(key))).toEqual([true, true, false])
  lock.release()
  expect(locks.size).toBe(0)
})

test('200 owners of three keys each all get their locks and never share one', async () => {
  const locks = new LockManager(system)
  const lockedKeys = new Set<string>()
  const lockAndRelease = async (number: number): Promise<void> => {
    const keys = [number % 3, number % 5, number % 7].map(String)
    const lock = await locks.acquire(keys, within(30_000))
    for (const key of lock.keys) {
      expect(lockedKeys.has(key)).toBe(false)
      lockedKeys.add(key)
    }
    await new Promise((resolve) => setImmediate(resolve))
    for (const key of lock.keys) lockedKeys.delete(key)
    lock.release()
  }
  await Promise.all(Array.from({ length: 200 }, (_, number) => lockAndRelease(number)))
  expect(locks.size).toBe(0)
})
