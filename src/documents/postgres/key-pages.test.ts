/**
 * Goal: a range whose documents are in memory reads their keys alone, and is the same range.
 * Method: a store over documents that it did not write; rows that it need not read are removed.
 */
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import {
  BY_CHANNEL,
  documentId,
  EVERYTHING,
  Model,
} from '../../../testing/documents/store-fixtures.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../testing/documents/stores.ts'
import { assert } from '../../errors/assert.ts'
import { compactId, ULID_BYTES } from '../compact-ids.ts'
import { keyInterval } from '../keys.ts'
import type { DocumentStore, PhysicalIndex } from '../store.ts'

const DOCUMENTS = 40
const MESSAGES = 'messages'
/** Statements of this database that wait for a lock. */
const WAITING = `
  select count(*)::integer as waiting from pg_stat_activity
   where datname = current_database() and wait_event_type = 'Lock'`

let database: TestDatabase
let client: Client
let store: DocumentStore
let index: PhysicalIndex
const model = new Model()

beforeAll(async () => {
  database = await freshDatabase(DOCUMENT_TEMPLATE)
  client = new Client({ connectionString: database.url })
  await client.connect()
  const first = await openDocuments(database.url)
  ;[index] = (await first.ensureIndexes([BY_CHANNEL])) as [PhysicalIndex]
  await first.buildIndex(index.id)
  await write(
    first,
    Array.from({ length: DOCUMENTS }, (_, i) => i + 1),
  )
  await first.close()
  store = await openDocuments(database.url)
})

afterAll(async () => {
  await store.close()
  await client.end()
  await database.drop()
})

/** Writes the documents into the channels "even" and "odd". */
async function write(to: DocumentStore, numbers: readonly number[]): Promise<void> {
  const sequence = to.latestSequence + 1
  model.sequence = sequence
  const writes = numbers.map((number) => {
    const fields = new Map([['channel', number % 2 === 0 ? 'even' : 'odd']])
    return model.write(to.listIndexes(), { table: MESSAGES, number }, fields)
  })
  await to.commit({ transactions: [{ sequence, atMicros: 1n, writes }] })
}

async function list(channel: string, limit = EVERYTHING, snapshot = store.latestSequence) {
  const { documents, exhausted } = await store.range({
    index: index.id,
    ...keyInterval(BY_CHANNEL, { equals: [channel] }),
    order: 'desc',
    limit: Math.min(limit, 1_000),
    textUnitsMax: EVERYTHING,
    snapshot,
  })
  return { documents: documents.map(({ key, document }) => ({ key, ...document })), exhausted }
}

test('a range is read by its keys once its documents are in memory', async () => {
  const first = await list('even')
  expect(first.documents.length).toBe(DOCUMENTS / 2)
  for (let times = 0; times < 6; times++) expect(await list('even')).toEqual(first)
  const id = compactId(documentId(MESSAGES, 2))
  const remove = 'delete from svc_documents.documents where id = $1 returning *'
  const { rows } = await client.query({ text: remove, values: [id], rowMode: 'array' })
  expect(rows).toHaveLength(1)
  expect(await list('even')).toEqual(first)
  expect(await list('even', 3)).toEqual({
    documents: first.documents.slice(0, 3),
    exhausted: false,
  })
  await client.query('insert into svc_documents.documents values ($1, $2, $3, $4)', rows[0])
})

test('documents that are not in memory are read by their IDs, then with their keys', async () => {
  const first = await list('odd')
  expect(first.documents.map(({ id }) => id)).toEqual(
    Array.from({ length: DOCUMENTS / 2 }, (_, i) => documentId(MESSAGES, DOCUMENTS - 1 - 2 * i)),
  )
  expect(await list('odd')).toEqual(first)
  await write(store, [DOCUMENTS + 1, 1])
  const second = await list('odd')
  const [newest] = second.documents
  assert(newest !== undefined, 'the list has documents')
  expect(newest.id).toBe(documentId(MESSAGES, DOCUMENTS + 1))
  expect(second.documents.at(-1)).toMatchObject({ sequence: store.latestSequence })
})

test('a range without entries is empty', async () => {
  for (let times = 0; times < 6; times++) {
    await list('odd')
    expect(await list('none')).toEqual({ documents: [], exhausted: true })
  }
})

test('a deletion that is stored between keys and documents hides both', async () => {
  await store.close()
  store = await openDocuments(database.url)
  const before = await list('odd')
  await store.close()
  store = await openDocuments(database.url)
  const [id, sequence] = [compactId(documentId(MESSAGES, 3))!, store.latestSequence + 1]
  // Documents of another channel are in memory, so that the keys of this one are read alone.
  for (let times = 0; times < 6; times++) await list('even')
  await client.query('begin')
  await client.query('lock table svc_documents.documents in access exclusive mode')
  const reading = list('odd', EVERYTHING, sequence)
  // The keys are read, and the documents wait for the lock.
  await expect
    .poll(async () => (await client.query(WAITING)).rows[0].waiting, { timeout: 300_000 })
    .toBeGreaterThan(0)
  const insert = 'insert into svc_documents.documents values ($1, $2, 1, null)'
  await client.query(insert, [id, sequence])
  const ended = await client.query(
    `update svc_documents.index_entries
        set until_sequence = $1::bigint, key = key || int8send($1::bigint)
      where until_sequence is null and substr(key, octet_length(key) - ${ULID_BYTES - 1}) = $2`,
    [sequence, id.subarray(-ULID_BYTES)],
  )
  expect(ended.rowCount).toBe(1)
  await client.query('commit')
  const { documents } = await reading
  const left = before.documents.filter((each) => each.id !== documentId(MESSAGES, 3))
  expect(left).toHaveLength(before.documents.length - 1)
  expect(documents).toEqual(left)
})
