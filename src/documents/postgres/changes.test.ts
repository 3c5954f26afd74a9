import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../../testing/databases/postgres.ts'
import {
  documentId,
  EVERYTHING,
  operationRecord,
  pruneAll,
} from '../../../testing/documents/store-fixtures.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../testing/documents/stores.ts'

test('changes before the oldest batch that is left are not known', async () => {
  const database = await freshDatabase(DOCUMENT_TEMPLATE)
  onTestFinished(() => database.drop())
  const store = await openDocuments(database.url)
  onTestFinished(() => store.close())
  for (let sequence = 1; sequence <= 4; sequence++) {
    const write = {
      id: documentId('notes', sequence),
      createdAtMicros: 0n,
      text: '{}',
      entries: [],
    }
    const operation = operationRecord(sequence, { commitSequence: sequence })
    const atMicros = BigInt(sequence) * 10_000_000n
    await store.commit({ transactions: [{ sequence, atMicros, writes: [write], operation }] })
  }
  const request = { after: '', snapshot: 4, rowsMax: 100, textUnitsMax: EVERYTHING }
  const sequences = async (above: number) =>
    (await store.changedVersions({ ...request, above }))?.rows.map(({ sequence }) => sequence)
  await pruneAll(store, { oldestSnapshot: 4 })
  expect(await sequences(1)).toEqual([4, 3, 2])
  // Their batches are removed with the operations of the first two commits.
  await pruneAll(store, { oldestSnapshot: 4, operationsBeforeMicros: 25_000_000n })
  expect(await store.changedVersions({ ...request, above: 1 })).toBeNull()
  expect(await store.changedVersions({ ...request, above: 2 })).toBeNull()
  expect(await sequences(3)).toEqual([4])
  expect(await sequences(4)).toEqual([])
})
