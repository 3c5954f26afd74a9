/** The committer over a store that completes its commits when the test says so. */
import { expect, test } from 'vitest'
import type { DocumentStore } from '../../documents/store.ts'
import { realSystem } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { type CommitRequest, Committer } from './committer.ts'
import { ReadSet } from './read-set.ts'

test('a commit after a stall does not join a batch that was marked as stalled', async () => {
  const system = realSystem()
  const stored = Promise.withResolvers<void>()
  let batches = 0
  const store = {
    latestSequence: 0,
    listIndexes: () => [],
    commit: () => {
      batches += 1
      return stored.promise
    },
  } as Partial<DocumentStore> as DocumentStore
  const committer = new Committer({
    ...{ store, system, metrics: new Metrics(system), onCommit: () => {}, commitMillisMax: 50 },
  })
  const commit = (): Promise<string> => {
    const outcome = committer.commit({
      ...{ snapshot: 0, pending: null, readSet: new ReadSet(), writes: [], atMicros: 0n },
      ...{ operation: {} as CommitRequest['operation'], lock: null },
    })
    if (outcome instanceof Promise || outcome.kind !== 'assigned') throw new Error('not assigned')
    return outcome.durable.then(
      () => 'done',
      (error: { code: string }) => error.code,
    )
  }
  const first = commit()
  await expect.poll(() => batches).toBe(1)
  const waiting = commit()
  expect(await Promise.all([first, waiting])).toEqual(['DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED'])
  stored.resolve()
  // The next batch goes to the store in a later iteration of the event loop.
  for (let i = 0; i < 10; i++) await null
  const afterStall = commit()
  expect(await afterStall).toBe('done')
  expect(batches).toBe(3)
})
