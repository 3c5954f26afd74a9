import { afterEach, beforeEach, expect, test } from 'vitest'
import { execute } from '../../../testing/databases/cluster.ts'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import { documentId } from '../../../testing/documents/store-fixtures.ts'
import {
  DOCUMENT_TEMPLATE,
  openDocuments,
  TEST_ENVIRONMENT,
} from '../../../testing/documents/stores.ts'
import { isFault } from '../../errors/fault.ts'
import { Secret } from '../../value/secret.ts'
import { CompactTexts } from '../compact-texts.ts'
import { batchParts } from './batch-rows.ts'
import { writeParts } from './commits.ts'
import { EpochLost } from './failures.ts'
import { documentDatabase } from './schema.ts'
import type { PostgresDocumentStore, PostgresDocumentsOptions } from './stores.ts'
import { beginTerm, renewTerm } from './terms.ts'

let database: TestDatabase
const opened: PostgresDocumentStore[] = []

beforeEach(async () => {
  database = await freshDatabase(DOCUMENT_TEMPLATE)
})

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
  await database.drop()
})

async function open(options: Partial<PostgresDocumentsOptions> = {}) {
  const store = await openDocuments(database.url, options)
  opened.push(store)
  return store
}

const id = documentId('notes', 1)
const batch = (sequence: number) => {
  const text = `{"at":${sequence}}`
  const writes = [{ id, createdAtMicros: 0n, text, entries: [] }]
  return { transactions: [{ sequence, atMicros: 0n, writes }] }
}

async function failureOf(pending: Promise<unknown>): Promise<string> {
  try {
    await pending
  } catch (error) {
    if (isFault(error)) return `${error.code}: ${error.detail}`
    throw error
  }
  return expect.unreachable('the call did not fail')
}

test('a server that lost the epoch stores nothing more and has failed', async () => {
  const problems: string[] = []
  const onProblem = (event: string, detail: string) => problems.push(`${event}: ${detail}`)
  const first = await open({ onProblem })
  await first.commit(batch(1))
  const second = await open()
  expect(second.latestSequence).toBe(1)
  // It can read until it notices the loss: both have the same documents so far.
  expect((await first.read(id, 1))?.sequence).toBe(1)
  expect(await failureOf(first.commit(batch(2)))).toMatch(/^UNAVAILABLE: .*taken over/)
  expect(first.status).toMatchObject({ state: 'failed' })
  expect(problems).toEqual([expect.stringMatching(/^failed: .*taken over/)])
  expect(await failureOf(Promise.resolve().then(() => first.read(id, 1)))).toMatch(/^UNAVAILABLE/)
  await second.commit(batch(2))
  expect((await second.read(id, 2))?.text).toBe('{"at":2}')
  expect(await failureOf(first.ensureIndexes([{ table: 'notes', fields: [] }]))).toMatch(/^UNAVAIL/)
})

test('a statement that arrives after a new epoch of its own server stores nothing', async () => {
  const options = { url: new Secret(database.url), connectionsMax: 1, onIdleLoss: () => undefined }
  const documents = documentDatabase(options)
  const connection = await documents.connect()
  try {
    const claim = { environmentId: TEST_ENVIRONMENT, databaseId: null, newDatabaseId: 'x' }
    const { term } = await beginTerm(connection, { ...claim, writer: 'one' })
    const late = batchParts(batch(1).transactions, { ...term, texts: new CompactTexts() })
    const renewed = await renewTerm(connection, 'one')
    await expect(writeParts(connection, term, late)).rejects.toThrow(EpochLost)
    expect((await renewTerm(connection, 'one')).batch).toBe(0)
    await expect(writeParts(connection, renewed, late)).rejects.toThrow(EpochLost)
    await expect(renewTerm(connection, 'two')).rejects.toThrow(EpochLost)
  } finally {
    connection.release()
    await documents.close()
  }
})

test('an index change notices the lost epoch too', async () => {
  const first = await open()
  await open()
  const change = first.ensureIndexes([{ table: 'notes', fields: [] }])
  expect(await failureOf(change)).toMatch(/^UNAVAILABLE: .*taken over/)
  expect(first.status.state).toBe('failed')
})

test('a database that lost commits, like a standby that is behind, accepts no more', async () => {
  const store = await open()
  for (const sequence of [1, 2, 3]) await store.commit(batch(sequence))
  await execute(database.url, 'delete from svc_documents.batches where batch = 3')
  expect(await failureOf(store.commit(batch(4)))).toMatch(/^UNAVAILABLE: .*lost commits/)
  expect(store.status.state).toBe('failed')
  expect((await open()).latestSequence).toBe(2)
})

test('a server without commits notices the lost epoch', async () => {
  const first = await open({ epochCheckMillis: 50 })
  await open()
  await expect.poll(() => first.status.state).toBe('failed')
})

test('a database and an Environment belong to each other', { tags: ['slow'] }, async () => {
  const store = await open()
  const { databaseId } = store
  const foreign = await failureOf(open({ environmentId: 'env_00000000000000000000000002' }))
  expect(foreign).toMatch(/^SERVER_DOCUMENT_DATABASE_UNAVAILABLE: .*another Environment/)
  const other = await failureOf(open({ databaseId: 'x' }))
  expect(other).toMatch(/^SERVER_DOCUMENT_DATABASE_UNAVAILABLE: .*not the one/)
  // The rejected servers have not taken the epoch.
  await store.commit(batch(1))
  await open({ databaseId })
  const empty = await freshDatabase(DOCUMENT_TEMPLATE)
  try {
    const fresh = await failureOf(openDocuments(empty.url, { databaseId }))
    expect(fresh).toMatch(/^SERVER_DOCUMENT_DATABASE_UNAVAILABLE: .*no documents/)
  } finally {
    await empty.drop()
  }
})

test('servers that open a new database at the same time agree on its ID', async () => {
  const stores = await Promise.all([1, 2, 3, 4].map(() => open()))
  expect(new Set(stores.map((store) => store.databaseId)).size).toBe(1)
  const outcomes = await Promise.all(
    stores.map((store) =>
      store.commit(batch(1)).then(
        () => 'stored',
        () => 'rejected',
      ),
    ),
  )
  expect(outcomes.sort()).toEqual(['rejected', 'rejected', 'rejected', 'stored'])
})

test('an unreachable database is reported without its password', async () => {
  const text = await failureOf(openDocuments('postgres://u:hunter2@127.0.0.1:1/x'))
  expect(text).toMatch(/^SERVER_DOCUMENT_DATABASE_UNAVAILABLE/)
  expect(text).not.toContain('hunter2')
})
