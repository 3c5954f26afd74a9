import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import {
  type CutPoint,
  type PostgresProxy,
  postgresProxy,
} from '../../../testing/databases/postgres-proxy.ts'
import { documentId, operationRecord } from '../../../testing/documents/store-fixtures.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../testing/documents/stores.ts'
import { isFault } from '../../errors/fault.ts'
import { compactId, ulidBytes } from '../compact-ids.ts'
import type { CommitBatch, DocumentStore } from '../store.ts'

/*
 * Goal: at whichever protocol message the connection is lost, a commit that resolves is completely
 * stored, one that fails with UNAVAILABLE stored nothing, and the store remains usable. Method: a
 * batch runs once without a loss, to count its messages, and then once per message and cut point.
 */

let database: TestDatabase
let outside: Client
/** A client that holds locks. */
let holder: Client
let proxy: PostgresProxy
let store: DocumentStore
let number = 0

beforeAll(async () => {
  database = await freshDatabase(DOCUMENT_TEMPLATE)
  outside = new Client({ connectionString: database.url })
  holder = new Client({ connectionString: database.url })
  await Promise.all([outside.connect(), holder.connect()])
})

afterAll(async () => {
  await Promise.all([outside.end(), holder.end()])
  await database.drop()
})

beforeEach(async () => {
  proxy = await postgresProxy(database.url)
  store = await reopened()
})

afterEach(async () => {
  await store.close()
  await proxy.close()
})

/** Opens a store through the proxy, without background statements that would be counted. */
const reopened = () =>
  openDocuments(proxy.url, { epochCheckMillis: 3_600_000, reconcileMillis: 20_000 })

const write = (id: number, characters: number) => ({
  id: documentId('notes', id),
  createdAtMicros: 0n,
  text: JSON.stringify('x'.repeat(characters)),
  entries: [],
})

/** A batch with one transaction per size, and a last one that only records an operation. */
function batchOf(sizes: readonly number[]): CommitBatch {
  let sequence = store.latestSequence
  const transactions = sizes.map((characters) => {
    sequence += 1
    number += 1
    return { sequence, atMicros: 0n, writes: [write(number, characters)] }
  })
  number += 1
  const operation = operationRecord(number)
  return {
    transactions: [...transactions, { sequence: null, atMicros: 0n, writes: [], operation }],
  }
}

async function stored({ transactions }: CommitBatch): Promise<boolean> {
  const ids = transactions.flatMap(({ writes }) => writes.map(({ id }) => compactId(id)))
  const operations = transactions.flatMap(({ operation }) =>
    operation === undefined ? [] : [ulidBytes(operation.operationId)],
  )
  const { rows } = await outside.query<{ documents: string; operations: string }>(
    `select (select count(*) from svc_documents.documents where id = any ($1::bytea[]))
              as documents,
            (select count(*) from svc_documents.operations where operation_id = any ($2::bytea[]))
              as operations`,
    [ids, operations],
  )
  const found = [Number(rows[0]!.documents), Number(rows[0]!.operations)]
  expect([
    [0, 0],
    [ids.length, operations.length],
  ]).toContainEqual(found)
  return found[1] === 1
}

async function outcome(pending: Promise<unknown>): Promise<string> {
  try {
    await pending
    return 'stored'
  } catch (error) {
    if (isFault(error)) return error.code
    throw error
  }
}

const POINTS: readonly CutPoint[] = ['before', 'after', 'within-answer']

/** A batch of two parts: the second transaction exceeds the size of one statement. */
const LARGE = [4_500_000, 10, 10]

test.each([
  ['a batch', [10, 10], 'PBDES'],
  ['a batch of several statements', LARGE, 'QPBDESBDESQ'],
])(
  '%s that loses its connection has a true outcome, and the store remains usable',
  { tags: ['slow'] },
  async (_, sizes, sent) => {
    const stop = proxy.record()
    await store.commit(batchOf(sizes))
    expect(stop().join('')).toBe(sent)
    const seen = new Set<string>()
    for (let at = 1; at <= sent.length; at++) {
      const answered = 'SQ'.includes(sent[at - 1]!)
      for (const point of answered ? POINTS : POINTS.slice(0, 1)) {
        await store.close()
        store = await reopened()
        const batch = batchOf(sizes)
        proxy.cutAtMessage(at, point)
        const reported = await outcome(store.commit(batch))
        const where = `message ${at} of ${sent}, ${point}`
        expect(reported, where).toBe((await stored(batch)) ? 'stored' : 'UNAVAILABLE')
        seen.add(`${point} ${reported}`)
        const next = batchOf([10])
        await store.commit(next)
        expect(await stored(next), where).toBe(true)
        expect(store.status, where).toEqual({ state: 'open' })
      }
    }
    expect(seen).toContain('before UNAVAILABLE')
    expect(seen).toContain('after stored')
    expect(seen).toContain('within-answer stored')
  },
)

