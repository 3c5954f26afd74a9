/**
 * Faults of the machine and of PostgreSQL, injected into one server after the other: what holds
 * meanwhile, and how soon the service is back. SVC_TEST_LONG=1 adds documents in PostgreSQL
 * and ten minutes of overload. Faults of the stores of files are in file-stores.test.ts,
 * of lost replies of PostgreSQL in src/documents/postgres/lost-connections.test.ts, of the times of
 * scheduled work in src/engine/scheduling, and of slow clients in slow-peers.test.ts.
 *
 * @module-tag slow
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnCluster, ownCluster } from '../../testing/databases/cluster.ts'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { type PostgresProxy, postgresProxy } from '../../testing/databases/postgres-proxy.ts'
import { type Application, application, createKey } from '../application.ts'
import { writeEntries } from '../restarts/entries.ts'
import { findRunners } from '../serializability/faults.ts'
import { Clock } from './clock.ts'
import { Disk } from './disk.ts'
import { type Fault, FaultRun, WHOLE } from './faults.ts'
import { EXPIRED, overload, renewToken, writeWork } from './overload.ts'
import { standby, withoutConnections } from './postgres.ts'

const IS_LONG = process.env.SVC_TEST_LONG === '1'
const MINUTES = 60_000
const MINUTE_SECONDS = 60
/** Free space below which uploads are rejected. */
const FLOOR_BYTES = 1024 * 1024

const directory = mkdtempSync(join(tmpdir(), 'svc-faults-'))
const noDisk = Disk.reason(directory)
const clock = Clock.make(directory)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function setClock(seconds: number): void {
  if (typeof clock === 'string') throw new Error(clock)
  clock.set(seconds)
}

function urlFile(name: string, url: string): string {
  const file = join(directory, name)
  writeFileSync(file, `${url}\n`, { mode: 0o600 })
  return file
}

const keyWith = async (app: Application, rateLimit: number) =>
  (await createKey(app, { scopes: 'query', rateLimit })).key

const notHealthy = (components: Readonly<Record<string, string>>) => ({
  ...WHOLE.health,
  ...components,
})

describe('with documents in the Product root', () => {
  let app: Application
  let disk: Disk | undefined
  let identity: TestDatabase
  let proxy: PostgresProxy
  let faults: FaultRun

  beforeAll(async () => {
    identity = await freshDatabase()
    proxy = await postgresProxy(identity.url)
    app = await application(
      (workspace) => {
        writeEntries(workspace)
        writeWork(workspace)
        if (noDisk === null) disk = Disk.mountAt(join(workspace, '../product'))
      },
      {
        SERVICE_IDENTITY_DATABASE_URL_FILE: urlFile('identity-url', proxy.url),
        SERVICE_STORAGE_FREE_FLOOR_BYTES: String(FLOOR_BYTES),
        ...(typeof clock === 'string' ? {} : clock.environment),
      },
    )
    faults = new FaultRun(app)
  })
  afterAll(async () => {
    await app?.server.stop()
    disk?.unmount()
    await app?.installation.dispose()
    await proxy?.close()
    await identity?.drop()
  })

  const cannotStore = {
    mutation: 'UNAVAILABLE',
    change: 'PRODUCT_UNAVAILABLE',
    health: notHealthy({ documents: 'degraded', files: 'degraded', logs: 'degraded' }),
  }
  const onDisk: readonly Fault[] = [
    {
      name: 'a full disk',
      inject: () => disk!.fill(),
      heal: () => disk!.empty(),
      meanwhile: cannotStore,
    },
    {
      name: 'a read-only disk',
      inject: () => disk!.setReadOnly(true),
      heal: () => disk!.setReadOnly(false),
      meanwhile: cannotStore,
    },
  ]
  const ofIdentity: readonly Fault[] = [
    {
      name: 'the absence of the identity PostgreSQL',
      inject: () => proxy.refuse(true),
      heal: () => proxy.refuse(false),
      meanwhile: {
        operators: 503,
        change: 'PLATFORM_UNAVAILABLE',
        health: { all: 'PLATFORM_UNAVAILABLE' },
      },
    },
  ]
  const ofClock: readonly Fault[] = [
    {
      name: 'a clock five minutes ahead',
      inject: () => setClock(5 * MINUTE_SECONDS),
      heal: () => setClock(0),
      meanwhile: {},
    },
    {
      name: 'a clock an hour behind',
      inject: () => setClock(-60 * MINUTE_SECONDS),
      heal: () => setClock(0),
      meanwhile: {},
    },
    {
      name: 'a clock an hour ahead',
      inject: () => setClock(60 * MINUTE_SECONDS),
      heal: () => setClock(0),
      // The access tokens of operators are valid for ten minutes; `svc` renews them.
      meanwhile: { change: EXPIRED, health: { all: EXPIRED } },
    },
  ]

  test.skipIf(noDisk !== null).each(onDisk)(
    `$name rejects what it cannot store and keeps the rest (${noDisk ?? 'mounted for this test'})`,
    (fault) => faults.run(fault),
  )

  test.skipIf(noDisk !== null)(
    'a start on a read-only disk fails and names the cause',
    async () => {
      await app.server.stop()
      disk!.setReadOnly(true)
      try {
        await expect(app.start()).rejects.toThrow('SERVER_PRODUCT_ROOT')
      } finally {
        disk!.setReadOnly(false)
      }
      await app.start()
      await faults.untilObserved(WHOLE)
    },
  )

  test.skipIf(typeof clock === 'string').each(ofClock)(
    `$name ends no call (${typeof clock === 'string' ? clock : 'set for this test'})`,
    (fault) => faults.run(fault),
  )

  test.each(ofIdentity)('$name stops operators and no caller', (fault) => faults.run(fault))

  test('a stopped runner ends its own calls and no others', async () => {
    const runner = await findBusyRunner()
    const begun = performance.now()
    process.kill(runner, 'SIGSTOP')
    try {
      await expect.poll(() => findRunners(app), { timeout: 60_000 }).not.toContain(runner)
      await faults.untilObserved(WHOLE)
      const ended = Math.round(performance.now() - begun)
      process.stdout.write(`a stopped runner: back ${ended} ms after it stopped\n`)
    } finally {
      if (findRunners(app).includes(runner)) process.kill(runner, 'SIGCONT')
    }
  })

  /** Resolves with a runner that executes calls: another one may wait for a Release. */
  async function findBusyRunner(): Promise<number> {
    const ticks = (pid: number) => {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[11])
    }
    const before = new Map(findRunners(app).map((pid) => [pid, ticks(pid)]))
    const busy = () => [...before].find(([pid, begun]) => ticks(pid) > begun)?.[0] ?? null
    await expect.poll(busy, { timeout: 60_000 }).not.toBeNull()
    return busy()!
  }

  test('no acknowledged Mutation is lost in any of these faults', () => faults.end())

  test(
    'overload is rejected at once, operators are answered, and the service recovers',
    async () => {
      const unlimitedKey = await keyWith(app, 1_000_000)
      const { crowd, failedReads, mibBefore, mibPeak } = await overload(app, {
        connections: 6_000,
        unlimitedKey,
        ...(IS_LONG
          ? { key: unlimitedKey, seconds: 600, perSecond: (sustainable) => 2 * sustainable }
          : { key: await keyWith(app, 100), seconds: 1, perSecond: () => 4_000 }),
      })
      const ended = performance.now()
      await renewToken(app)
      await faults.untilObserved(WHOLE)
      const millis = Math.round(performance.now() - ended)
      process.stdout.write(`overload: back after ${millis} ms\n`)
      expect(crowd).toMatchObject({ lost: 0, withoutRetryAfter: 0 })
      expect(crowd.accepted).toBeGreaterThan(0)
      const { BUSY = 0, RATE_LIMITED = 0 } = crowd.rejected
      expect(BUSY + RATE_LIMITED).toBeGreaterThan(0)
      expect(failedReads).toEqual({})
      expect(mibPeak - mibBefore).toBeLessThanOrEqual(512)
    },
    20 * MINUTES,
  )
})

