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
import { insertWork, postponeWork } from '../scheduled-work/scheduled-documents.ts'

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

/** Returns a promise that the end of the test resolves, or the test before. */
function hold(): Promise<null> {
  return new Promise((resolve) => held.push(() => resolve(null)))
}

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
  test('forward starts what it passed within a minute, once', { tags: ['slow'] }, async () => {
    await schedule('a.tick', 60 * MINUTE)
    bench.system.step(2 * 60 * MINUTE)
    await bench.advance(MINUTE)
    expect(ticks).toBe(1)
    await bench.advance(3 * 60 * MINUTE)
    expect(ticks).toBe(1)
  })

  test('back starts nothing early and repeats nothing', { tags: ['slow'] }, async () => {
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

test('work for an earlier time that is scheduled between two reads starts', {
  tags: ['slow'],
}, async () => {
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

/** Returns a wrapper that calls `onUse` with the name of each method of the store that is used. */
function observed(onUse: (name: string | symbol) => void): (store: DocumentStore) => DocumentStore {
  return (store) =>
    new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== 'function') return member
        return (...given: unknown[]) => {
          onUse(name)
          return Reflect.apply(member, target, given) as unknown
        }
      },
    })
}

describe('work that is due at its commit', () => {
  test('starts without a read of the work that is due', async () => {
    let ranges = 0
    const handlers = { 'a.tick': () => onTick() }
    const wrap = observed((name) => {
      if (name === 'range') ranges += 1
    })
    const of = await simulatedEngine({ functions, handlers, wrap })
    try {
      const { scheduler } = of.engine
      ranges = 0
      await schedule('a.tick', 0, { of, count: 10 })
      await schedule('a.tick', -MINUTE, { of })
      await expect.poll(() => scheduler.statistics).toMatchObject({ succeeded: 11, unfinished: 0 })
      expect(ranges).toBe(0)
    } finally {
      await of.close()
    }
  })

  test('runs once, also where there is more than the queue holds', { tags: ['slow'] }, async () => {
    for (let i = 0; i < 4; i++) await schedule('a.tick', 0, { count: 1_000 })
    for (let i = 0; i < 3; i++) {
      await bench.engine.scheduler.whenSettled()
      bench.system.advance(1_000)
      bench.timers.run()
    }
    await expect.poll(() => bench.engine.scheduler.statistics.unfinished).toBe(0)
    expect(ticks).toBe(4_000)
  })

  test('waits behind the older work that a full queue has left in the store', {
    tags: ['slow'],
  }, async () => {
    const order: string[] = []
    bench.engine.scheduler.listen((changes) => {
      for (const { scheduledId, after } of changes) {
        if (after?.get('state') === 'succeeded') order.push(scheduledId)
      }
    })
    let free = 0
    onTick = () => (isEnding || free-- > 0 ? null : hold())
    for (let i = 0; i < 3; i++) await schedule('a.tick', -MINUTE, { count: 1_000 })
    await expect.poll(() => held.length).toBe(SCHEDULED_MUTATION_RUNS_MAX)
    // The queue has room again, and is not empty enough for a read.
    free = 100
    for (const release of held.splice(0)) release()
    await expect.poll(() => held.length).toBe(SCHEDULED_MUTATION_RUNS_MAX)
    // The order of the IDs is that of their times.
    bench.system.advance(1)
    await schedule('a.tick', 0)
    isEnding = true
    for (const release of held) release()
    for (let i = 0; i < 3; i++) {
      await bench.engine.scheduler.whenSettled()
      bench.system.advance(1_000)
      bench.timers.run()
    }
    await expect.poll(() => order.length).toBe(3_001)
    // Those that run at one time end in any order.
    const newest = order.toSorted().at(-1)!
    expect(order.indexOf(newest)).toBeGreaterThan(3_000 - SCHEDULED_MUTATION_RUNS_MAX)
  })

  test('work is skipped where it is canceled while it waits for others', async () => {
    onTick = () => (isEnding ? null : hold())
    await schedule('a.tick', 0, { count: SCHEDULED_MUTATION_RUNS_MAX })
    bench.system.advance(1)
    await schedule('a.tick', 0)
    const { scheduler } = bench.engine
    await expect.poll(() => held.length).toBe(SCHEDULED_MUTATION_RUNS_MAX)
    expect(scheduler.statistics.due).toBe(1)
    const { items } = await scheduler.list(null, 100)
    await scheduler.cancel(items.at(-1)!.scheduledId)
    isEnding = true
    for (const release of held) release()
    await scheduler.whenSettled()
    const states = { succeeded: SCHEDULED_MUTATION_RUNS_MAX, due: 0, unfinished: 0 }
    expect(scheduler.statistics).toMatchObject(states)
    expect(ticks).toBe(SCHEDULED_MUTATION_RUNS_MAX)
  })

  test('runs again where a commit asks for that while it runs', async () => {
    await schedule('a.slow', 0)
    await expect.poll(() => slow).toBe(1)
    const { documents, scheduler } = bench.engine
    const { items } = await scheduler.list(null, 1)
    const next = { attempts: 1, errorCode: 'UNAVAILABLE', dueAtMicros: bench.system.nowMicros() }
    await documents.change((transaction) => postponeWork(transaction, items[0]!.scheduledId, next))
    expect(slow).toBe(1)
    isEnding = true
    held.shift()!()
    await expect.poll(() => slow).toBe(2)
    await expect.poll(() => scheduler.statistics.unfinished).toBe(0)
  })

  test('waits until the Environment serves', { tags: ['slow'] }, async () => {
    let isServing = false
    const handlers = { 'a.tick': () => onTick() }
    const of = await simulatedEngine({ functions, handlers, admits: () => isServing })
    try {
      const { scheduler } = of.engine
      await schedule('a.tick', 0, { of })
      await scheduler.whenSettled()
      expect(scheduler.statistics).toMatchObject({ succeeded: 0, unfinished: 1 })
      isServing = true
      scheduler.wake()
      await expect.poll(() => scheduler.statistics).toMatchObject({ succeeded: 1, unfinished: 0 })
    } finally {
      await of.close()
    }
  })
})

describe('an idle server', () => {
  /** Returns how often an hour uses the store, with `count` pieces that are due in a day. */
  async function usesOf(count: number): Promise<number> {
    let uses = 0
    const wrap = observed(() => {
      uses += 1
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

  test('looks at the store as often with pending work as without', { tags: ['slow'] }, async () => {
    const without = await usesOf(0)
    expect(without).toBeGreaterThan(0)
    expect(await usesOf(1_000)).toBe(without)
  })
})
