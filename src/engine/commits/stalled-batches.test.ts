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
  let batches = 0
  const store = {
    latestSequence: 0,
    listIndexes: () => [],
    commit: () => {
      batches += 1
      return answers.promise
    },
  } as Partial<DocumentStore> as DocumentStore
  const committer = new Committer({
    ...{ store, system, metrics: new Metrics(system), onCommit: () => {}, commitMillisMax: 50 },
  })
  const commit = (): Promise<string> => {
    const outcome = committer.commit({
      ...{ snapshot: 0, pending: null, readSet: new ReadSet(), writes: [], atMicros: 0n },
      ...{ operation: {} as CommitRequest['operation'], turn: null },
    })
    if (outcome instanceof Promise || outcome.kind !== 'assigned') throw new Error('not assigned')
    return outcome.durable.then(
      () => 'done',
      (error: { code: string }) => error.code,
    )
  }
  const first = commit()
  await expect.poll(() => batches).toBe(1)
  const behind = commit()
  expect(await Promise.all([first, behind])).toEqual(['DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED'])
  answers.resolve()
  // The next batch is sent in a turn of its own.
  for (let i = 0; i < 10; i++) await null
  const fresh = commit()
  expect(await fresh).toBe('done')
  expect(batches).toBe(3)
})
