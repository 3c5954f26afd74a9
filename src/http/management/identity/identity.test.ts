import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { postgresProxy } from '../../../../testing/databases/postgres-proxy.ts'
import { type TestIdentity, testIdentity } from '../../../../testing/identity.ts'
import { type TestManagement, testManagement } from '../../../../testing/openapi/checked-origins.ts'
import { deliverProductAudit } from '../../../identity/audit.ts'
import type { Identity } from '../../../identity/identity.ts'
import type { LinkableEnvironment } from '../../../identity/resources.ts'
import { CAPABILITIES } from '../../../value/capabilities.ts'
import type { EnvironmentId, ProjectId } from '../../../value/ids.ts'
import { Login, Resources, Self, Sessions } from '../../../wire/identity/auth.ts'
import { read } from '../../../wire/reading/read.ts'
import { healthRoutes } from '../health.ts'
import { type AuthApp, authRoutes } from './auth.ts'
import { type ResourcesApp, resourceRoutes } from './resources.ts'
import { sessionRoutes } from './sessions.ts'

const ENVIRONMENT: LinkableEnvironment = {
  projectId: 'prj_00000000000000000000000001' as ProjectId,
  environmentId: 'env_00000000000000000000000001' as EnvironmentId,
  name: 'Production',
  slug: 'production',
  managementOrigin: 'https://manage.example.com',
}
let t: TestIdentity
let hono: TestManagement

beforeEach(async () => {
  t = await testIdentity()
  await t.identity.startup()
  hono = originOf(t.identity)
})

function originOf(identity: Identity): TestManagement {
  return testManagement<AuthApp & ResourcesApp>({
    app: {
      identity,
      sessions: identity,
      environment: null,
      managementOrigin: ENVIRONMENT.managementOrigin,
      linkableEnvironments: async () => [ENVIRONMENT],
    },
    system: t.system,
    log: t.log.log,
    routes: [...authRoutes, ...sessionRoutes, ...resourceRoutes, ...healthRoutes],
  })
}

afterEach(async () => {
  await t.dispose()
})

const code = () => readFileSync(t.codePath, 'utf8').trimEnd()

