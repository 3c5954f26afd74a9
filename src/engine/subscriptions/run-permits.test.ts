import { expect, test } from 'vitest'
import { nextTurn } from '../../system/event-loop.ts'
import { MemoryBudget } from '../../system/memory/memory-budget.ts'
import { RunPermits } from './run-permits.ts'

const shares = new MemoryBudget(1)
const of = (peer: string, credential: string | null = null) => [
  shares.shareOf({ peer, credential }),
]

/** Starts runs that the test ends, and records those that have begun. */
class Runs {
  readonly begun: string[] = []
  readonly #ends = new Map<string, () => void>()
  readonly #permits: RunPermits

  constructor(permits: RunPermits) {
    this.#permits = permits
  }

  start(name: string, bytes: number, holder: ReturnType<typeof of>): Promise<string | null> {
    return this.#permits.use(this.key(name), { shares: holder, bytes }, async () => {
      this.begun.push(name)
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#ends.set(name, resolve)
      await promise
      return name
    })
  }

  readonly #keys = new Map<string, object>()
  key(name: string): object {
    const key = this.#keys.get(name) ?? {}
    this.#keys.set(name, key)
    return key
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)!()
    await nextTurn()
  }
}

test('an address with many runs takes a quarter, and others start at once', async () => {
  const runs = new Runs(new RunPermits(400))
  for (let i = 0; i < 10; i++) void runs.start(`a${i}`, 50, of('a'))
  void runs.start('b0', 50, of('b'))
  await nextTurn()
  expect(runs.begun).toEqual(['a0', 'a1', 'b0'])
  await runs.end('a0')
  expect(runs.begun).toEqual(['a0', 'a1', 'b0', 'a2'])
})

test('a key takes half, from however many addresses', async () => {
  const runs = new Runs(new RunPermits(400))
  for (let i = 0; i < 5; i++) void runs.start(`a${i}`, 100, of(`peer ${i}`, 'key'))
  void runs.start('b', 100, of('peer 0', 'other'))
  void runs.start('c', 100, of('peer 9', 'other'))
  await nextTurn()
  expect(runs.begun).toEqual(['a0', 'a1', 'c'])
  await runs.end('a0')
  expect(runs.begun.slice(3)).toEqual(['a2', 'b'])
})

test('a run that takes more than a share counts as one, and gets its turn', async () => {
  const runs = new Runs(new RunPermits(400))
  for (const peer of ['a', 'b', 'c', 'd']) void runs.start(peer, 80, of(peer))
  void runs.start('large', 1_000, of('e'))
  void runs.start('small', 10, of('f'))
  await nextTurn()
  expect(runs.begun).toEqual(['a', 'b', 'c', 'd'])
  await runs.end('a')
  expect(runs.begun.slice(4)).toEqual(['large', 'small'])
})

test('holders that wait take turns', async () => {
  const runs = new Runs(new RunPermits(400))
  for (const peer of ['w', 'x', 'y', 'z']) void runs.start(peer, 100, of(peer))
  for (let i = 0; i < 3; i++) void runs.start(`a${i}`, 100, of('a'))
  void runs.start('b0', 100, of('b'))
  await nextTurn()
  await runs.end('w')
  await runs.end('a0')
  expect(runs.begun.slice(4)).toEqual(['a0', 'b0'])
  await runs.end('b0')
  expect(runs.begun.slice(6)).toEqual(['a1'])
})

test('a cancelled run does not begin, and what waits behind it does', async () => {
  const permits = new RunPermits(400)
  const runs = new Runs(permits)
  void runs.start('first', 100, of('a'))
  const cancelled = runs.start('cancelled', 100, of('a'))
  void runs.start('next', 100, of('a'))
  await nextTurn()
  permits.cancel(runs.key('cancelled'))
  expect(await cancelled).toBeNull()
  await runs.end('first')
  expect(runs.begun).toEqual(['first', 'next'])
})

test('a run for several subscribers is charged to one that has room', async () => {
  const runs = new Runs(new RunPermits(400))
  void runs.start('a', 100, of('a'))
  void runs.start('shared', 100, [...of('a'), ...of('b')])
  await nextTurn()
  expect(runs.begun).toEqual(['a', 'shared'])
})
