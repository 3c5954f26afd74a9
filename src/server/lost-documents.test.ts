import { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { freshDatabase } from '../../testing/databases/postgres.ts'
import { documentId } from '../../testing/documents/store-fixtures.ts'
import { DOCUMENT_TEMPLATE } from '../../testing/documents/stores.ts'
import { ENVIRONMENT_ID, makeRoot } from '../../testing/product-roots.ts'
import { documentDatabase } from '../documents/postgres/schema.ts'
import type { DocumentStore } from '../documents/store.ts'
import {
  type AcceptedLoss,
  DocumentsWatermark,
} from '../product/environments/documents-watermark.ts'
import { parseDatabaseUrl } from '../settings/addresses.ts'
import { listPendingAudit } from '../storage/control/audit-outbox.ts'
import { findHistory, readDocumentsSequence } from '../storage/control/environment.ts'
import { openProductRoot, type ProductRoot } from '../storage/root.ts'
import { realSystem } from '../system/system.ts'
import { type MemoryLog, memoryLog } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import { Secret } from '../value/secret.ts'
import { openRootDocuments } from './documents.ts'

/*
 * Goal: acknowledged commits never vanish without a word. Method: real stores, whose newest commits
 * are removed as a truncated log, an older dump or an older copy would.
 */

const system = realSystem()
const cleanUp: (() => unknown)[] = []

afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

interface Opened {
  readonly root: ProductRoot
  readonly store: DocumentStore
  readonly log: MemoryLog
  close(): Promise<void>
}

async function open(
  directory: string,
  url: string | null,
  acceptedLoss: AcceptedLoss | null = null,
): Promise<Opened> {
  const database = url === null ? null : parseDatabaseUrl(new Secret(url))
  const log = memoryLog()
  const root = await openProductRoot(directory, system)
  const shared = { system, log: log.log, metrics: new Metrics(system) }
  try {
    const documents = await openRootDocuments({ root, database, acceptedLoss, ...shared })
    let isOpen = true
    const close = async (): Promise<void> => {
      if (!isOpen) return
      isOpen = false
      await documents.close()
      root.close()
    }
    cleanUp.push(close)
    return { root, store: documents.store, log, close }
  } catch (error) {
    root.close()
    throw error
  }
}

async function commit({ store }: Opened, sequence: number): Promise<void> {
  const id = documentId('notes', sequence)
  const text = JSON.stringify({ text: 'x'.repeat(3_000) })
  const writes = [{ id, createdAtMicros: 0n, text, entries: [] }]
  await store.commit({ transactions: [{ sequence, atMicros: 0n, writes }] })
}

const recorded = ({ root }: Opened): number => root.control.read(readDocumentsSequence)

function newRoot(): string {
  const directory = makeRoot()
  cleanUp.push(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Makes a store of four commits and removes the last two. */
interface Shortened {
  readonly directory: string
  readonly url: string | null
}

async function shortenedSqlite(): Promise<Shortened> {
  const directory = newRoot()
  const file = join(directory, 'documents.db')
  const older = await open(directory, null)
  await commit(older, 1)
  await commit(older, 2)
  await older.close()
  const backup = readFileSync(file)
  await fill(directory, null)
  writeFileSync(file, backup)
  return { directory, url: null }
}

async function shortenedPostgres(): Promise<Shortened> {
  const directory = newRoot()
  const database = await freshDatabase(DOCUMENT_TEMPLATE)
  cleanUp.push(() => database.drop())
  const { url } = database
  const older = await open(directory, url)
  await commit(older, 1)
  await commit(older, 2)
  await older.close()
  await fill(directory, url)
  const options = { connectionsMax: 1, onIdleLoss: () => undefined }
  const sql = documentDatabase({ url: new Secret(url), ...options })
  const connection = await sql.connect()
  await connection.query('delete from batches where latest_sequence > 2')
  await connection.query('delete from documents where sequence > 2')
  connection.release()
  await sql.close()
  return { directory, url }
}

/** Adds the commits 3 and 4. */
async function fill(directory: string, url: string | null): Promise<void> {
  const opened = await open(directory, url)
  await commit(opened, 3)
  await commit(opened, 4)
  await opened.close()
}

const audited = ({ root }: Opened) =>
  root.control
    .read((reader) => listPendingAudit(reader, 10))
    .map(({ record }) => JSON.parse(record) as Readonly<Record<string, unknown>>)

async function historyOf(directory: string) {
  const root = await openProductRoot(directory, system)
  try {
    return root.control.read(findHistory)
  } finally {
    root.close()
  }
}

const OLDER = {
  code: 'SERVER_DOCUMENTS_OLDER',
  detail: 'they end at sequence 2, and 4 was durable',
}

describe.each([
  ['SQLite', shortenedSqlite],
  ['PostgreSQL', shortenedPostgres],
])('%s', (_, shortened) => {
  test('documents that lost commits are opened only if exactly this loss is accepted', {
    tags: ['slow'],
  }, async () => {
    const { directory, url } = await shortened()
    // 4 is their last sequence before the loss, and with 1 they would have more than was accepted.
    for (const accepted of [null, 1, 4]) {
      await expect(open(directory, url, accepted), String(accepted)).rejects.toMatchObject(OLDER)
    }
    const before = await historyOf(directory)
    const opened = await open(directory, url, 2)
    const history = opened.root.control.read(findHistory)
    expect(history).toMatch(/^hst_/)
    expect(history).not.toBe(before)
    expect([opened.store.latestSequence, recorded(opened)]).toEqual([2, 2])
    expect(audited(opened)).toEqual([
      expect.objectContaining({
        operation: 'product.documents.accept_loss',
        subject: `${ENVIRONMENT_ID}:2:4`,
        actor: null,
      }),
    ])
    const accepted = { event: 'documents.loss_accepted', level: 'warn' }
    expect(opened.log.records()).toMatchObject([accepted])
    await commit(opened, 3)
    await opened.close()
    const again = await open(directory, url)
    expect([again.store.latestSequence, recorded(again)]).toEqual([3, 3])
    expect(again.root.control.read(findHistory)).toBe(history)
  })

  test('documents that lost commits are opened with a warning if any is accepted', {
    tags: ['slow'],
  }, async () => {
    const { directory, url } = await shortened()
    const opened = await open(directory, url, 'any')
    expect(opened.store.latestSequence).toBe(2)
    expect(opened.log.text()).toContain('they end at sequence 2, and 4 was durable')
  })
})

test('a write-ahead log that was truncated after a kill is detected', {
  tags: ['slow'],
}, async () => {
  const directory = newRoot()
  const live = await open(directory, null)
  for (let sequence = 1; sequence <= 4; sequence += 1) await commit(live, sequence)
  await expect.poll(() => recorded(live), { timeout: 60_000 }).toBe(4)
  for (const missing of [3_000, statSync(join(directory, 'documents.db-wal')).size / 2]) {
    // A copy of the files of an open store is the state that a kill leaves.
    const killed = `${directory}-killed`
    cpSync(directory, killed, { recursive: true })
    cleanUp.push(() => rmSync(killed, { recursive: true, force: true }))
    const whole = await open(killed, null)
    expect(whole.store.latestSequence).toBe(4)
    await whole.close()
    rmSync(killed, { recursive: true })
    cpSync(directory, killed, { recursive: true })
    const log = join(killed, 'documents.db-wal')
    truncateSync(log, statSync(log).size - missing)
    await expect(open(killed, null)).rejects.toMatchObject({
      code: 'SERVER_DOCUMENTS_OLDER',
      detail: expect.stringMatching(/^they end at sequence [0-3], and 4 was durable$/),
    })
    rmSync(killed, { recursive: true })
  }
})

test('missing documents are not replaced by an empty store', async () => {
  const directory = newRoot()
  const opened = await open(directory, null)
  await commit(opened, 1)
  await opened.close()
  rmSync(join(directory, 'documents.db'))
  await expect(open(directory, null, 0)).rejects.toMatchObject({
    code: 'SERVER_PRODUCT_ROOT_INVALID',
  })
})

test('accepting a loss has no effect but a warning if nothing is lost', async () => {
  const directory = newRoot()
  const opened = await open(directory, null, 7)
  expect(opened.log.records()).toMatchObject([{ event: 'documents.loss_not_found' }])
  expect(audited(opened)).toEqual([])
})

describe('the watermark', () => {
  async function watermarked(store: { latestSequence: number }) {
    const root = await openProductRoot(newRoot(), system)
    const log = memoryLog()
    const options = { system, log: log.log, root, store, periodMillis: 1 }
    const watermark = new DocumentsWatermark(options)
    watermark.requireNewest(null)
    watermark.start()
    cleanUp.push(async () => {
      await watermark.stop()
      root.close()
    })
    return { root, log, recorded: () => root.control.read(readDocumentsSequence) }
  }

  /** Waits for periods of the watermark; each is one timer of a millisecond. */
  async function periods(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) await new Promise((resolve) => setTimeout(resolve, 1))
  }

  test('the watermark follows commits, and writes nothing without any', async () => {
    const store = { latestSequence: 0 }
    const { root, recorded } = await watermarked(store)
    const visible = root.control.changes
    const changed = () => root.control.read((r) => r.get<object>('select total_changes() as n'))
    store.latestSequence = 5
    await expect.poll(recorded, { timeout: 60_000 }).toBe(5)
    const before = changed()
    await periods(20)
    expect(changed()).toEqual(before)
    expect(root.control.changes).toBe(visible)
  })

  test('a watermark that cannot be written is reported once, and follows again later', async () => {
    const store = { latestSequence: 0 }
    const { root, log, recorded } = await watermarked(store)
    root.control.read((reader) => reader.get('pragma query_only = on'))
    store.latestSequence = 1
    await expect.poll(() => log.records().length, { timeout: 60_000 }).toBe(1)
    await periods(20)
    expect(log.records()).toMatchObject([{ event: 'documents.watermark_failed', level: 'warn' }])
    root.control.read((reader) => reader.get('pragma query_only = off'))
    await expect.poll(recorded, { timeout: 60_000 }).toBe(1)
  })
})
