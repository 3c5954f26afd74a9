/** The committer over a store that completes its commits when the test says so. */
import { expect, test } from 'vitest'
import type { CommitBatch, DocumentStore } from '../../documents/store.ts'
import { realSystem } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { type CommitRequest, Committer } from './committer.ts'
import { ReadSet } from './read-set.ts'

/** A committer over a store that holds its batches; `commit` returns how the commit ended. */
function heldCommitter(commitMillisMax: number) {
  const system = realSystem()
  const stored = Promise.withResolvers<void>()
  const batches: CommitBatch[] = []
  const store = {
    latestSequence: 0,
    listIndexes: () => [],
    commit: (batch) => {
      batches.push(batch)
      return stored.promise
    },
  } as Partial<DocumentStore> as DocumentStore
  const committer = new Committer({
    store,
    system,
    metrics: new Metrics(system),
    onCommit: () => {},
    commitMillisMax,
  })
  const commit = async (): Promise<string> => {
    try {
      const outcome = await committer.commit({
        snapshot: 0,
        pending: null,
        readSet: new ReadSet(),
        writes: [],
        atMicros: 0n,
        operation: {} as CommitRequest['operation'],
        lock: null,
      })
      if (outcome.kind !== 'assigned') throw new Error('not assigned')
      await outcome.durable
      return 'done'
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  return { committer, stored, batches, commit }
}

test('a commit after a stall does not join a batch that was marked as stalled', async () => {
  const { stored, batches, commit } = heldCommitter(50)
  const first = commit()
  await expect.poll(() => batches.length).toBe(1)
  const waiting = commit()
  expect(await Promise.all([first, waiting])).toEqual(['DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED'])
  stored.resolve()
  // The next batch goes to the store in a later iteration of the event loop.
  for (let i = 0; i < 10; i++) await null
  const afterStall = commit()
  expect(await afterStall).toBe('done')
  expect(batches.length).toBe(3)
})

test('while the outcome of a commit is open, others are rejected at once', async () => {
  const { committer, stored, batches, commit } = heldCommitter(60_000)
  const first = commit()
  await expect.poll(() => batches.length).toBe(1)
  const unsent = commit()
  expect(committer.isFailing).toBe(false)
  batches[0]!.onUnreachable!()
  expect(await Promise.all([unsent, commit()])).toEqual(['UNAVAILABLE', 'UNAVAILABLE'])
  expect([batches.length, committer.isFailing]).toEqual([1, true])
  stored.resolve()
  expect(await first).toBe('done')
  expect([await commit(), committer.isFailing]).toEqual(['done', false])
})
