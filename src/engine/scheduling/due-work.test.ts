/** Start of due work under simulated time: steps of the clock, and Functions with much work. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type SimulatedEngine, simulatedEngine } from '../../../testing/engine/simulated-engine.ts'
import { functionManifest } from '../../../testing/products.ts'
import type { DocumentStore } from '../../documents/store.ts'
import {
  SCHEDULED_ACTION_RUNS_MAX,
  SCHEDULED_MUTATION_RUNS_BESIDE_CALLS_MAX,
  SCHEDULED_MUTATION_RUNS_MAX,
} from '../limits.ts'
import { insertWork } from '../scheduled-work/scheduled-documents.ts'

const MINUTE = 60_000
const functions = [
  functionManifest('a.tick', { kind: 'mutation' }),
  functionManifest('a.slow', { kind: 'action', uses: { network: [], secrets: [] } }),
]

let bench: SimulatedEngine
let ticks = 0
let slow = 0
let held: (() => void)[] = []
let isEnding = false
let onTick: () => unknown = () => null

beforeEach(async () => {
  ticks = 0
  slow = 0
  held = []
  isEnding = false
  onTick = () => null
  const handlers = {
    'a.tick': () => {
      ticks += 1
      return onTick()
    },
    'a.slow': () => {
      slow += 1
      return isEnding ? null : new Promise((resolve) => held.push(() => resolve(null)))
    },
  }
  bench = await simulatedEngine({ functions, handlers })
})
afterEach(async () => {
  isEnding = true
  bench.engine.scheduler.stop()
  for (const release of held) release()
  await bench.close()
})

async function schedule(
  name: 'a.tick' | 'a.slow',
  afterMillis: number,
  { count = 1, of = bench }: { readonly count?: number; readonly of?: SimulatedEngine } = {},
): Promise<void> {
  const dueAtMicros = of.system.nowMicros() + BigInt(afterMillis) * 1_000n
  const kind = name === 'a.tick' ? 'mutation' : 'action'
  const { releaseId } = of.release
  await of.engine.documents.change(async (transaction) => {
    for (let i = 0; i < count; i++) {
      await insertWork(transaction, {
        function: name,
        kind,
        releaseId,
        argumentsText: '{}',
        dueAtMicros,
        source: 'function',
        cron: null,
      })
    }
  })
}

describe('a step of the clock', () => {
  test('forward starts what it passed within a minute, once', async () => {
    await schedule('a.tick', 60 * MINUTE)
    bench.system.step(2 * 60 * MINUTE)
    await bench.advance(MINUTE)
    expect(ticks).toBe(1)
    await bench.advance(3 * 60 * MINUTE)
    expect(ticks).toBe(1)
  })

  test('back starts nothing early and repeats nothing', async () => {
    await schedule('a.tick', MINUTE)
    await schedule('a.tick', 10 * MINUTE)
    await bench.advance(2 * MINUTE)
    expect(ticks).toBe(1)
    bench.system.step(-60 * MINUTE)
    await bench.advance(60 * MINUTE)
    expect(ticks).toBe(1)
    await bench.advance(10 * MINUTE)
    expect(ticks).toBe(2)
  })

  test('back leaves work that is scheduled afterwards at its time', async () => {
    await schedule('a.tick', MINUTE)
    await bench.advance(2 * MINUTE)
    bench.system.step(-60 * MINUTE)
    await schedule('a.tick', MINUTE)
    await bench.advance(MINUTE)
    expect(ticks).toBe(2)
  })
})

test('work starts behind more due work of another Function than the queue holds', async () => {
  for (let i = 0; i < 3; i++) await schedule('a.slow', 1_000, { count: 1_000 })
  await schedule('a.tick', 2_000)
  const { scheduler } = bench.engine
  for (let i = 0; i < 4; i++) {
    bench.system.advance(1_000)
    bench.timers.run()
    await expect.poll(() => slow).toBe(SCHEDULED_ACTION_RUNS_MAX)
  }
  const statistics = { running: SCHEDULED_ACTION_RUNS_MAX, unfinished: 3_000 }
  await expect.poll(() => scheduler.statistics).toMatchObject(statistics)
  expect(ticks).toBe(1)
})

test('work for an earlier time that is scheduled between two reads starts', async () => {
  let scheduled: Promise<void> | null = null
  onTick = () => {
    if (ticks === 500) scheduled = schedule('a.tick', -MINUTE)
    return null
  }
  for (let i = 0; i < 4; i++) await schedule('a.tick', 1_000, { count: 1_000 })
  bench.system.advance(1_000)
  bench.timers.run()
  // The clock stands still, so nothing is read again after a pause.
  await expect.poll(() => ticks).toBe(4_001)
  await scheduled
})

test('few scheduled Mutations run at one time while applications call', async () => {
  await schedule('a.tick', 1_000, { count: 100 })
  bench.system.advance(1_000)
  const [definition] = bench.release.functions.values()
  await bench.engine.mutation({
    release: bench.release,
    definition: definition!,
    principal: null,
    operationId: `opn_${'0'.repeat(26)}`,
    target: 'channel:production',
    caller: 'client',
    arguments: new Map(),
    context: { requestId: 'req', invocationId: 'ivc' },
  })
  onTick = () => (isEnding ? null : new Promise((resolve) => held.push(() => resolve(null))))
  bench.timers.run()
  await expect.poll(() => held.length).toBe(SCHEDULED_MUTATION_RUNS_BESIDE_CALLS_MAX)
  bench.system.advance(1_000)
  held.shift()!()
  await expect.poll(() => held.length).toBe(SCHEDULED_MUTATION_RUNS_MAX)
})

test('a drain waits for the work that runs, and starts no other', async () => {
  const { scheduler } = bench.engine
  await schedule('a.slow', 1_000)
  await schedule('a.tick', 2_000)
  bench.system.advance(1_000)
  bench.timers.run()
  await expect.poll(() => held.length, { timeout: 60_000 }).toBe(1)
  let isDrained = false
  const drained = scheduler.drain().then(() => {
    isDrained = true
  })
  bench.system.advance(1_000)
  bench.timers.run()
  await new Promise<void>((resolve) => setImmediate(resolve))
  expect([isDrained, scheduler.statistics.running]).toEqual([false, 1])
  held.shift()!()
  await drained
  const { items } = await scheduler.list(null, 10)
  expect(items.map(({ state }) => state).toSorted()).toEqual(['pending', 'succeeded'])
  expect(ticks).toBe(0)
})

describe('an idle server', () => {
  /** Returns how often an hour uses the store, with `count` pieces that are due in a day. */
  async function usesOf(count: number): Promise<number> {
    let uses = 0
    const wrap = (store: DocumentStore): DocumentStore =>
      new Proxy(store, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name)
          if (typeof member !== 'function') return member
          return (...given: unknown[]) => {
            uses += 1
            return Reflect.apply(member, target, given) as unknown
          }
        },
      })
    const idle = await simulatedEngine({ functions, handlers: {}, wrap })
    try {
      if (count > 0) await schedule('a.tick', 24 * 60 * MINUTE, { count, of: idle })
      uses = 0
      await idle.advance(60 * MINUTE)
      return uses
    } finally {
      await idle.close()
    }
  }

  test('looks at the store as often with pending work as without', async () => {
    const without = await usesOf(0)
    expect(without).toBeGreaterThan(0)
    expect(await usesOf(1_000)).toBe(without)
  })
})
