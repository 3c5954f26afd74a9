import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { freshDatabase } from '../../../testing/databases/postgres.ts'
import { postgresProxy } from '../../../testing/databases/postgres-proxy.ts'
import { heldEngine } from '../../../testing/documents/held-engines.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../testing/documents/stores.ts'
import { oneDocument, poolBench } from '../../../testing/runners.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore, StoreStatus } from '../../documents/store.ts'
import type { PoolStatistics } from '../runners/runner-pool.ts'
import { DocumentsHealth, runtimeHealth } from './health.ts'

/** A runner that has no containment and crashes on request. */
const MALICIOUS_RUNNER = new URL('../../../testing/hostile/malicious-runner.ts', import.meta.url)
  .pathname
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe('the runtime is', () => {
  const pool = (given: Partial<PoolStatistics>): PoolStatistics => ({
    containment: 'full',
    releases: 1,
    runners: 1,
    transactionRunners: 1,
    actionRunners: 0,
    inFlight: 0,
    recentBreakdowns: 0,
    failedStarts: 0,
    ...given,
  })

  test.each<[string, Partial<PoolStatistics>, string]>([
    ['healthy with full containment', {}, 'healthy'],
    ['healthy before a Release is loaded', { runners: 0 }, 'healthy'],
    ['degraded with partial containment', { containment: 'partial' }, 'degraded'],
    ['degraded without containment', { containment: 'none' }, 'degraded'],
    ['degraded before containment is known', { containment: null }, 'degraded'],
    ['healthy after four runner failures', { recentBreakdowns: 4 }, 'healthy'],
    ['degraded after five runner failures', { recentBreakdowns: 5 }, 'degraded'],
    ['healthy after failed starts while a runner is left', { failedStarts: 3 }, 'healthy'],
    ['unavailable after failed starts only', { failedStarts: 3, runners: 0 }, 'unavailable'],
  ])('%s', (_, given, status) => {
    expect(runtimeHealth(pool(given))).toBe(status)
  })

  test('degraded with uncontained runners, and the log records it', async () => {
    const bench = poolBench({ command: [process.execPath, MALICIOUS_RUNNER] })
    closers.push(() => bench.pool.close())
    expect(await bench.pool.start({ sandbox: 'preferred' })).toBe('none')
    expect(runtimeHealth(bench.pool.statistics())).toBe('degraded')
    expect(bench.log.records().map(({ event }) => event)).toContain('runner.containment')
  })

  test('degraded once five runners failed within a minute', async () => {
    const command = [process.execPath, MALICIOUS_RUNNER]
    const bench = poolBench({ command, limits: { isolationMillis: 0 } })
    closers.push(() => bench.pool.close())
    const code = bench.release('')
    for (let i = 1; i <= 5; i++) {
      await bench.pool.invoke(code, bench.call('crashes'), oneDocument)
      expect(bench.pool.statistics().recentBreakdowns).toBe(i)
    }
    expect(bench.metrics.collect().counters).toMatchObject({
      runnersBroken: 5,
      runnersKilledForCpu: 0,
    })
    expect(runtimeHealth({ ...bench.pool.statistics(), containment: 'full' })).toBe('degraded')
  })

  test('unavailable where no runner process starts, and counts the failed starts', async () => {
    const bench = poolBench({ command: ['/nonexistent'], limits: { restartMillis: 0 } })
    closers.push(() => bench.pool.close())
    const code = bench.release('')
    for (let i = 0; i < 3; i++) {
      await expect(bench.pool.invoke(code, bench.call('one'), oneDocument)).rejects.toMatchObject({
        code: 'UNAVAILABLE',
      })
    }
    const statistics = bench.pool.statistics()
    expect(statistics.failedStarts).toBeGreaterThanOrEqual(3)
    expect(runtimeHealth(statistics)).toBe('unavailable')
  })
})

describe('documents are', () => {
  const documentsHealth = (store: DocumentStore) => new DocumentsHealth(store).check()

  async function sqlite(): Promise<DocumentStore> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-health-'))
    closers.push(() => rmSync(directory, { recursive: true }))
    const store = await openSqliteDocuments(join(directory, 'documents.db'))
    closers.push(() => store.close())
    return store
  }

  test('healthy while their store replies, and unavailable once it is closed', async () => {
    const store = await sqlite()
    expect(await documentsHealth(store)).toBe('healthy')
    await store.close()
    expect(await documentsHealth(store)).toBe('unavailable')
  })

  test('degraded while commits fail, until one is durable again', async () => {
    const { engine, held, account, close } = await heldEngine({})
    closers.push(close)
    const status = async () =>
      (await engine.health()).find(({ name }) => name === 'documents')!.status
    await account(1)
    expect(await status()).toBe('healthy')
    held.hold()
    const failed = account(2).catch(({ code }: { code: string }) => code)
    await held.arrived()
    held.fail('UNAVAILABLE')
    expect([await failed, await status()]).toEqual(['UNAVAILABLE', 'degraded'])
    await account(3)
    expect(await status()).toBe('healthy')
  })

  test('unavailable while a read of the store times out, which all checks share', async () => {
    const reply = Promise.withResolvers<null>()
    let reads = 0
    const read = () => {
      reads += 1
      return reply.promise
    }
    const status: StoreStatus = { state: 'open' }
    const health = new DocumentsHealth({
      status,
      latestSequence: 0,
      read,
    } as Partial<DocumentStore> as DocumentStore)
    expect(await Promise.all([health.check(20), health.check(20)])).toEqual([
      'unavailable',
      'unavailable',
    ])
    expect(await health.check(20)).toBe('unavailable')
    expect(reads).toBe(1)
    reply.resolve(null)
    expect(await health.check(20)).toBe('healthy')
    expect(await health.check(20)).toBe('healthy')
    expect(reads).toBe(2)
  })

  test('unavailable while the database cannot be reached, and healthy after that', {
    tags: ['slow'],
  }, async () => {
    const database = await freshDatabase(DOCUMENT_TEMPLATE)
    closers.push(() => database.drop())
    const proxy = await postgresProxy(database.url)
    closers.push(() => proxy.close())
    const events: string[] = []
    const onProblem = (event: string) => events.push(event)
    const store = await openDocuments(proxy.url, { onProblem })
    closers.push(() => store.close())
    expect(await documentsHealth(store)).toBe('healthy')
    proxy.refuse(true)
    expect(await documentsHealth(store)).toBe('unavailable')
    expect(store.status.state).toBe('open')
    proxy.refuse(false)
    await expect.poll(() => documentsHealth(store)).toBe('healthy')
    expect(new Set(events)).toEqual(new Set(['connection_lost']))
  })

  test('unavailable where another server took the epoch', async () => {
    const database = await freshDatabase(DOCUMENT_TEMPLATE)
    closers.push(() => database.drop())
    const store = await openDocuments(database.url, { epochCheckMillis: 50 })
    closers.push(() => store.close())
    const other = await openDocuments(database.url)
    closers.push(() => other.close())
    await expect.poll(() => documentsHealth(store)).toBe('unavailable')
    expect(await documentsHealth(other)).toBe('healthy')
  })
})
