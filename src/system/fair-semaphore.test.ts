/** Permits that keys share, with a clock that the test moves. */
import { afterEach, describe, expect, test } from 'vitest'
import { FairSemaphore, type Release } from './fair-semaphore.ts'
import { TestSystem } from './system.ts'

const LIMITS = {
  permits: 4,
  permitsPerKey: 2,
  waiting: 6,
  waitingPerKey: 3,
  waitMillis: 10_000,
}

let leave = new AbortController()
afterEach(() => {
  leave.abort()
  leave = new AbortController()
})

function semaphoreOf(limits: Partial<typeof LIMITS> = {}) {
  const system = new TestSystem()
  const semaphore = new FairSemaphore(system, { ...LIMITS, ...limits }, 'work')
  /** Keys in the order in which they got a permit, and what returns each permit. */
  const granted: string[] = []
  const held = new Map<string, Release[]>()
  const failed: string[] = []
  const ask = (key: string, caller = leave.signal) =>
    semaphore.acquire(key, caller).then(
      (release) => {
        granted.push(key)
        held.set(key, [...(held.get(key) ?? []), release])
      },
      (error: { code: string }) => {
        failed.push(`${key} ${error.code}`)
      },
    )
  const giveBack = async (key: string) => {
    held.get(key)!.shift()!()
    await promisesResolved()
  }
  return { system, semaphore, granted, failed, ask, giveBack }
}

/** Waits until all promises that can be resolved are resolved. */
const promisesResolved = () => new Promise((resolve) => setImmediate(resolve))

async function requestAll(ask: (key: string) => Promise<void>, keys: string): Promise<void> {
  for (const key of keys) void ask(key)
  await promisesResolved()
}

describe('a key', () => {
  test('a key has half of the permits at most, also while no other key wants one', async () => {
    const { semaphore, granted, ask } = semaphoreOf()
    await requestAll(ask, 'aaaaa')
    expect([granted.join(''), semaphore.running, semaphore.waiting]).toEqual(['aa', 2, 3])
    await requestAll(ask, 'bb')
    expect(granted.join('')).toBe('aabb')
  })

  test('a key gets the permits that it returns, in the order of its requests', async () => {
    const { semaphore, granted, ask, giveBack } = semaphoreOf()
    await requestAll(ask, 'aaa')
    await giveBack('a')
    expect([granted.join(''), semaphore.running, semaphore.waiting]).toEqual(['aaa', 2, 0])
  })

  test('a key that sends many requests gets as many turns as one that sends few', async () => {
    const { granted, ask, giveBack } = semaphoreOf({ permitsPerKey: 4, waiting: 9 })
    await requestAll(ask, 'xxxx')
    await requestAll(ask, 'aaabbc')
    for (let i = 0; i < 4; i++) await giveBack('x')
    expect(granted.slice(4).join('')).toBe('abca')
    await giveBack('c')
    expect(granted.slice(4).join('')).toBe('abcab')
  })

  test('a key that has its half is passed over, and keeps its turn', async () => {
    const { granted, ask, giveBack } = semaphoreOf()
    await requestAll(ask, 'aabbabc')
    await giveBack('b')
    // `a` and `b` waited before `c`, and of these two only `b` may have another permit.
    expect(granted.join('')).toBe('aabbb')
    await giveBack('a')
    expect(granted.join('')).toBe('aabbba')
    await giveBack('a')
    expect(granted.join('')).toBe('aabbbac')
  })
})

describe('the queue', () => {
  test('the queue rejects a request beyond its length at once, of one key and of all', async () => {
    const { semaphore, failed, ask } = semaphoreOf()
    await requestAll(ask, 'aaaaaa')
    expect(failed).toEqual(['a BUSY'])
    await requestAll(ask, 'bbbbbc')
    expect([semaphore.waiting, failed]).toEqual([6, ['a BUSY', 'c BUSY']])
  })

  test('the queue rejects a request that waited for the whole time', async () => {
    const { system, semaphore, granted, failed, ask, giveBack } = semaphoreOf()
    await requestAll(ask, 'aaa')
    system.advance(6_000)
    await requestAll(ask, 'a')
    system.advance(4_000)
    await expect.poll(() => failed).toEqual(['a BUSY'])
    expect(semaphore.waiting).toBe(1)
    await giveBack('a')
    expect(granted).toHaveLength(3)
  })

  test('a request whose caller is gone leaves the queue', async () => {
    const { semaphore, granted, failed, ask, giveBack } = semaphoreOf()
    await requestAll(ask, 'aa')
    const caller = new AbortController()
    void ask('a', caller.signal)
    await requestAll(ask, 'a')
    caller.abort()
    await expect.poll(() => failed).toEqual(['a UNAVAILABLE'])
    expect(semaphore.waiting).toBe(1)
    await giveBack('a')
    expect([granted.join(''), semaphore.running]).toEqual(['aaa', 2])
  })

  test('the queue gives no permit to a request whose caller left at the same moment', async () => {
    const { semaphore, granted, failed, ask, giveBack } = semaphoreOf()
    await requestAll(ask, 'aa')
    const caller = new AbortController()
    void ask('a', caller.signal)
    await requestAll(ask, 'a')
    caller.abort()
    await giveBack('a')
    expect([failed, granted.join('')]).toEqual([['a UNAVAILABLE'], 'aaa'])
    expect([semaphore.running, semaphore.waiting]).toEqual([2, 0])
  })

  test('a queue of length 0 makes every request beyond the permits busy at once', async () => {
    const { granted, failed, ask } = semaphoreOf({ waiting: 0, waitingPerKey: 0 })
    await requestAll(ask, 'aaa')
    expect([granted.join(''), failed]).toEqual(['aa', ['a BUSY']])
  })
})

test('many requests of many keys all get a permit, and never too many have one', async () => {
  const semaphore = new FairSemaphore(
    new TestSystem(),
    {
      ...LIMITS,
      waiting: 90,
      waitingPerKey: 9,
    },
    'work',
  )
  const running = new Map<string, number>()
  const work = async (key: string): Promise<void> => {
    const release = await semaphore.acquire(key)
    running.set(key, (running.get(key) ?? 0) + 1)
    expect(running.get(key)).toBeLessThanOrEqual(2)
    expect([...running.values()].reduce((sum, count) => sum + count)).toBeLessThanOrEqual(4)
    await promisesResolved()
    running.set(key, running.get(key)! - 1)
    release()
  }
  await Promise.all(Array.from({ length: 90 }, (_, n) => work(`key ${n % 10}`)))
  expect([semaphore.running, semaphore.waiting]).toEqual([0, 0])
})