async function post(path: string, body: unknown): Promise<Response> {
  return hono.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

async function get(path: string, token?: string, method = 'GET'): Promise<Response> {
  return hono.request(path, {
    method,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  })
}

async function logIn(given: object = {}): Promise<Login> {
  const response = await post('/v1/auth/exchange', { code: code(), ...given })
  expect(response.status).toBe(201)
  return read(Login, await response.json(), 'PLATFORM_INTERNAL')
}

async function rejection(response: Response, status: number, name: string): Promise<void> {
  expect(response.status).toBe(status)
  expect(response.headers.get('cache-control')).toBe('no-store')
  const body = (await response.json()) as { error: { code: string } }
  expect(body.error.code).toBe(name)
}

test('discovery names the methods and the origin without a login', async () => {
  const response = await get('/v1/auth/config')
  expect(await response.json()).toEqual({
    version: 1,
    methods: ['invitation'],
    managementOrigin: 'https://manage.example.com',
  })
})

test('an exchange returns 201 with a login that is not cached', async () => {
  const response = await post('/v1/auth/exchange', {
    code: code(),
    deviceName: 'Ada’s laptop',
    operatorName: 'Ada',
  })
  expect(response.status).toBe(201)
  expect(response.headers.get('cache-control')).toBe('no-store, max-age=0')
  const now = t.system.nowMicros()
  expect(await response.json()).toEqual({
    version: 1,
    operator: {
      operatorId: expect.stringMatching(/^opr_/),
      operatorName: 'Ada',
      createdAtMicros: String(now),
    },
    session: {
      sessionId: expect.stringMatching(/^ops_/),
      deviceName: 'Ada’s laptop',
      createdAtMicros: String(now),
      lastUsedAtMicros: String(now),
      accessExpiresAtMicros: String(now + 600_000_000n),
      refreshExpiresAtMicros: String(now + 2_592_000_000_000n),
      current: true,
    },
    grants: [
      {
        scope: { kind: 'installation', projectId: null, environmentId: null },
        capabilities: CAPABILITIES,
        source: 'bootstrap',
      },
    ],
    tokenType: 'Bearer',
    accessToken: expect.stringMatching(/^rk_at_v1_[\w-]{43}$/),
    refreshToken: expect.stringMatching(/^rk_rt_v1_[\w-]{96}$/),
  })
})

test.each([
  ['no code', {}],
  ['an unknown field', { code: 'x', role: 'owner' }],
  ['an empty name', { code: 'x', deviceName: '' }],
  ['a name of 129 characters', { code: 'x', deviceName: 'x'.repeat(129) }],
  ['a control character', { code: 'x', deviceName: 'a\u0007b' }],
  ['a name outside of NFC', { code: 'x', operatorName: 'e\u0301' }],
  ['a code of another type', { code: 7 }],
  ['a code without end', { code: 'rk_inv_v1_'.repeat(100) }],
  ['a null name', { code: 'x', deviceName: null }],
  ['a list', []],
  ['a duplicate key', '{"code":"x","code":"y"}'],
])('an exchange with %s is invalid and echoes nothing', { tags: ['slow'] }, async (_, body) => {
  const response = await post('/v1/auth/exchange', body)
  expect(response.status).toBe(400)
  const text = await response.text()
  expect(text).toContain('PLATFORM_REQUEST_INVALID')
  expect(text).not.toMatch(/rk_inv|xxx|\\u0007|e\u0301/)
  expect(await t.sql('select 1 from service_operators')).toEqual([])
})

test('a wrong code and a used code are 401', async () => {
  const wrong = await post('/v1/auth/exchange', { code: `rk_inv_v1_${'A'.repeat(43)}` })
  expect(wrong.headers.get('www-authenticate')).toBe('Bearer')
  await rejection(wrong, 401, 'PLATFORM_AUTHENTICATION_FAILED')
  const used = code()
  await logIn()
  const again = await post('/v1/auth/exchange', { code: used })
  await rejection(again, 401, 'PLATFORM_AUTHENTICATION_FAILED')
})

test('a refresh returns 200 with new tokens, and the old ones are invalid', async () => {
  const first = await logIn()
  const response = await post('/v1/auth/refresh', { refreshToken: first.refreshToken })
  expect(response.status).toBe(200)
  expect(response.headers.get('cache-control')).toBe('no-store, max-age=0')
  const second = read(Login, await response.json(), 'PLATFORM_INTERNAL')
  expect(second.session.sessionId).toBe(first.session.sessionId)
  expect(second.accessToken).not.toBe(first.accessToken)
  await rejection(
    await get('/v1/auth/me', first.accessToken),
    401,
    'PLATFORM_AUTHENTICATION_FAILED',
  )
  const reused = await post('/v1/auth/refresh', { refreshToken: first.refreshToken })
  await rejection(reused, 401, 'PLATFORM_AUTHENTICATION_FAILED')
  await rejection(
    await get('/v1/auth/me', second.accessToken),
    401,
    'PLATFORM_AUTHENTICATION_FAILED',
  )
})

test('the caller is returned with its authorization revision', async () => {
  const login = await logIn()
  const response = await get('/v1/auth/me', login.accessToken)
  expect(response.headers.get('cache-control')).toBe('no-store')
  const self = read(Self, await response.json(), 'PLATFORM_INTERNAL')
  expect(self).toEqual({
    version: 1,
    operator: login.operator,
    session: login.session,
    grants: login.grants,
    authorizationRevision: '1',
  })
})

test('an authenticated request costs one statement', async () => {
  const { accessToken } = await logIn()
  const proxy = await postgresProxy(t.url)
  try {
    hono = originOf(t.another({ url: proxy.url }))
    // The first one opens the connection and prepares the statement.
    expect((await get('/v1/auth/me', accessToken)).status).toBe(200)
    const stop = proxy.record()
    expect((await get('/v1/auth/me', accessToken)).status).toBe(200)
    // Bind, Describe, Execute, Sync; neither Parse nor a second Execute or Query.
    expect(stop()).toEqual(['B', 'D', 'E', 'S'])
  } finally {
    await proxy.close()
  }
})

test('forged tokens of the right form cost no statement', async () => {
  const { accessToken, refreshToken } = await logIn()
  const forged = (token: string) => token.slice(0, -3) + (token.endsWith('AAA') ? 'EEE' : 'AAA')
  const proxy = await postgresProxy(t.url)
  try {
    hono = originOf(t.another({ url: proxy.url }))
    expect((await get('/v1/auth/me', accessToken)).status).toBe(200)
    const stop = proxy.record()
    expect((await get('/v1/auth/me', forged(accessToken))).status).toBe(401)
    const refreshed = await post('/v1/auth/refresh', { refreshToken: forged(refreshToken!) })
    expect(refreshed.status).toBe(401)
    expect(stop()).toEqual([])
  } finally {
    await proxy.close()
  }
})

test('resources are those within the grants', async () => {
  const login = await logIn()
  const whole = await get('/v1/auth/resources', login.accessToken)
  expect(read(Resources, await whole.json(), 'PLATFORM_INTERNAL').resources).toEqual([
    { ...ENVIRONMENT, capabilities: CAPABILITIES },
  ])
  await t.sql(
    `update service_operator_grants
        set scope_kind = 'project', project_id = 'prj_00000000000000000000000002'`,
  )
  const none = await get('/v1/auth/resources', login.accessToken)
  expect(await none.json()).toEqual({ version: 1, resources: [] })
})

test('sessions are listed without secrets and revoked by DELETE', async () => {
  const login = await logIn({ deviceName: 'ci' })
  const listed = await get('/v1/auth/sessions', login.accessToken)
  const { sessions } = read(Sessions, await listed.json(), 'PLATFORM_INTERNAL')
  expect(sessions).toEqual([login.session])
  for (const query of ['limit=1000', 'limit=1', `limit=1&after=${t.system.ids.make('ops')}`]) {
    const page = await get(`/v1/auth/sessions?${query}`, login.accessToken)
    const body = { version: 1, sessions: [login.session], next: null }
    expect(await page.json()).toEqual(body)
  }
  for (const query of [
    'limit=0',
    'limit=1001',
    'limit=1&limit=1',
    'after=',
    'after=ops_1',
    'x=1',
  ]) {
    const rejected = await get(`/v1/auth/sessions?${query}`, login.accessToken)
    await rejection(rejected, 400, 'PLATFORM_REQUEST_INVALID')
  }
  const path = `/v1/auth/sessions/${login.session.sessionId}`
  expect((await get(path, login.accessToken, 'DELETE')).status).toBe(204)
  await rejection(
    await get(path, login.accessToken, 'DELETE'),
    401,
    'PLATFORM_AUTHENTICATION_FAILED',
  )
  expect((await t.audit()).filter((each) => each === 'session.revoke')).toHaveLength(1)
})

test('a session ID of another form is 400, an unknown one 404', async () => {
  const { accessToken } = await logIn()
  const wrong = await get('/v1/auth/sessions/ops_1', accessToken, 'DELETE')
  await rejection(wrong, 400, 'PLATFORM_REQUEST_INVALID')
  const path = `/v1/auth/sessions/${t.system.ids.make('ops')}`
  await rejection(await get(path, accessToken, 'DELETE'), 404, 'PLATFORM_NOT_FOUND')
})

test('protected routes reject every other credential', async () => {
  const login = await logIn()
  for (const path of ['/v1/auth/me', '/v1/auth/sessions', '/v1/auth/resources']) {
    for (const token of [
      undefined,
      'x',
      login.refreshToken!,
      `rk_at_v1_${'A'.repeat(43)}`,
      `rk_sec_v1_${'A'.repeat(43)}`,
      `${login.accessToken}, Bearer ${login.accessToken}`,
    ]) {
      await rejection(await get(path, token), 401, 'PLATFORM_AUTHENTICATION_FAILED')
    }
  }
})

test('health requires no login and shows no version', async () => {
  const live = await get('/health/live')
  expect([live.status, await live.json()]).toEqual([200, { status: 'live' }])
  const ready = await get('/health/ready')
  expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready' }])
  await t.sql('update service_platform_meta set schema_version = 1')
  const unavailable = await get('/health/ready')
  expect([unavailable.status, await unavailable.json()]).toEqual([503, { status: 'unavailable' }])
  expect(unavailable.headers.get('retry-after')).toBe('1')
})

test('no token or code reaches the log', async () => {
  const used = code()
  const login = await logIn()
  await post('/v1/auth/refresh', { refreshToken: login.refreshToken })
  await post('/v1/auth/refresh', { refreshToken: login.refreshToken })
  for (const secret of [used, login.accessToken, login.refreshToken]) {
    expect(t.log.text()).not.toContain(secret!.slice(-40))
  }
})

test('a change of the Product leaves one audit record with its actor and request', async () => {
  const login = await logIn()
  const actor = await t.identity.authenticate(login.accessToken)
  const requestId = t.system.ids.make('req')
  const record = {
    auditId: t.system.ids.make('aud'),
    operation: 'product.channel.promote',
    outcome: 'succeeded' as const,
    actor: actor.operatorId,
    sessionId: actor.sessionId,
    credentialId: t.system.ids.make('crd'),
    subject: `${ENVIRONMENT.environmentId}/production`,
    atMicros: t.system.nowMicros(),
    requestId,
    operationId: t.system.ids.make('opn'),
    purpose: null,
  }
  // The outbox of the Product may deliver one record twice.
  await deliverProductAudit(t.identity, record)
  await deliverProductAudit(t.identity, record)
  const rows = await t.sql(
    `select operation, outcome, actor_operator_id, subject, request_id, session_id, operation_id
       from service_platform_audit where operation like 'product.%'`,
  )
  expect(rows).toEqual([
    {
      operation: 'product.channel.promote',
      outcome: 'succeeded',
      actor_operator_id: login.operator.operatorId,
      subject: `${ENVIRONMENT.environmentId}/production`,
      request_id: requestId,
      session_id: login.session.sessionId,
      operation_id: record.operationId,
    },
  ])
})

test('a client that disconnects while it sends a body is not counted as a failure', async () => {
  const leaving = new AbortController()
  const body = new ReadableStream({
    pull(source) {
      leaving.abort()
      source.error(leaving.signal.reason)
    },
  })
  const { signal } = leaving
  const headers = { 'content-type': 'application/json' }
  const request = new Request('http://x/v1/auth/exchange', {
    method: 'POST',
    headers,
    body,
    signal,
  })
  expect((await hono.fetch(request)).status).toBe(400)
  expect(t.log.records().filter(({ level }) => level === 'error')).toEqual([])
})