test('a statement that is still running stores nothing once its commit failed', async () => {
  // Another client locks the row that commits lock, so that the statement is running when its
  // connection is lost. PostgreSQL only notices that when it sends the response.
  for (let i = 0; i < 5; i++) {
    await holder.query('begin')
    await holder.query('select from svc_documents.state for update')
    const batch = batchOf([10])
    const reported = outcome(store.commit(batch))
    await blocked(1)
    proxy.refuse(true)
    proxy.refuse(false)
    // Then the two that wait can run in either order.
    if (i % 2 === 0) await blocked(2)
    await holder.query('commit')
    const answer = await reported
    expect(await stored(batch)).toBe(answer === 'stored')
    const next = batchOf([10])
    await store.commit(next)
    expect(await stored(batch)).toBe(answer === 'stored')
  }
})

async function blocked(count: number): Promise<void> {
  const waiting = async () => {
    const { rows } = await outside.query<{ count: string }>(
      `select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return Number(rows[0]!.count)
  }
  await expect.poll(waiting, { interval: 5 }).toBe(count)
}

test('an outcome that cannot be determined in time is uncertain until a restart', {
  tags: ['slow'],
}, async () => {
  await store.close()
  store = await openDocuments(proxy.url, { epochCheckMillis: 3_600_000, reconcileMillis: 200 })
  const batch = batchOf([10])
  await holder.query('begin')
  await holder.query('select from svc_documents.state for update')
  const reported = outcome(store.commit(batch))
  await blocked(1)
  proxy.refuse(true)
  expect(await reported).toBe('RESULT_UNCERTAIN')
  await holder.query('commit')
  expect(store.status.state).toBe('failed')
  expect(await outcome(store.commit(batchOf([10])))).toBe('UNAVAILABLE')
  await store.close()
  const latest = batch.transactions[0]!.sequence
  proxy.refuse(false)
  store = await reopened()
  expect(store.latestSequence).toBe((await stored(batch)) ? latest : latest! - 1)
})

test('a commit whose reply is lost reports when its outcome cannot be determined yet', async () => {
  const batch = batchOf([10])
  let reports = 0
  const onUnreachable = () => {
    reports += 1
    proxy.refuse(false)
  }
  await holder.query('begin')
  await holder.query('select from svc_documents.state for update')
  const reported = outcome(store.commit({ ...batch, onUnreachable }))
  await blocked(1)
  expect(reports).toBe(0)
  proxy.refuse(true)
  await expect.poll(() => reports).toBe(1)
  await holder.query('commit')
  expect(await reported).toBe((await stored(batch)) ? 'stored' : 'UNAVAILABLE')
})

test('a commit without a connection is not sent, and so it is not uncertain', async () => {
  await store.close()
  let lost = 0
  const onProblem = () => {
    lost += 1
  }
  store = await openDocuments(proxy.url, { epochCheckMillis: 3_600_000, onProblem })
  await store.read(documentId('notes', 9_999), store.latestSequence)
  proxy.refuse(true)
  // One connection of the writer and one of the read.
  await expect.poll(() => lost).toBe(2)
  const batch = batchOf([10])
  expect(await outcome(store.commit(batch))).toBe('UNAVAILABLE')
  const read = Promise.resolve(store.read(documentId('notes', 9_999), store.latestSequence))
  expect(await outcome(read)).toBe('UNAVAILABLE')
  proxy.refuse(false)
  await store.commit(batch)
  expect(await stored(batch)).toBe(true)
  expect(store.status).toEqual({ state: 'open' })
})

test('a read that loses its connection is repeated', async () => {
  await store.commit(batchOf([10]))
  const id = documentId('missing', 1)
  for (const when of ['before', 'after'] as const) {
    proxy.cut(/missing_/, when)
    expect(await store.read(id, store.latestSequence)).toBeNull()
  }
  expect(proxy.cuts).toBe(2)
})

test('an index change that loses its connection can be repeated', async () => {
  const definitions = [{ table: 'notes', fields: ['a'] }]
  for (const [statement, when] of [
    [/insert into indexes/, 'before'],
    [/insert into indexes/, 'after'],
    [/commit\0/, 'after'],
  ] as const) {
    proxy.cut(statement, when)
    expect(await outcome(store.ensureIndexes(definitions))).toBe('UNAVAILABLE')
  }
  // The last change was stored, so the next call finds its index.
  const [index] = await store.ensureIndexes(definitions)
  const { rows } = await outside.query('select id from svc_documents.indexes')
  expect(rows).toEqual([{ id: index!.id }])
  expect(store.listIndexes()).toEqual([index])
  proxy.cut(/commit\0/, 'after')
  expect(await outcome(store.dropIndex(index!.id))).toBe('UNAVAILABLE')
  await store.commit(batchOf([10]))
  expect(store.listIndexes()).toEqual([])
})
