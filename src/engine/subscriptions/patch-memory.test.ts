/** The memory of patches: charged while the state is the newest one, and given up for the state. */
import { expect, test } from 'vitest'
import { MemoryBudget } from '../../system/memory/memory-budget.ts'
import { type DeliveredState, LiveQuery, type WatchRequest } from './live-query.ts'
import { SharedMemory } from './shared-memory.ts'

const PATCH = 'p'.repeat(10_000)

/** A watched Query of one subscription, whose results the test decides. */
function watchedQuery(peerBytes: number, takesPatches: boolean) {
  const whole = new MemoryBudget(4 * peerBytes)
  const memory = whole.shareOf({ credential: null, peer: 'one' })
  const received: DeliveredState[] = []
  let made = 0
  const query = new LiveQuery(
    { shared: '', perCaller: '' },
    { definition: {}, memory } as unknown as WatchRequest,
    {
      expectedBytes: 0,
      onEvicted: () => expect.fail('the Query has room'),
      makePatch: () => {
        made += 1
        return PATCH
      },
    },
  )
  query.add(
    { takesPatches, state: (state) => received.push(state), failed: () => undefined },
    memory,
    0,
  )
  const run = (resultText: string): DeliveredState => {
    const dependencies = { readSet: { bytes: 0, count: 0 }, snapshot: 1, bytesRead: 0 }
    const outcome = { resultText, snapshotSequence: 1, dependencies } as never
    query.keep(outcome, new SharedMemory(resultText.length))
    query.isStale = false
    query.deliver(outcome, 1)
    return received.at(-1)!
  }
  return { run, query, held: () => whole.used, made: () => made }
}

test('a patch is charged until the next state, and freed with the Query', () => {
  const { run, query, held } = watchedQuery(100_000, true)
  expect(run('first').patch).toBeNull()
  const before = held()
  expect(run('other').patch).toBe(PATCH)
  expect(held() - before).toBeGreaterThanOrEqual(PATCH.length)
  // The result is the same, and a slow reader may still wait for the patch.
  run('other')
  expect(held() - before).toBeGreaterThanOrEqual(PATCH.length)
  query.close()
  expect(held()).toBe(0)
})

test('a state without room for its patch is delivered without it', () => {
  const { run, query } = watchedQuery(PATCH.length, true)
  run('first')
  expect(run('other')).toMatchObject({ resultText: 'other', patch: null })
  query.close()
})

test('no patch is made where no subscription takes it', () => {
  const { run, made } = watchedQuery(100_000, false)
  run('first')
  expect(run('other').patch).toBeNull()
  expect(made()).toBe(0)
})
