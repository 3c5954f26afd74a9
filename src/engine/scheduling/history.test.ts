import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { Committer } from '../commits/committer.ts'
import { SystemDocuments } from '../files/system-documents.ts'
import { HISTORY_MICROS } from '../limits.ts'
import { PendingWork } from '../scheduled-work/pending-work.ts'
import { finishWork, insertWork, type WorkFields } from '../scheduled-work/scheduled-documents.ts'
import { SystemTablesLoader } from '../tables/system-tables.ts'
import { History } from './history.ts'
import { WorkReads } from './work-reads.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-history-'))
const system = new TestSystem()
let store: DocumentStore
let committer: Committer
let documents: SystemDocuments
let history: History
let pending: PendingWork
let reads: WorkReads
beforeEach(async () => {
  store = await openSqliteDocuments(join(directory, `${system.ids.ulid()}.db`))
  pending = new PendingWork()
  committer = new Committer({
    store,
    system,
    metrics: new Metrics(system),
    onCommit: (_, { scheduled = [] }) => {
      for (const change of scheduled) {
        pending.assign(change)
        pending.commit(change)
      }
    },
  })
  const tables = new SystemTablesLoader(store, committer)
  documents = new SystemDocuments({ store, committer, system, tables })
  reads = new WorkReads(store, tables)
  const { log } = memoryLog()
  history = new History({
    reads,
    documents,
    committer,
    system,
    log,
    pending,
    rowsMax: 15,
    deliveriesMax: 400,
  })
})
afterEach(async () => {
  await committer.drain()
  await store.close()
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Schedules a piece, and ends it unless it stays pending. */
async function addWork(
  name: string,
  state: 'pending' | 'failed' = 'failed',
  more: Partial<WorkFields> = {},
): Promise<void> {
  await documents.change(async (transaction) => {
    const id = await insertWork(transaction, {
      function: name,
      kind: 'mutation',
      releaseId: 'rel',
      argumentsText: '{}',
      source: 'function',
      cron: null,
      dueAtMicros: 0n,
      ...more,
    })
    const finish = { attempts: 1, errorCode: 'INTERNAL', atMicros: system.nowMicros() }
    if (state === 'failed') await finishWork(transaction, id, { state, ...finish })
  })
  system.advance(1_000)
}

async function names(): Promise<readonly string[]> {
  const works = await reads.after(null, 100, committer.durable)
  return works.map((work) => work.function)
}

test('finished work is deleted after 7 days, and pending work never', async () => {
  await addWork('old')
  await addWork('pending', 'pending')
  system.advance(Number(HISTORY_MICROS / 1000n) - 1_000)
  await addWork('new')
  await history.prune()
  expect(await names()).toEqual(['pending', 'new'])
})

test('the oldest finished work is deleted beyond the number of rows', async () => {
  await addWork('pending', 'pending')
  for (let i = 0; i < 18; i++) await addWork(`work ${i}`)
  while (await history.prune());
  const newest = Array.from({ length: 15 }, (_, i) => `work ${i + 3}`)
  expect(await names()).toEqual(['pending', ...newest])
  expect(pending.finished).toBe(15)
  expect(pending.count).toBe(1)
})

test('long work that is too old is deleted whole, whatever one page has of it', {
  tags: ['slow'],
}, async () => {
  const argumentsText = JSON.stringify('x'.repeat(900_000))
  for (let i = 0; i < 12; i++) await addWork(`long ${i}`, 'failed', { argumentsText })
  system.advance(Number(HISTORY_MICROS / 1000n) + 1_000)
  await addWork('new')
  while (await history.prune());
  expect(await names()).toEqual(['new'])
})

describe('the size of deliveries', () => {
  const addDelivery = (name: string, mount: string, state: 'pending' | 'failed' = 'failed') =>
    addWork(name, state, {
      source: 'http',
      http: { mount, route: 'a', event: 'evt', method: 'POST', path: '/', bytes: 98 },
      argumentsText: JSON.stringify('x'.repeat(98)),
    })

  test('the oldest deliveries of a mount beyond its size are deleted, no others', async () => {
    await addWork('work')
    await addDelivery('of another mount', 'quiet')
    await addDelivery('unfinished', 'loud', 'pending')
    for (let i = 0; i < 4; i++) await addDelivery(`delivery ${i}`, 'loud')
    await history.pruneDeliveries()
    expect(await names()).toHaveLength(7)
    await addDelivery('delivery 4', 'loud')
    expect(pending.deliveries.of('loud')).toEqual({ unfinished: 100, finished: 500 })
    await history.pruneDeliveries()
    expect(await names()).toEqual([
      'work',
      'of another mount',
      'unfinished',
      'delivery 2',
      'delivery 3',
      'delivery 4',
    ])
    expect(pending.deliveries.of('loud')).toEqual({ unfinished: 100, finished: 300 })
    expect(pending.deliveries.total).toBe(500)
  })

  test('a commit beyond the size starts a sweep, at most one a second', async () => {
    history.sweep.start()
    for (let i = 0; i < 5; i++) await addDelivery(`delivery ${i}`, 'loud')
    history.onCommit()
    const finished = () => pending.deliveries.of('loud').finished
    await expect.poll(finished, { timeout: 60_000 }).toBe(300)
    // Each piece takes a second of the clock.
    system.advance(-2_500)
    for (let i = 5; i < 7; i++) await addDelivery(`delivery ${i}`, 'loud')
    history.onCommit()
    await history.sweep.stop()
    expect(pending.deliveries.of('loud').finished).toBe(500)
  })
})
