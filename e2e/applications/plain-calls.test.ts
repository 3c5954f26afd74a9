/** Plain calls against the compiled executables, as curl sends them, on each store. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { type Application, application, type Json, operationId } from '../application.ts'

const TALLY = `import { action, mutation, query, v } from 'svc'
export const echo = action({
  clients: ['confidential'],
  arguments: { at: v.timestamp(), bytes: v.bytes(), big: v.int64() },
  returns: v.object({ at: v.timestamp(), bytes: v.bytes(), big: v.int64() }),
  handler: (_, given) => given,
})
export const mixed = query({
  clients: ['confidential'],
  arguments: { value: v.union(v.int64(), v.string()), other: v.optional(v.any()) },
  handler: (_, { value }) => value,
})
export const fail = mutation({
  clients: ['confidential'],
  errors: { NOT_NOW: 'conflict' },
  returns: v.null(),
  handler: (ctx) => ctx.fail('NOT_NOW'),
})
`

interface Given {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
}

const LONG = process.env.SVC_TEST_LONG === '1'
/** Every other test of calls has documents in SQLite. */
const STORES = LONG ? ['SQLite', 'PostgreSQL'] : ['PostgreSQL']

describe.each(STORES)('plain calls with documents in %s', (store) => {
  let documents: TestDatabase | null = null
  let app: Application

  beforeAll(async () => {
    let settings = {}
    if (store === 'PostgreSQL') {
      documents = await freshDatabase()
      settings = { SERVICE_PLATFORM_DATABASE_URL: documents.url }
    }
    app = await application((workspace) => {
      writeFileSync(join(workspace, 'functions/tally.ts'), TALLY)
    }, settings)
  })
  afterAll(async () => {
    await app?.installation.dispose()
    await documents?.drop()
  })

  async function send(path: string, body: string | null, { method, headers }: Given = {}) {
    const response = await fetch(`${app.server.application}${path}`, {
      method: method ?? 'POST',
      headers: {
        'x-service-key': app.key,
        'x-service-target': 'channel:production',
        ...(body !== null && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== null && { body }),
    })
    return {
      status: response.status,
      headers: response.headers,
      json: (await response.json()) as Json,
    }
  }
  const call = (name: string, given: object = {}, more: Given = {}) =>
    send(`/v1/functions/${name}`, JSON.stringify(given), more)

  test('an application writes and reads back what it wrote', async () => {
    const channel = await call('channels.create', { name: 'plain', author: 'Ada' })
    expect(channel.json).toMatchObject({ status: 'ok', metadata: { kind: 'mutation' } })
    const sent = await call('messages.send', {
      channel: channel.json.result,
      author: 'Ada',
      body: 'Hello',
    })
    const listed = await call('messages.list', { channel: channel.json.result, limit: 1 })
    expect(listed.json.result).toEqual([
      {
        _id: sent.json.result,
        _createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
        _revision: expect.any(Number),
        author: 'Ada',
        body: 'Hello',
        channel: channel.json.result,
        kind: 'text',
        likes: 0,
      },
    ])
    const given = encodeURIComponent(JSON.stringify({ channel: channel.json.result, limit: '1' }))
    const path = `/v1/functions/messages.list?arguments=${given}`
    const read = await send(path, null, { method: 'GET' })
    expect(read.json.result).toEqual(listed.json.result)
    expect(read.headers.get('cache-control')).toBe('no-store')
  })

  test('a repeat is answered from the record, also after a restart', async () => {
    const headers = { 'idempotency-key': operationId() }
    const given = { name: 'once', author: 'Ada' }
    const first = await call('channels.create', given, { headers })
    expect(first.json.metadata).toMatchObject({
      replayed: false,
      operationId: headers['idempotency-key'],
    })
    await app.restart('kill')
    const again = await call('channels.create', given, { headers })
    expect(again.json).toMatchObject({ result: first.json.result, metadata: { replayed: true } })
    const other = await call('channels.create', { ...given, name: 'twice' }, { headers })
    expect([other.status, other.json.error.code]).toEqual([409, 'OPERATION_REUSED'])
    const without = await call('channels.create', given)
    expect([without.status, without.json.error.code]).toEqual([409, 'APP_CHANNEL_EXISTS'])
  })

  test('an Action, and a Query without declared result, have their forms', async () => {
    const given = { at: '1969-12-31T23:59:59.999999Z', bytes: '-_8', big: '9223372036854775807' }
    expect((await call('tally.echo', given)).json).toMatchObject({
      result: given,
      metadata: { kind: 'action', schedulesCreated: '0' },
    })
    const value = { type: 'string', value: '5' }
    expect((await call('tally.mixed', { value })).json.result).toEqual(value)
    const plain = await call('tally.mixed', { value: '5' })
    expect([plain.status, plain.json.error.code]).toEqual([400, 'ARGUMENTS_INVALID'])
  })

  test('rejections have the error envelope', async () => {
    const codes = async (...sending: readonly ReturnType<typeof send>[]) =>
      (await Promise.all(sending)).map(({ status, json }) => `${status} ${json.error?.code}`)
    const list = '/v1/functions/channels.list'
    expect(
      await codes(
        call('tally.fail'),
        call('tally.none'),
        send(list, '{"a":1,"a":2}'),
        send(list, '{"__proto__":1}'),
        send(list, '{"a":1e400}'),
        send(list, `${'['.repeat(10_000)}${']'.repeat(10_000)}`),
        send('/v1/functions/tally.fail', null, { method: 'GET' }),
        send('/v1/functions/tally%2efail', '{}'),
        send('/v1/functions/channels.list%00', '{}'),
        send(list, '{}', { headers: { 'x-service-key': 'rk_sec_v1_x' } }),
      ),
    ).toEqual([
      '409 APP_NOT_NOW',
      '404 FUNCTION_NOT_FOUND',
      '400 REQUEST_INVALID',
      '400 REQUEST_INVALID',
      '400 REQUEST_INVALID',
      '400 REQUEST_INVALID',
      '405 METHOD_NOT_ALLOWED',
      '404 ROUTE_NOT_FOUND',
      '404 ROUTE_NOT_FOUND',
      '401 APPLICATION_KEY_INVALID',
    ])
  })
})
