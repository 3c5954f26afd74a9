import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { Committer } from '../commits/committer.ts'
import { SystemDocuments } from '../files/system-documents.ts'
import { HISTORY_MICROS } from '../limits.ts'
import { PendingWork } from '../scheduled-work/pending-work.ts'
import { finishWork, insertWork } from '../scheduled-work/scheduled-documents.ts'
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
  history = new History({ reads, documents, committer, system, log, pending, rowsMax: 5 })
})
afterEach(async () => {
  await committer.drain()
  await store.close()
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Schedules a piece, and ends it unless it stays pending. */
async function addWork(name: string, state: 'pending' | 'failed' = 'failed'): Promise<void> {
  await documents.change(async (transaction) => {
    const id = await insertWork(transaction, {
      function: name,
      kind: 'mutation',
      releaseId: 'rel',
      argumentsText: '{}',
      source: 'function',
      cron: null,
      dueAtMicros: 0n,
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
  for (let i = 0; i < 8; i++) await addWork(`work ${i}`)
  while (await history.prune());
  expect(await names()).toEqual(['pending', ...[3, 4, 5, 6, 7].map((i) => `work ${i}`)])
  expect(pending.finished).toBe(5)
  expect(pending.count).toBe(1)
})
