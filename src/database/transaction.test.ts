import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { type PostgresProxy, postgresProxy } from '../../testing/databases/postgres-proxy.ts'
import { AssertionFailure } from '../errors/assert.ts'
import { Fault, isFault } from '../errors/fault.ts'
import { Secret } from '../value/secret.ts'
import { Database } from './database.ts'
import { type Tx, transaction } from './transaction.ts'

let base: TestDatabase
let proxy: PostgresProxy
/** Through the proxy. */
let database: Database
let direct: Database

beforeAll(async () => {
  base = await freshDatabase()
  proxy = await postgresProxy(base.url)
  database = new Database({ url: new Secret(proxy.url) })
  direct = new Database({ url: new Secret(base.url) })
  await direct.rows('create table counters (name text primary key, count integer not null)')
})

afterAll(async () => {
  await database.close()
  await direct.close()
  await proxy.close()
  await base.drop()
})

beforeEach(async () => {
  await direct.rows('delete from counters')
  await direct.rows(`insert into counters values ('a', 0), ('b', 0)`)
})

/** The whole message: `read committed` begins every transaction. */
const COMMIT = /^Q.{4}commit\0/s

async function counts(): Promise<number[]> {
  const rows = await direct.rows('select count from counters order by name')
  return rows.map((row) => Number(row.count))
}

const increment = (tx: Tx, name: string) =>
  tx.execute('update counters set count = count + 1 where name = $1', [name])

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    return error instanceof Fault ? error.code : String(error)
  }
  return 'none'
}

test('a rule that throws stores nothing, and its failure passes through', async () => {
  const work = transaction(database, async (tx) => {
    await increment(tx, 'a')
    throw new Fault('PLATFORM_CONFLICT')
  })
  expect(await codeOf(work)).toBe('PLATFORM_CONFLICT')
  expect(await counts()).toEqual([0, 0])
})

test('transactions that deadlock are retried until all of them succeed', {
  tags: ['slow'],
}, async () => {
  const orders = Array.from({ length: 4 }, (_, i) =>
    i % 2 === 0 ? (['a', 'b'] as const) : (['b', 'a'] as const),
  )
  let runs = 0
  const locked = { a: Promise.withResolvers<void>(), b: Promise.withResolvers<void>() }
  await Promise.all(
    orders.map(([first, second]) =>
      transaction(database, async (tx) => {
        runs++
        await increment(tx, first)
        locked[first].resolve()
        await Promise.all([locked.a.promise, locked.b.promise])
        await increment(tx, second)
      }),
    ),
  )
  expect(await counts()).toEqual([4, 4])
  expect(runs).toBeGreaterThan(4)
})

test('repeated serialization failures are unavailable after five attempts', async () => {
  let runs = 0
  const work = transaction(database, async (tx) => {
    runs++
    await increment(tx, 'a')
    await tx.rows(`do $$ begin raise exception 'x' using errcode = '40001'; end $$`, [])
  })
  expect(await codeOf(work)).toBe('PLATFORM_UNAVAILABLE')
  expect(runs).toBe(5)
  expect(await counts()).toEqual([0, 0])
})

test('a connection that is lost before COMMIT is sent stores nothing', async () => {
  for (const statement of [/begin isolation/, /cut here/]) {
    proxy.cut(statement, 'after')
    const work = transaction(database, async (tx) => {
      await increment(tx, 'a')
      await tx.rows(`select 'cut here'`, [])
    })
    expect(await codeOf(work)).toBe('PLATFORM_UNAVAILABLE')
  }
  expect(proxy.cuts).toBe(2)
  expect(await counts()).toEqual([0, 0])
})

test('a connection that is lost after COMMIT was sent is uncertain, stored or not', async () => {
  proxy.cut(COMMIT, 'after')
  expect(await codeOf(transaction(database, (tx) => increment(tx, 'a')))).toBe(
    'PLATFORM_IDENTITY_RESULT_UNCERTAIN',
  )
  expect(await counts()).toEqual([1, 0])
  proxy.cut(COMMIT, 'before')
  expect(await codeOf(transaction(database, (tx) => increment(tx, 'a')))).toBe(
    'PLATFORM_IDENTITY_RESULT_UNCERTAIN',
  )
  expect(await counts()).toEqual([1, 0])
})

