/** The committer over a store that is let go batch by batch. */
import { expect, test } from 'vitest'
import type { DocumentStore } from '../../documents/store.ts'
import { realSystem } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { type CommitRequest, Committer } from './committer.ts'
import { ReadSet } from './read-set.ts'

test('what comes when the store answers again is in no batch that was told late', async () => {
  const system = realSystem()
  const answers = Promise.withResolvers<void>()
  const sent = Promise.withResolvers<void>()
  let batches = 0
  const store = {
    latestSequence: 0,
    listIndexes: () => [],
    commit: () => {
      batches += 1
      sent.resolve()
      return answers.promise
    },
  } as Partial<DocumentStore> as DocumentStore
  const committer = new Committer({
    ...{ store, system, metrics: new Metrics(system), onCommit: () => {}, commitMillisMax: 50 },
  })
  const commit = () => {
    const outcome = committer.commit({
      ...{ snapshot: 0, unsettled: null, readSet: new ReadSet(), writes: [], atMicros: 0n },
      ...{ operation: {} as CommitRequest['operation'], turn: null },
    })
    if (outcome instanceof Promise || outcome.kind !== 'assigned') throw new Error('not assigned')
    const told = outcome.durable.then(
      () => 'done',
      (error: { code: string }) => error.code,
    )
    return { told, settled: outcome.settled }
  }
  const first = commit()
  await sent.promise
  const behind = commit()
  expect(await first.told).toBe('DEADLINE_EXCEEDED')
  expect(await behind.told).toBe('DEADLINE_EXCEEDED')
  answers.resolve()
  await first.settled
  // The batch behind is sent in a turn of the event loop of its own, which has not come yet.
  expect(batches).toBe(1)
  const fresh = commit()
  expect(await fresh.told).toBe('done')
  expect(batches).toBe(3)
})
