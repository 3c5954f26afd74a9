/** The main story: from an empty directory to the calls of an application, through restarts. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Application,
  application,
  fields,
  id,
  mutation,
  operationId,
  query,
  send,
  string,
  UNTYPED,
} from '../application.ts'
import { argv } from '../argv.ts'

let app: Application

beforeAll(async () => {
  app = await application()
})

afterAll(async () => {
  await app?.installation.dispose()
})

const remote = () => argv`--remote --root ${app.installation.productRoot}`

describe('the main story', () => {
  test('an application writes and reads back what it wrote', async () => {
    const created = await mutation(app, {
      function: 'channels.create',
      arguments: { name: string('general'), author: string('Ada') },
    })
    expect(created.status).toBe(200)
    expect(created.body).toMatchObject({
      version: 1,
      status: 'ok',
      releaseId: app.releaseId,
      result: { type: 'typed_id', value: expect.stringMatching(/^channels_[0-9A-Z]{26}$/) },
      metadata: { kind: 'mutation', replayed: false, attempts: 1 },
    })
    expect(created.headers.get('x-service-request-id')).toBe(created.body.requestId)
    expect(created.headers.get('x-service-release-id')).toBe(app.releaseId)
    expect(created.headers.get('x-service-invocation-id')).toMatch(/^ivc_/)
    const channel = created.body.result.value
    const sent = await mutation(app, {
      function: 'messages.send',
      arguments: { channel: id(channel), author: string('Ada'), body: string('hello') },
    })
    expect(Number(sent.body.metadata.commitSequence)).toBeGreaterThan(
      Number(created.body.metadata.commitSequence),
    )
    const listed = await query(app, {
      function: 'messages.list',
      arguments: { channel: id(channel) },
    })
    expect(listed.body.metadata).toEqual({
      kind: 'query',
      snapshotSequence: sent.body.metadata.commitSequence,
    })
    const [newest] = listed.body.result.value
    expect(fields(newest)).toMatchObject({
      _id: sent.body.result,
      body: string('hello'),
      kind: string('text'),
      likes: { type: 'int64', value: '0' },
      _createdAt: { type: 'timestamp' },
    })
  })

  test('a replay returns the original result, also after a restart', async () => {
    const invocation = {
      function: 'channels.create',
      arguments: { name: string('restart'), author: string('Ada') },
      operationId: operationId(),
    }
    const first = await mutation(app, invocation)
    const again = await mutation(app, invocation)
    await app.restart('stop')
    const afterStop = await mutation(app, invocation)
    await app.restart('kill')
    const afterKill = await mutation(app, invocation)
    for (const replay of [again, afterStop, afterKill]) {
      expect(replay.body.result).toEqual(first.body.result)
      expect(replay.body.metadata).toEqual({ ...first.body.metadata, replayed: true })
      expect(replay.body.requestId).not.toBe(first.body.requestId)
    }
    const changed = await mutation(app, {
      ...invocation,
      arguments: { name: string('other'), author: string('Ada') },
    })
    expect(changed.status).toBe(409)
    expect(changed.body.error).toMatchObject({ code: 'OPERATION_REUSED', retryable: false })
  })

  test('a declared error has the HTTP status of its kind', async () => {
    const twice = await mutation(app, {
      function: 'channels.create',
      arguments: { name: string('restart'), author: string('Ada') },
    })
    expect(twice.status).toBe(409)
    expect(twice.body.error.code).toBe('APP_CHANNEL_EXISTS')
  })

  test('the session of the command line survives restarts and is refreshed', async () => {
    const status = await app.svc(argv`status ${remote()}`)
    expect(status.channels).toMatchObject([{ channel: 'production', releaseId: app.releaseId }])
    const file = join(app.installation.directory, 'config/credentials-v1.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('svc call converts plain JSON with the declared validators', async () => {
    const to = argv`--key-env KEY --url ${app.server.application!}`
    const environment = { KEY: app.key }
    const made = await app.svc(
      argv`
        call channels.create {"name":"cli","author":"Ada"} ${remote()} ${to}
        --target channel:production
      `,
      environment,
    )
    expect(made.result).toMatch(/^channels_/)
    const listed = await app.svc(
      argv`call channels.list ${remote()} ${to} --target channel:production`,
      environment,
    )
    expect(listed.result.map((channel: { name: string }) => channel.name)).toContain('cli')
  })

  test('an unchanged Workspace creates no second Release', async () => {
    const again = await app.svc(argv`release ${remote()} --channel production ${UNTYPED}`)
    expect(again.releaseId).toBe(app.releaseId)
    const status = await app.svc(argv`status ${remote()}`)
    expect(status.releases).toHaveLength(1)
  })

  test('a changed Workspace becomes the Release that the Channel serves', async () => {
    const { writeFileSync } = await import('node:fs')
    const file = join(app.installation.workspace, 'functions/channels.ts')
    const source = readFileSync(file, 'utf8').replace('take(100)', 'take(1)')
    writeFileSync(file, source)
    const next = await app.svc(argv`release ${remote()} --channel production ${UNTYPED}`)
    expect(next.releaseId).not.toBe(app.releaseId)
    const listed = await query(app, { function: 'channels.list' })
    expect(listed.body.releaseId).toBe(next.releaseId)
    expect(listed.body.result.value).toHaveLength(1)
    const pinned = await query(app, {
      function: 'channels.list',
      target: `release:${app.releaseId}`,
    })
    expect(pinned.body.releaseId).toBe(app.releaseId)
    expect(pinned.body.result.value.length).toBeGreaterThan(1)
  })

  test('a stale precondition exits with status 4', async () => {
    const promoted = await app.installation.svc(
      argv`
        promote ${remote()} --channel production --release ${app.releaseId} --expected empty
        --json
      `,
    )
    expect(promoted.status).toBe(4)
    expect(JSON.parse(promoted.stdout).error.code).toBe('PRODUCT_CAS_CONFLICT')
  })

  test('the first-owner code works once, and the next start removes its file', async () => {
    expect(existsSync(app.installation.codeFile)).toBe(false)
    const replay = await send(app.server.management, 'POST', '/v1/auth/exchange', {
      body: { code: `rk_inv_v1_${'A'.repeat(43)}` },
    })
    expect(replay.status).toBe(401)
    expect(replay.body.error.code).toBe('PLATFORM_AUTHENTICATION_FAILED')
  })
})

describe('invalid requests of an application', () => {
  const rejected: [
    string,
    () => Promise<{ status: number; body: { error: { code: string } } }>,
    number,
    string,
  ][] = [
    [
      'no key',
      () => query(app, { function: 'channels.list', key: null }),
      401,
      'APPLICATION_KEY_REQUIRED',
    ],
    [
      'a wrong key',
      () => query(app, { function: 'channels.list', key: `rk_sec_v1_${'A'.repeat(43)}` }),
      401,
      'APPLICATION_KEY_INVALID',
    ],
    [
      'an unknown Function',
      () => query(app, { function: 'channels.nothing' }),
      404,
      'FUNCTION_NOT_FOUND',
    ],
    [
      'a Mutation called as a Query',
      () => query(app, { function: 'channels.create' }),
      404,
      'FUNCTION_NOT_FOUND',
    ],
    [
      'an unknown Channel',
      () => query(app, { function: 'channels.list', target: 'channel:nothing' }),
      404,
      'TARGET_NOT_FOUND',
    ],
    [
      'no serving policy',
      () => query(app, { function: 'channels.list', target: 'environment:default' }),
      404,
      'TARGET_NOT_FOUND',
    ],
    [
      'a malformed target',
      () => query(app, { function: 'channels.list', target: 'latest' }),
      400,
      'REQUEST_INVALID',
    ],
    [
      'an undeclared argument',
      () => query(app, { function: 'channels.list', arguments: { x: string('y') } }),
      400,
      'ARGUMENTS_INVALID',
    ],
    [
      'a Mutation without an operation ID',
      () => mutation(app, { function: 'channels.create', operationId: 'opn_x' }),
      400,
      'REQUEST_INVALID',
    ],
    [
      'an operation ID on a Query',
      () => query(app, { function: 'channels.list', operationId: operationId() }),
      400,
      'REQUEST_INVALID',
    ],
    [
      'an operator token as a key',
      () => query(app, { function: 'channels.list', key: `rk_at_v1_${'A'.repeat(43)}` }),
      401,
      'APPLICATION_KEY_INVALID',
    ],
    [
      'another media type',
      () => query(app, { function: 'channels.list', headers: { 'content-type': 'text/plain' } }),
      415,
      'MEDIA_TYPE_UNSUPPORTED',
    ],
    [
      'a foreign browser origin',
      () => query(app, { function: 'channels.list', headers: { origin: 'https://evil.example' } }),
      403,
      'ORIGIN_DENIED',
    ],
  ]
  test.each(rejected)('a request with %s is rejected', async (_, attempt, status, code) => {
    const reply = await attempt()
    expect(reply.body).toMatchObject({ version: 1, status: 'error', error: { code } })
    expect(reply.status).toBe(status)
  })

  test('a request for an unknown route or method is rejected with the envelope', async () => {
    const origin = app.server.application!
    expect((await send(origin, 'GET', '/v1/query')).body.error.code).toBe('METHOD_NOT_ALLOWED')
    expect((await send(origin, 'POST', '/v1/nothing', { body: {} })).body.error.code).toBe(
      'ROUTE_NOT_FOUND',
    )
    expect((await send(origin, 'GET', '/healthz')).body).toEqual({ status: 'live' })
    expect((await send(origin, 'GET', '/readyz')).body).toEqual({ status: 'ready' })
    const management = app.server.management
    expect((await send(management, 'GET', '/v1/nothing')).body.error.code).toBe(
      'PLATFORM_NOT_FOUND',
    )
    expect((await send(management, 'GET', '/health/ready')).body).toEqual({ status: 'ready' })
  })
})