test('a lost COMMIT of a rule that changed nothing is not uncertain', async () => {
  for (const when of ['before', 'after'] as const) {
    proxy.cut(COMMIT, when)
    const work = transaction(database, async (tx) => {
      await tx.rows('select count from counters for update', [])
      await tx.execute(`update counters set count = count + 1 where name = 'none'`, [])
    })
    expect(await codeOf(work)).toBe('PLATFORM_UNAVAILABLE')
  }
})

test('a backend that is terminated in a rule is unavailable, and the pool recovers', async () => {
  const work = transaction(database, async (tx) => {
    const rows = await tx.rows('select pg_backend_pid() as pid', [])
    await direct.rows('select pg_terminate_backend($1)', [Number(rows[0]?.pid)])
    await increment(tx, 'a')
  })
  expect(await codeOf(work)).toBe('PLATFORM_UNAVAILABLE')
  await transaction(database, (tx) => increment(tx, 'b'))
  expect(await counts()).toEqual([0, 1])
})

test('a backend that is terminated between two statements does not end the process', async () => {
  const work = transaction(database, async (tx) => {
    const rows = await tx.rows('select pg_backend_pid() as pid', [])
    await direct.rows('select pg_terminate_backend($1)', [Number(rows[0]?.pid)])
    await new Promise((resolve) => setTimeout(resolve, 50))
  })
  // COMMIT was never sent, so this is not uncertain.
  expect(await codeOf(work)).toBe('PLATFORM_UNAVAILABLE')
})

test('a constraint that fails at COMMIT certainly rolls the transaction back', async () => {
  await direct.rows(
    `create table children (name text references counters deferrable initially deferred)`,
  )
  const work = transaction(database, (tx) => tx.execute(`insert into children values ('x')`, []))
  expect(await codeOf(work)).toBe('PLATFORM_INTERNAL')
})

test('a rule that ignores a failed statement fails with an assertion', async () => {
  const work = transaction(database, async (tx) => {
    await tx.rows('select 1 / 0', []).catch(() => undefined)
  })
  await expect(work).rejects.toBeInstanceOf(AssertionFailure)
})

test('a transaction cannot be used after its end', async () => {
  const leaked = await transaction(database, async (tx) => tx)
  await expect(leaked.rows('select 1', [])).rejects.toBeInstanceOf(AssertionFailure)
})

test('failures of statements have no stored values', async () => {
  try {
    await direct.rows(`insert into counters values ('secret-value', 'secret-number')`)
  } catch (error) {
    expect(isFault(error, 'PLATFORM_INTERNAL')).toBe(true)
    expect(error).toMatchObject({ cause: undefined })
    expect(String((error as Fault).detail)).not.toContain('secret')
    return
  }
  expect.unreachable('the statement is wrong')
})

test('every connection has the session settings, even if the role has others', async () => {
  const rows = await database.rows(
    `select current_setting('search_path') as path,
            current_setting('statement_timeout') as statement_timeout,
            current_setting('lock_timeout') as lock_timeout,
            current_setting('idle_in_transaction_session_timeout') as idle_timeout,
            current_setting('application_name') as application_name`,
  )
  expect(rows).toEqual([
    {
      path: 'public, pg_temp',
      statement_timeout: '10s',
      lock_timeout: '5s',
      idle_timeout: '15s',
      application_name: 'svc-server',
    },
  ])
})

test('a pool without a free connection is unavailable after its timeout', async () => {
  const small = new Database({
    url: new Secret(base.url),
    connectionsMax: 1,
    connectTimeoutMs: 200,
  })
  const taken = await small.connect()
  try {
    expect(await codeOf(small.rows('select 1'))).toBe('PLATFORM_UNAVAILABLE')
  } finally {
    taken.release()
    await small.close()
  }
})
