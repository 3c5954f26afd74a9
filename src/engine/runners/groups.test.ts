/** A group whose runners end while they load, by a clock that the test moves. */
import { expect, test } from 'vitest'
import { oneDocument } from '../../../build/testing/runners.ts'
import { realSystem } from '../../system/system.ts'
import { type GroupLimits, RunnerGroup } from './groups.ts'
import type { RunnerCall } from './outcomes.ts'
import type { Runner } from './runner.ts'

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
    ...{ inFlight: 0, watch: { isBusy: false, cpuShare: 0 }, invoke: async () => returned },
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
