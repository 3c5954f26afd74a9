import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { PruneRequest } from '../../documents/store.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { Retention } from './retention.ts'
import { SnapshotHolds } from './snapshot-holds.ts'

const PERIOD_MILLIS = 30_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('retention keeps the versions of a snapshot that is held', async () => {
  const system = new TestSystem()
  const holds = new SnapshotHolds(system)
  const committer = {
    durable: 1,
    get oldestHeld() {
      return holds.oldest()
    },
  }
  const requests: PruneRequest[] = []
  const store = {
    status: { state: 'open' } as const,
    prune: async (request: PruneRequest) => {
      requests.push(request)
      return { removed: 0, more: false }
    },
  }
  const retention = new Retention({ store, committer, system, log: memoryLog().log })
  const sweep = async (durable: number) => {
    committer.durable = durable
    await vi.advanceTimersByTimeAsync(PERIOD_MILLIS)
    return requests.at(-1)!.oldestSnapshot
  }
  retention.start()
  expect(await sweep(5)).toBe(1)
  const hold = holds.hold(5)
  expect(await sweep(8)).toBe(5)
  expect(await sweep(9)).toBe(5)
  hold.release()
  expect(await sweep(10)).toBe(9)
  await retention.stop()
})
