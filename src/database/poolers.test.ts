import { afterEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import {
  type PoolerOptions,
  type PostgresPooler,
  postgresPooler,
} from '../../testing/databases/postgres-pooler.ts'
import { migrateDocuments } from '../documents/postgres/schema.ts'
import { Fault } from '../errors/fault.ts'
import { openIdentity } from '../identity/identity.ts'
import { TestSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { Secret } from '../value/secret.ts'
import { Database } from './database.ts'
import { requireSessions } from './poolers.ts'

let fresh: TestDatabase
let pooler: PostgresPooler

async function pooled(options: PoolerOptions): Promise<Secret> {
  fresh = await freshDatabase()
  pooler = await postgresPooler(fresh.url, options)
  return new Secret(pooler.url)
}

afterEach(async () => {
  await pooler.close()
  await fresh.drop()
})

async function failure(work: Promise<unknown>): Promise<unknown[]> {
  try {
    await work
  } catch (error) {
    return error instanceof Fault ? [error.code, error.detail] : [String(error)]
  }
  return []
}

const HINT = expect.stringMatching(/^pooler: .*pool_mode = session/)

async function identityFailure(url: Secret): Promise<unknown[]> {
  const identity = openIdentity({
    databaseUrl: url,
    pepper: new Secret('A'.repeat(43)),
    stateDirectory: '/nonexistent',
    system: new TestSystem(),
    log: memoryLog().log,
  })
  try {
    return await failure(identity.migrate())
  } finally {
    await identity.close()
  }
}

test.each(['last', 'in turn'] as const)(
  'a pooler that lends sessions to transactions, %s, is rejected for both databases',
  async (order) => {
    const url = await pooled({ mode: 'transaction', order })
    expect(await identityFailure(url)).toEqual(['SERVER_PLATFORM_DATABASE_UNAVAILABLE', HINT])
    expect(await failure(migrateDocuments(url, 1n))).toEqual([
      'SERVER_DOCUMENT_DATABASE_UNAVAILABLE',
      HINT,
    ])
    const direct = new Database({ url: new Secret(fresh.url) })
    const tables = await direct.rows(
      `select 1 from pg_class where relname like 'service_%' or relname like 'svc_%'`,
    )
    await direct.close()
    expect(tables).toEqual([])
  },
)

test('a pooler that keeps the session of a connection serves both databases', {
  tags: ['slow'],
}, async () => {
  const url = await pooled({ mode: 'session' })
  expect(await identityFailure(url)).toEqual([])
  expect(await failure(migrateDocuments(url, 1n))).toEqual([])
})

test('one connection is enough without a pooler', async () => {
  await pooled({ mode: 'session' })
  const database = new Database({ url: new Secret(fresh.url), connectionsMax: 1 })
  await requireSessions(database, 'SERVER_PLATFORM_DATABASE_UNAVAILABLE')
  await database.close()
})
