import { expect, test } from 'vitest'
import { testCursors } from '../../../build/testing/cursors.ts'
import type { DocumentStore, StoredDocument } from '../../documents/store.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { perform } from '../invocations/context-operations.ts'
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

/** A store with one document, and the IDs that it was asked for one by one. */
function oneDocument() {
  const asked: string[] = []
  const store = {
    range: () => ({ documents: [{ key: `k${ID}`, document: DOCUMENT }], exhausted: true }),
    read(id: string) {
      asked.push(id)
      return id === ID ? DOCUMENT : null
    },
  } as unknown as DocumentStore
  const mutation = new Transaction({
    ...{ store, release: RELEASE, snapshot: 3, pending: null },
    ...{ nowMicros: 9n, seed: '00'.repeat(32), writable: true },
  })
  return { asked, mutation }
}

const all = { table: 'notes', index: null, equal: [], order: 'asc', limit: 10 } as const

test('a Mutation changes what a range found without reading it again, and conflicts on it', () => {
  const { asked, mutation } = oneDocument()
  mutation.range(all)
  expect([...mutation.readSet.documents]).toEqual([])
  mutation.patch(ID, { n: { $i: '2' } }, [])
  expect(mutation.get(ID)).toMatchObject({ text: '{"n":{"$i":"2"}}' })
  expect(asked).toEqual([])
  expect([...mutation.readSet.documents]).toEqual([ID])
  expect(mutation.writes()).toMatchObject([{ id: ID }])
})

test('what a range of a Mutation did not find is read', () => {
  const { asked, mutation } = oneDocument()
  mutation.range(all)
  const other = `notes_${'0'.repeat(25)}1`
  expect(mutation.get(other)).toBeNull()
  expect(asked).toEqual([other])
})

test('a place that a runner makes up is no longer than a key: the read set keeps it', () => {
  const { mutation } = oneDocument()
  const performing = { prepared: RELEASE, transaction: mutation, cursors: testCursors() }
  const readBehind = (cursor: string) =>
    perform(performing, ['range', { ...all, cursor, next: 'plain' }])
  readBehind('x'.repeat(2_560))
  const { bytes } = mutation.readSet
  expect(() => readBehind('x'.repeat(2_561))).toThrow('the cursor is damaged')
  expect(mutation.readSet.bytes).toBe(bytes)
})
