import { expect, test } from 'vitest'
import { testCursors } from '../../../testing/cursors.ts'
import type { DocumentStore, StoredDocument } from '../../documents/store.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { performOperation } from '../invocations/context-operations.ts'
import { prepareRelease } from '../releases/prepared-release.ts'
import { Transaction } from './transaction.ts'

const ID = `notes_${'0'.repeat(26)}`
const DOCUMENT: StoredDocument = {
  id: ID,
  createdAtMicros: 5n,
  sequence: 3,
  text: '{"n":{"$i":"1"}}',
}
const RELEASE = prepareRelease(
  {
    releaseId: 'rel_1' as ReleaseId,
    source: '',
    sourceMap: null,
    functions: new Map(),
    tables: new Map([
      ['notes', { name: 'notes', fields: { n: { type: 'int64' } }, indexes: [] } as const],
    ]),
  },
  [{ id: 1, table: 'notes', fields: [], state: 'ready' }],
)

/** A Mutation over a store with one document, and the IDs of single reads from the store. */
function oneDocument() {
  const readIds: string[] = []
  const store = {
    range: () => ({ documents: [{ key: `k${ID}`, document: DOCUMENT }], exhausted: true }),
    read(id: string) {
      readIds.push(id)
      return id === ID ? DOCUMENT : null
    },
  } as unknown as DocumentStore
  const mutation = new Transaction({
    store,
    release: RELEASE,
    snapshot: 3,
    pending: null,
    nowMicros: 9n,
    seed: '00'.repeat(32),
    writable: true,
  })
  return { readIds, mutation }
}

const all = { table: 'notes', index: null, equal: [], order: 'asc', limit: 10 } as const

test('a Mutation patches a document of a range without a second read, and conflicts on it', () => {
  const { readIds, mutation } = oneDocument()
  mutation.range(all)
  expect([...mutation.readSet.documents]).toEqual([])
  mutation.patch(ID, { n: { $i: '2' } }, [])
  expect(mutation.get(ID)).toMatchObject({ text: '{"n":{"$i":"2"}}' })
  expect(readIds).toEqual([])
  expect([...mutation.readSet.documents]).toEqual([ID])
  expect(mutation.writes()).toMatchObject([{ id: ID }])
})

test('a prefetched range joins the read set and the bounds when the code reads it', () => {
  const { mutation } = oneDocument()
  expect(mutation.prefetchRange(all)).toMatchObject({ documents: [{ id: ID }], done: true })
  expect(mutation.hasRead).toBe(false)
  expect(mutation.usage.documentsRead.used).toBe(0)
  expect(mutation.hasUnreadRanges).toBe(true)
  expect(mutation.range({ ...all, limit: 9 })).toMatchObject({ documents: [{ id: ID }] })
  expect(mutation.hasUnreadRanges).toBe(true)
  mutation.range(all)
  expect(mutation.hasUnreadRanges).toBe(false)
  expect(mutation.readSet.count).toBe(1)
  expect(mutation.usage.documentsRead.used).toBe(2)
})

test('a range that was prefetched before a write shows the write', () => {
  const { mutation } = oneDocument()
  mutation.prefetchRange(all)
  mutation.patch(ID, { n: { $i: '2' } }, [])
  expect(mutation.range(all)).toMatchObject({ documents: [{ text: '{"n":{"$i":"2"}}' }] })
  expect(mutation.prefetchRange(all)).toBeNull()
})

test('a document that a range of a Mutation did not find is read from the store', () => {
  const { readIds, mutation } = oneDocument()
  mutation.range(all)
  const other = `notes_${'0'.repeat(25)}1`
  expect(mutation.get(other)).toBeNull()
  expect(readIds).toEqual([other])
})

test('a forged plain cursor that is longer than a key is rejected and not in the read set', () => {
  const { mutation } = oneDocument()
  const context = { prepared: RELEASE, transaction: mutation, cursors: testCursors() }
  const readBehind = (cursor: string) =>
    performOperation(context, ['range', { ...all, cursor, next: 'plain' }])
  readBehind('x'.repeat(2_560))
  const { bytes } = mutation.readSet
  expect(() => readBehind('x'.repeat(2_561))).toThrow('the cursor is damaged')
  expect(mutation.readSet.bytes).toBe(bytes)
})
