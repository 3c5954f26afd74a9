/** Tests of retention for every document store. */
import { expect, test } from 'vitest'
import {
  BY_CHANNEL,
  builtIndexes,
  CREATION,
  documentId,
  everythingGone,
  fieldsOf,
  found,
  operationRecord,
  pruneAll,
  type StoreContext,
  type StoreHarness,
  whole,
} from './store-fixtures.ts'
import { describeStore, fault, rejection } from './store-suite.ts'

export function documentRetentionSuite(name: string, make: () => Promise<StoreHarness>): void {
  describeStore(`retention of the document store: ${name}`, make, [retentionTests, forgettingTests])
}

function retentionTests(context: StoreContext): void {
  async function aged() {
    const { store, model } = context
    const indexes = await builtIndexes(store, [CREATION, BY_CHANNEL])
    // Ten commits, ten seconds apart; document 4 is deleted by the last.
    for (let i = 0; i < 10; i++) {
      const at = { table: 'messages', number: i === 9 ? 4 : i % 5 }
      const fields = i === 9 ? null : fieldsOf({ channel: `${i}` })
      const writes = [model.write(indexes, at, fields)]
      await model.commit(store, writes, BigInt(i) * 10_000_000n)
    }
    return { store, model, indexes }
  }

  test('versions that a snapshot at or after the horizon sees are never removed', async () => {
    const { store, model, indexes } = await aged()
    for (const horizon of [3, 7, 7, 10]) {
      await pruneAll(store, { oldestSnapshot: horizon })
      for (let snapshot = horizon; snapshot <= 10; snapshot++) {
        for (const index of indexes) {
          const result = await found(store.range(whole(index.id, snapshot)))
          expect(result.documents).toEqual(model.range(index, snapshot))
        }
      }
      const before = await rejection(() => store.range(whole(indexes[0]!.id, horizon - 1)))
      expect(before).toEqual(fault('UNAVAILABLE'))
    }
  })

  test('all other versions are removed, a bounded number of rows at a time', async () => {
    const { store } = await aged()
    // Documents: 5 replaced versions and 1 tombstone. Entries: 5 moved keys, 2 of the deletion.
    expect(await pruneAll(store, { oldestSnapshot: 9 })).toBe(4 + 4)
    expect(await pruneAll(store, { oldestSnapshot: 10 })).toBe(2 + 2)
    expect(await pruneAll(store, {})).toBe(0)
  })

  test('a commit of many documents is processed in chunks', async () => {
    const { store, model } = context
    for (const [at, body] of ['a', 'b', 'c'].entries()) {
      const writes = Array.from({ length: 7 }, (_, number) =>
        model.write([], { table: 'notes', number }, fieldsOf({ body })),
      )
      await model.commit(store, writes, BigInt(at) * 2_000_000n)
    }
    const counts: number[] = []
    for (let more = true; more; ) {
      const result = await store.prune(everythingGone(3))
      counts.push(result.removed)
      more = result.more
    }
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(14)
    expect(Math.max(...counts)).toBe(3)
    expect((await store.read(documentId('notes', 6), model.sequence))?.text).toContain('c')
  })

  test('versions that were replaced recently are kept, even without a reader', async () => {
    const { store } = await aged()
    expect(await pruneAll(store, { beforeMicros: 55_000_000n })).toBe(2)
    const id = documentId('messages', 1)
    expect((await store.read(id, 6))?.sequence).toBe(2)
    expect(await rejection(() => store.read(id, 5))).toEqual(fault('UNAVAILABLE'))
  })
}

function forgettingTests(context: StoreContext): void {
  test('operation records are kept for their retention time', async () => {
    const { store } = context
    const records = [1, 2, 3, 4].map((n) =>
      operationRecord(n, { createdAtMicros: BigInt(n) * 100n }),
    )
    for (const operation of records) {
      const recorded = {
        sequence: null,
        atMicros: operation.createdAtMicros,
        writes: [],
        operation,
      }
      await store.commit({ transactions: [recorded] })
    }
    expect(await pruneAll(store, { operationsBeforeMicros: 300n })).toBe(2)
    const found = await Promise.all(records.map((r) => store.operation(r.operationId)))
    expect(found.map((r) => r?.attempts ?? null)).toEqual([null, null, 1, 1])
  })

  test('a row after a restart is not mistaken for one that retention has processed', {
    tags: ['slow'],
  }, async () => {
    // The newest version is a tombstone, so that retention removes the last row there is.
    const { store, model, harness } = context
    const at = { table: 'messages', number: 1 }
    await model.commit(store, [model.write([], at, fieldsOf({ body: 'a' }))])
    await model.commit(store, [model.write([], at, null)], 2_000_000n)
    expect(await pruneAll(store, {})).toBe(2)
    await store.close()
    context.store = await harness.open()
    for (const time of [5_000_000n, 9_000_000n]) {
      await model.commit(context.store, [model.write([], at, fieldsOf({}))], time)
    }
    expect(await pruneAll(context.store, {})).toBe(1)
  })
}