describe.skipIf(!IS_LONG)(
  'with documents in PostgreSQL',
  () => {
    let app: Application
    let cluster: OwnCluster
    let proxy: PostgresProxy
    let faults: FaultRun

    beforeAll(async () => {
      cluster = await ownCluster()
      proxy = await postgresProxy(cluster.url)
      app = await application(writeEntries, {
        SERVICE_PLATFORM_DATABASE_URL_FILE: urlFile('documents-url', proxy.url),
      })
      faults = new FaultRun(app)
    })
    afterAll(async () => {
      await app?.installation.dispose()
      await proxy?.close()
      await cluster?.dispose()
    })

    const unavailable = {
      query: 'UNAVAILABLE',
      mutation: 'UNAVAILABLE',
      ready: 503,
      health: notHealthy({ documents: 'unavailable' }),
    } as const
    const rejectsWrites = {
      mutation: 'UNAVAILABLE',
      health: notHealthy({ documents: 'degraded' }),
    } as const
    let connections: { end(): Promise<void> }
    const table: readonly Fault[] = [
      {
        name: 'an absent PostgreSQL',
        inject: () => proxy.refuse(true),
        heal: () => proxy.refuse(false),
        meanwhile: unavailable,
      },
      {
        name: 'a stopped PostgreSQL',
        inject: () => cluster.stop(),
        heal: () => cluster.start(),
        meanwhile: unavailable,
      },
      {
        name: 'a killed PostgreSQL',
        inject: () => cluster.kill(),
        heal: () => cluster.start(),
        meanwhile: unavailable,
      },
      {
        name: 'a PostgreSQL that is a read-only standby',
        inject: () => standby.begin(cluster),
        heal: () => standby.promote(cluster),
        meanwhile: rejectsWrites,
      },
      {
        name: 'a PostgreSQL without free connections',
        inject: async () => {
          proxy.refuse(true)
          connections = await withoutConnections(cluster)
          proxy.refuse(false)
        },
        heal: () => connections.end(),
        meanwhile: unavailable,
      },
    ]

    test.each(table)('$name gives 503 with Retry-After until it is back', (fault) =>
      faults.run(fault),
    )

    test('no acknowledged Mutation is lost in any of these faults', () => faults.end())
  },
  10 * MINUTES,
)
