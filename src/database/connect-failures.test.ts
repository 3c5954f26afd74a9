/**
 * Connections that fail for one wrong part of the database URL, on a real PostgreSQL or a peer that
 * behaves unlike one. Each reason names that part and repeats no value of the URL.
 */
import { type AddressInfo, createServer, type Server } from 'node:net'
import { Client, type QueryResult } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { Secret } from '../value/secret.ts'
import { connectReason } from './connect-failures.ts'
import { Database } from './database.ts'
import { QueryFailure, toStartupFault } from './errors.ts'

const CANARY = 'canary'
const ROLE = `role_${process.pid}`
let database: TestDatabase
const silent = createServer((socket) => socket.on('error', () => {}))
const closing = createServer((socket) => socket.destroy())

beforeAll(async () => {
  database = await freshDatabase()
  for (const server of [silent, closing]) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  }
})
afterAll(async () => {
  silent.close()
  closing.close()
  await run(`drop role if exists ${ROLE}`)
  await database.drop()
})

async function run(sql: string): Promise<QueryResult> {
  const client = new Client({ connectionString: database.url })
  await client.connect()
  const result = await client.query(sql)
  await client.end()
  return result
}

function portOf(server: Server): string {
  return String((server.address() as AddressInfo).port)
}

async function failureOf(edit: (url: URL) => void, sql?: string): Promise<QueryFailure> {
  const url = new URL(database.url)
  edit(url)
  const tried = new Database({ url: new Secret(url.href), connectTimeoutMs: 500 })
  try {
    const connection = await tried.connect()
    try {
      await connection.query(sql ?? 'select 1')
    } finally {
      connection.discard()
    }
  } catch (error) {
    if (error instanceof QueryFailure) return error
    throw error
  }
  throw new Error('the connection did not fail')
}

describe('the reason of a failed connection', () => {
  test.each<[string, (url: URL) => void, RegExp]>([
    ['a wrong password', (url) => (url.password = CANARY), /^password: .*rejects.*\(28P01\)$/],
    ['no password', (url) => (url.password = ''), /^password: .*has none; add it$/],
    ['an unknown user', (url) => (url.username = CANARY), /^password: .*user.*\(28P01\)$/],
    ['an unknown database', (url) => (url.pathname = CANARY), /^database: .*\(3D000\)$/],
    ['an unknown host', (url) => (url.hostname = `${CANARY}.invalid`), /^host: .*resolved; .*\(E/],
    ['a port where nothing listens', (url) => (url.port = '1'), /^host: .*\(ECONNREFUSED\)$/],
    ['TLS that is not supported', (url) => (url.search = 'sslmode=require'), /^TLS: .*support TLS/],
    ['a host that does not respond', (url) => (url.port = portOf(silent)), /^host: .*not respond/],
    ['a host that hangs up', (url) => (url.port = portOf(closing)), /^host: .*was closed; check/],
  ])('the reason of a failed connection names %s', async (_, edit, reason) => {
    const { kind, message } = await failureOf(edit)
    expect(kind).toBe('unavailable')
    expect(message).toMatch(reason)
    expect(message).not.toContain(CANARY)
  })

  test('a failed connection is not left open at the server', async () => {
    await failureOf((url) => (url.password = ''))
    const opening = () => run("select 1 from pg_stat_activity where state = 'starting'")
    await expect.poll(async () => (await opening()).rows).toEqual([])
  })

  test('the reason of a failed connection names a permission that the user lacks', async () => {
    await run(`create role ${ROLE} login password 'p'`)
    const failure = await failureOf((url) => {
      url.username = ROLE
      url.password = 'p'
    }, 'create table public.x ()')
    expect(toStartupFault(failure)).toMatchObject({
      code: 'SERVER_PLATFORM_DATABASE_UNAVAILABLE',
      detail: expect.stringMatching(/^permission: .*\(42501\)$/),
    })
  })

  test.each([
    ['28000', /^user: /],
    ['53300', /^capacity: /],
    ['57P03', /^state: /],
    ['ETIMEDOUT', /^host: /],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /^TLS: .*NODE_EXTRA_CA_CERTS/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /^TLS: /],
  ])('the reason of a failed connection has an explanation for %s', (code, reason) => {
    expect(connectReason(Object.assign(new Error(CANARY), { code }))).toMatch(reason)
  })

  test('the reason of a failed connection is null for an error that has no explanation', () => {
    expect(connectReason(Object.assign(new Error(CANARY), { code: 'XX000' }))).toBeNull()
    expect(connectReason(new Error(CANARY))).toBeNull()
    expect(connectReason(CANARY)).toBeNull()
  })
})
