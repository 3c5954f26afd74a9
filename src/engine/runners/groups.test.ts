/** A group whose runners end while they load, by a clock that the test moves. */
import { expect, test } from 'vitest'
import { oneDocument } from '../../../testing/runners.ts'
import { realSystem } from '../../system/system.ts'
import type { RunnerCall } from '../calls/outcomes.ts'
import { type GroupLimits, RunnerGroup } from './groups.ts'
import type { Runner } from './runner.ts'

test('a call that waits for a runner is BUSY at the time by which it had to start', async () => {
  const busy = { load: async () => null, inFlight: 1, watch: { isBusy: true, cpuShare: 0 } }
  const group = new RunnerGroup(
    { releaseId: realSystem().ids.make('rel'), source: '', sourceMap: null },
    {
      role: 'transactions',
      limits: { waiting: 10, callsPerRunner: 1, runners: 1 } as GroupLimits,
      system: { monotonicMillis: () => 0 },
      take: async () => busy as unknown as Runner,
    },
  )
  const outcomeOf = (call: Partial<RunnerCall>) =>
    group.invoke({ function: 'one', ...call } as RunnerCall, oneDocument).then(
      ({ kind }) => kind,
      ({ code }: { code: string }) => code,
    )
  const outcomes: string[] = []
  const bounded = outcomeOf({ startByMillis: 1_000, deadline: 10_000 })
  const unbounded = outcomeOf({ deadline: 10_000 })
  for (const each of [bounded, unbounded]) void each.then((outcome) => outcomes.push(outcome))
  for (const [now, expected] of [
    [999, []],
    [1_000, ['BUSY']],
    [9_999, ['BUSY']],
    [10_000, ['BUSY', 'deadline']],
  ] as const) {
    group.tick(now)
    await new Promise((resolve) => setImmediate(resolve))
    expect(outcomes).toEqual(expected)
  }
})

test('runners that are killed from outside restart after a pause, and calls wait', async () => {
  let now = 0
  let loads = 0
  let loaded: { kind: 'lost' } | null = { kind: 'lost' }
  const returned = { kind: 'returned', result: 'done' }
  const runner = {
    load: async () => {
      loads += 1
      return loaded
    },
    inFlight: 0,
    watch: { isBusy: false, cpuShare: 0 },
    invoke: async () => returned,
  } as unknown as Runner
  const limits = { restartMillis: 100, restartMillisMax: 1_000, runners: 1 }
  const releaseId = realSystem().ids.make('rel')
  const group = new RunnerGroup(
    { releaseId, source: '', sourceMap: null },
    {
      role: 'transactions',
      limits: { waiting: 10, callsPerRunner: 10, ...limits } as GroupLimits,
      system: { monotonicMillis: () => now },
      take: () => new Promise((resolve) => setImmediate(() => resolve(runner))),
    },
  )
  const at = async (millis: number): Promise<number> => {
    now = millis
    group.tick(now)
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
    return loads
  }
  const waiting = { function: 'one', deadline: 10_000 } as RunnerCall
  const first = group.invoke(waiting, oneDocument)
  expect([await at(0), await at(99), await at(100), await at(299)]).toEqual([1, 1, 2, 2])
  const second = group.invoke(waiting, oneDocument)
  loaded = null
  expect([await at(299), await at(300)]).toEqual([2, 3])
  expect(await Promise.all([first, second])).toEqual([returned, returned])
})

test('a group keeps the runner that has grown least once one is enough for its calls', async () => {
  let now = 0
  const stopped: number[] = []
  const runners = [30, 10, 20].map((grownBytes) => ({
    load: async () => null,
    inFlight: 2,
    isWorn: false,
    watch: { isBusy: true, cpuShare: 1, grownBytes },
    stop: () => stopped.push(grownBytes),
  }))
  const left = [...runners]
  const group = new RunnerGroup(
    { releaseId: realSystem().ids.make('rel'), source: '', sourceMap: null },
    {
      role: 'transactions',
      limits: { waiting: 10, callsPerRunner: 10, runners: 3, surplusMillis: 100 } as GroupLimits,
      system: { monotonicMillis: () => now },
      take: async () => left.shift() as unknown as Runner,
    },
  )
  const at = async (millis: number): Promise<readonly number[]> => {
    now = millis
    group.tick(now)
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
    return stopped
  }
  void group.warm(10_000)
  for (const millis of [1, 2, 3]) await at(millis)
  expect([group.size, left.length]).toEqual([3, 0])
  for (const runner of runners) Object.assign(runner, { inFlight: 0 })
  expect(await at(103)).toEqual([])
  expect(await at(104)).toEqual([30])
  expect(await at(105)).toEqual([30, 20])
  expect(await at(10_000)).toEqual([30, 20])
})
