import { existsSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { postgresProxy } from '../../testing/databases/postgres-proxy.ts'
import { DOCUMENT_TEMPLATE, TEST_ENVIRONMENT } from '../../testing/documents/stores.ts'
import { isFault } from '../errors/fault.ts'
import { parseDatabaseUrl } from '../settings/addresses.ts'
import { realSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import { Secret } from '../value/secret.ts'
import { openDocuments } from './documents.ts'

let root: string
const databases: TestDatabase[] = []

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-root-'))
})

afterEach(async () => {
  rmSync(root, { recursive: true })
  for (const database of databases.splice(0)) await database.drop()
})

async function fresh(): Promise<string> {
  const database = await freshDatabase(DOCUMENT_TEMPLATE)
  databases.push(database)
  return database.url
}

/** Opens and closes the documents. Returns the code and the detail of a failure. */
async function opening(
  url: string | null,
  { environmentId = TEST_ENVIRONMENT, mayHoldDocuments = false } = {},
) {
  const database = url === null ? null : parseDatabaseUrl(new Secret(url))
  const system = realSystem()
  const shared = { system, log: memoryLog().log, metrics: new Metrics(system) }
  const options = { rootPath: root, environmentId, mayHoldDocuments, database, ...shared }
  try {
    await (await openDocuments(options)).close()
    return 'opened'
  } catch (error) {
    if (isFault(error)) return `${error.code}: ${error.detail}`
    throw error
  }
}

test('documents stay where they are: in the root', { tags: ['slow'] }, async () => {
  expect(await opening(null)).toBe('opened')
  expect(await opening(await fresh())).toBe(
    'SERVER_PRODUCT_ROOT_INVALID: its documents are in documents.db: ' +
      'unset SERVICE_PLATFORM_DATABASE_URL',
  )
  expect(await opening(null)).toBe('opened')
})

test('documents stay where they are: in one PostgreSQL database', { tags: ['slow'] }, async () => {
  const url = await fresh()
  expect(await opening(url)).toBe('opened')
  expect(await opening(url)).toBe('opened')
  expect(await opening(null)).toMatch(/^SERVER_PRODUCT_ROOT_INVALID: .*in PostgreSQL/)
  expect(existsSync(join(root, 'documents.db'))).toBe(false)
  const rejected = /^SERVER_DOCUMENT_DATABASE_UNAVAILABLE: /
  expect(await opening(await fresh())).toMatch(rejected)
  expect(await opening(url, { environmentId: 'env_00000000000000000000000002' })).toMatch(rejected)
  // A crash between the two steps leaves a database that already has its Environment.
  rmSync(join(root, 'documents.postgres'))
  expect(await opening(url)).toBe('opened')
  expect(existsSync(join(root, 'documents.postgres'))).toBe(true)
})

test('a root that has lost its documents is rejected, and gets no new ones', async () => {
  const lost =
    /^SERVER_PRODUCT_ROOT_INVALID: documents\.db .*is missing or empty, but .*: restore it,/
  const served = { mayHoldDocuments: true }
  expect(await opening(null, served)).toMatch(lost)
  expect(await opening(await fresh(), served)).toMatch(lost)
  expect(readdirSync(root)).toEqual([])
  expect(await opening(null)).toBe('opened')
  expect(await opening(null, served)).toBe('opened')
  const file = join(root, 'documents.db')
  truncateSync(file)
  writeFileSync(`${file}-wal`, 'the log that SQLite deletes beside an empty file')
  expect(await opening(null, served)).toMatch(lost)
  expect(readdirSync(root)).toContain('documents.db-wal')
})

test('a database without its mark is rejected once it may hold documents', async () => {
  const url = await fresh()
  expect(await opening(url)).toBe('opened')
  expect(await opening(url, { mayHoldDocuments: true })).toBe('opened')
  rmSync(join(root, 'documents.postgres'))
  const lost = /^SERVER_PRODUCT_ROOT_INVALID: .*documents\.postgres\) is missing or empty/
  expect(await opening(url, { mayHoldDocuments: true })).toMatch(lost)
})

test('lost connections to the database are counted', async () => {
  const proxy = await postgresProxy(await fresh())
  const system = realSystem()
  const metrics = new Metrics(system)
  const store = await openDocuments({
    rootPath: root,
    environmentId: TEST_ENVIRONMENT,
    system,
    log: memoryLog().log,
    metrics,
    mayHoldDocuments: false,
    database: parseDatabaseUrl(new Secret(proxy.url)),
  })
  try {
    expect(await store.operation('x')).toBeNull()
    expect(metrics.collect().counters.documentConnectionsLost).toBe(0)
    proxy.refuse(true)
    await expect.poll(() => metrics.collect().counters.documentConnectionsLost).toBeGreaterThan(0)
  } finally {
    proxy.refuse(false)
    await store.close()
    await proxy.close()
  }
})

test('a damaged mark of the database is rejected, not replaced', { tags: ['slow'] }, async () => {
  for (const content of ['', 'x\n', `${'A'.repeat(22)}B\n`, 'A'.repeat(100)]) {
    writeFileSync(join(root, 'documents.postgres'), content)
    expect(await opening(await fresh())).toMatch(/^SERVER_PRODUCT_ROOT_INVALID: documents.postgres/)
    expect(await opening(null)).toMatch(/^SERVER_PRODUCT_ROOT_INVALID: documents.postgres/)
  }
})
