import { afterEach, beforeEach, expect, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../../../testing/identity.ts'
import { type TestManagement, testManagement } from '../../../../testing/openapi/checked-origins.ts'
import {
  ENVIRONMENT,
  everythingBut,
  firstOwner,
  OTHER_ENVIRONMENT,
  operatorWith,
  PROJECT,
} from '../../../../testing/operators.ts'
import type { Login } from '../../../identity/sessions.ts'
import { CAPABILITIES, capabilitiesOfRole } from '../../../value/capabilities.ts'
import { INSTALLATION } from '../../../value/scope.ts'
import { InvitationIssued, InvitationOperation } from '../../../wire/identity/access.ts'
import { AuditPage } from '../../../wire/identity/audit.ts'
import { read } from '../../../wire/reading/read.ts'
import { auditRoutes } from './audit.ts'
import { type AuthApp, authRoutes } from './auth.ts'
import { invitationOperationRoutes } from './invitation-operations.ts'
import { invitationRoutes } from './invitations.ts'

const REQUEST = { operatorName: 'Grace', role: 'developer', scope: ENVIRONMENT }
let t: TestIdentity
let hono: TestManagement
let owner: Login

beforeEach(async () => {
  t = await testIdentity()
  owner = await firstOwner(t)
  hono = testManagement<AuthApp>({
    app: {
      identity: t.identity,
      sessions: t.identity,
      environment: null,
      managementOrigin: null,
    },
    system: t.system,
    log: t.log.log,
    routes: [...authRoutes, ...invitationRoutes, ...invitationOperationRoutes, ...auditRoutes],
  })
})

afterEach(async () => {
  await t.dispose()
})

interface Given {
  readonly login?: Login
  readonly key?: string
  readonly body?: unknown
}

async function send(method: string, path: string, given: Given = {}): Promise<Response> {
  const { login = owner, key, body } = given
  const headers = new Headers({ authorization: `Bearer ${login.accessToken.reveal()}` })
  if (key !== undefined) headers.set('idempotency-key', key)
  if (body !== undefined) headers.set('content-type', 'application/json')
  return hono.request(path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

const invite = (given: Given = {}) =>
  send('POST', '/v1/access/invitations', { body: REQUEST, ...given })

async function rejection(response: Response): Promise<[number, string]> {
  expect(response.headers.get('cache-control')).toBe('no-store')
  const body = (await response.json()) as { error: { code: string } }
  return [response.status, body.error.code]
}

const page = async (query = '') =>
  read(AuditPage, await (await send('GET', `/v1/access/audit${query}`)).json(), 'PLATFORM_INTERNAL')

test('issuance returns 201 once with the code, and a replay returns 200 without it', {
  tags: ['slow'],
}, async () => {
  const key = t.system.ids.make('opn')
  const first = await invite({ key })
  expect(first.status).toBe(201)
  expect(first.headers.get('cache-control')).toBe('no-store, max-age=0')
  const now = t.system.nowMicros()
  const issued = read(InvitationIssued, await first.json(), 'PLATFORM_INTERNAL')
  expect(issued).toEqual({
    version: 1,
    operationId: key,
    invitationId: expect.stringMatching(/^opi_/),
    operatorName: 'Grace',
    role: 'developer',
    scope: ENVIRONMENT,
    capabilities: capabilitiesOfRole('developer'),
    createdAtMicros: String(now),
    expiresAtMicros: String(now + 1_800_000_000n),
    secretShownOnce: true,
    replayed: false,
    code: expect.stringMatching(/^rk_inv_v1_[\w-]{43}$/),
  })
  const second = await invite({ key })
  expect(second.status).toBe(200)
  expect(second.headers.get('cache-control')).toBe('no-store, max-age=0')
  const { code, ...metadata } = issued
  const replay = { ...metadata, secretShownOnce: false, replayed: true }
  expect(await second.json()).toEqual(replay)
  const looked = await send('GET', `/v1/access/invitation-operations/${key}`)
  const operation = read(InvitationOperation, await looked.json(), 'PLATFORM_INTERNAL')
  expect(operation).toEqual({ ...replay, state: 'pending' })
  const exchanged = await send('POST', '/v1/auth/exchange', { body: { code } })
  expect(exchanged.status).toBe(201)
})

test('an invitation without the header has no operation', async () => {
  const body = read(InvitationIssued, await (await invite()).json(), 'PLATFORM_INTERNAL')
  expect(body.operationId).toBeNull()
  expect(body.secretShownOnce).toBe(true)
})

test.each([
  ['empty', ''],
  ['of another prefix', 'opi_00000000000000000000000001'],
  ['lower case', 'opn_0000000000000000000000000a'],
  ['twice', 'opn_00000000000000000000000001, opn_00000000000000000000000001'],
  ['padded', '"opn_00000000000000000000000001"'],
])(
  'an Idempotency-Key that is %s is rejected before anything is stored',
  { tags: ['slow'] },
  async (_, key) => {
    expect(await rejection(await invite({ key }))).toEqual([400, 'PLATFORM_REQUEST_INVALID'])
    expect(
      await t.sql(`select 1 from service_operator_invitations where kind = 'delegated'`),
    ).toEqual([])
  },
)

test('two equal Idempotency-Key headers are rejected', async () => {
  const headers = new Headers({
    authorization: `Bearer ${owner.accessToken.reveal()}`,
    'content-type': 'application/json',
  })
  const key = t.system.ids.make('opn')
  headers.append('idempotency-key', key)
  headers.append('idempotency-key', key)
  const init = { method: 'POST', headers, body: JSON.stringify(REQUEST) }
  const response = await hono.request('/v1/access/invitations', init)
  expect(await rejection(response)).toEqual([400, 'PLATFORM_REQUEST_INVALID'])
})

test.each([
  ['an unknown role', { role: 'root' }],
  ['capabilities of its own', { capabilities: ['logs:read'] }],
  ['an incomplete scope', { scope: { kind: 'project', projectId: null, environmentId: null } }],
  ['a mixed scope', { scope: { ...ENVIRONMENT, kind: 'installation' } }],
  ['a scope without its nulls', { scope: { kind: 'installation' } }],
  ['no name', { operatorName: '' }],
  ['a name with a control character', { operatorName: 'a\u0000b' }],
  ['another lifetime', { expiresAtMicros: '1' }],
])('a request with %s is invalid', { tags: ['slow'] }, async (_, given) => {
  const response = await invite({ body: { ...REQUEST, ...given } })
  expect(await rejection(response)).toEqual([400, 'PLATFORM_REQUEST_INVALID'])
})

test('a reused Operation ID is 409', async () => {
  const key = t.system.ids.make('opn')
  await invite({ key })
  const response = await invite({ key, body: { ...REQUEST, role: 'observer' } })
  expect(await rejection(response)).toEqual([409, 'PLATFORM_INVITATION_OPERATION_REUSED'])
})

test('an operator cannot grant capabilities that it does not hold', async () => {
  const login = await operatorWith(t, {
    scope: PROJECT,
    capabilities: everythingBut('data:write'),
  })
  expect(await rejection(await invite({ login }))).toEqual([403, 'PLATFORM_ACCESS_DENIED'])
  const observer = await invite({ login, body: { ...REQUEST, role: 'observer' } })
  expect(observer.status).toBe(201)
  const above = { ...REQUEST, role: 'observer', scope: INSTALLATION }
  const response = await invite({ login, body: above })
  expect(await rejection(response)).toEqual([403, 'PLATFORM_ACCESS_DENIED'])
})

test('repeated revocation returns 204, and 409 once the code is used', {
  tags: ['slow'],
}, async () => {
  const issued = read(InvitationIssued, await (await invite()).json(), 'PLATFORM_INTERNAL')
  const path = `/v1/access/invitations/${issued.invitationId}`
  for (let i = 0; i < 2; i++) expect((await send('DELETE', path)).status).toBe(204)
  const used = read(InvitationIssued, await (await invite()).json(), 'PLATFORM_INTERNAL')
  await send('POST', '/v1/auth/exchange', { body: { code: used.code } })
  const late = await send('DELETE', `/v1/access/invitations/${used.invitationId}`)
  expect(await rejection(late)).toEqual([409, 'PLATFORM_CONFLICT'])
})

test('an unknown ID is 404 with operators:manage, and 403 without it', async () => {
  const capabilities = everythingBut('operators:manage')
  const weak = await operatorWith(t, { scope: INSTALLATION, capabilities })
  for (const [method, path] of [
    ['GET', `/v1/access/invitation-operations/${t.system.ids.make('opn')}`],
    ['DELETE', `/v1/access/invitations/${t.system.ids.make('opi')}`],
  ] as const) {
    expect(await rejection(await send(method, path))).toEqual([404, 'PLATFORM_NOT_FOUND'])
    const rejected = await rejection(await send(method, path, { login: weak }))
    expect(rejected).toEqual([403, 'PLATFORM_ACCESS_DENIED'])
    // The form of the ID is not checked before.
    const malformed = await send(method, `${path}x`, { login: weak })
    expect(await rejection(malformed)).toEqual([403, 'PLATFORM_ACCESS_DENIED'])
    expect((await rejection(await send(method, `${path}x`)))[0]).toBe(400)
  }
})

test('the audit is complete and newest first for every page size', { tags: ['slow'] }, async () => {
  for (let i = 0; i < 6; i++) {
    await invite({ key: t.system.ids.make('opn') })
    // Some records share a microsecond, so that the ID decides their order.
    if (i % 2 === 0) t.system.advance(1)
  }
  const whole = await page()
  expect(whole.next).toBeNull()
  expect(whole.items.map((item) => item.operation)).toEqual((await t.audit()).reverse())
  for (const limit of [1, 2, 3, whole.items.length, 1000]) {
    const items = []
    let next: string | null = ''
    while (next !== null) {
      const after: string = next === '' ? '' : `&after=${next}`
      const part: AuditPage = await page(`?limit=${limit}${after}`)
      items.push(...part.items)
      next = part.next
    }
    expect(items).toEqual(whole.items)
  }
})

test('the audit is filtered by operator, operation and time', async () => {
  const login = await operatorWith(t, { scope: PROJECT, capabilities: CAPABILITIES })
  t.system.advance(5)
  const from = t.system.nowMicros()
  await invite({ login })
  t.system.advance(5)
  const to = t.system.nowMicros()
  await invite()
  const { operatorId } = login.operator
  expect((await page(`?operator=${operatorId}`)).items).toMatchObject([
    { operation: 'invitation.create', actor: operatorId },
  ])
  expect((await page('?operation=invitation.create')).items).toHaveLength(2)
  const ofOwner = `?operation=invitation.create&operator=${owner.operator.operatorId}`
  expect((await page(ofOwner)).items).toHaveLength(1)
  // `from` is inclusive, `to` is exclusive.
  expect((await page(`?from=${from}&to=${to}`)).items).toHaveLength(1)
  expect((await page(`?from=${from}`)).items).toHaveLength(2)
  expect((await page(`?to=${from}&operation=invitation.create`)).items).toEqual([])
  expect((await page(`?from=${to}&to=${from}`)).items).toEqual([])
})

test.each([
  'operator=opr_1',
  'operation=',
  'operation=DROP%20TABLE',
  'from=-1',
  'from=01',
  'to=9223372036854775808',
  'to=1e3',
  'after=',
  'after=x',
  'after=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  'limit=0',
  'limit=1001',
  'limit=1.5',
  'limit=10&limit=10',
  'actor=x',
])('the query %s is invalid', { tags: ['slow'] }, async (query) => {
  const response = await send('GET', `/v1/access/audit?${query}`)
  expect(await rejection(response)).toEqual([400, 'PLATFORM_REQUEST_INVALID'])
})

test('a cursor with any bit changed is rejected', { tags: ['slow'] }, async () => {
  const { next } = await page('?limit=1')
  const bytes = Buffer.from(next!, 'base64url')
  for (let bit = 0; bit < bytes.length * 8; bit += 5) {
    const damaged = Buffer.from(bytes)
    damaged[bit >> 3]! ^= 1 << (bit & 7)
    const response = await send('GET', `/v1/access/audit?after=${damaged.toString('base64url')}`)
    expect(response.status).toBe(400)
  }
})

test('the audit requires operators:manage at the installation', async () => {
  for (const [scope, capabilities] of [
    [PROJECT, CAPABILITIES],
    [OTHER_ENVIRONMENT, CAPABILITIES],
    [INSTALLATION, everythingBut('operators:manage')],
  ] as const) {
    const login = await operatorWith(t, { scope, capabilities })
    const response = await send('GET', '/v1/access/audit', { login })
    expect(await rejection(response)).toEqual([403, 'PLATFORM_ACCESS_DENIED'])
  }
})

test('pages of the audit are read by the index of time', { tags: ['slow'] }, async () => {
  await t.sql(
    `insert into service_platform_audit (audit_id, operation, outcome, at_micros)
     select 'aud_' || lpad(i::text, 26, '0'), 'session.refresh', 'succeeded', i
       from generate_series(1, 20000) as i`,
  )
  await t.sql('analyze service_platform_audit')
  const plan = await t.sql<{ 'QUERY PLAN': string }>(
    `explain select audit_id from service_platform_audit
      where at_micros < 9000000000000000000
        and (at_micros, audit_id) < (10000, '~' collate "C")
        and (at_micros, audit_id) >= (0, '' collate "C")
        and (null::text is null or operation = null)
      order by at_micros desc, audit_id desc limit 101`,
  )
  const text = plan.map((row) => row['QUERY PLAN']).join('\n')
  expect(text).toMatch(/Index (?:Only )?Scan Backward using service_platform_audit_by_time/)
  expect(text).not.toContain('Sort')
  expect((await page('?limit=1000&to=10001')).items).toHaveLength(1000)
})

test('a rare record is found by pages of bounded cost', { tags: ['slow'] }, async () => {
  await t.sql(
    `insert into service_platform_audit (audit_id, operation, outcome, at_micros)
     select 'aud_' || lpad(i::text, 26, '0'),
            case when i in (1, 30000) then 'owner.recover' else 'session.refresh' end,
            'succeeded', i
       from generate_series(1, 45000) as i`,
  )
  const found: string[] = []
  let [next, steps]: [string | null, number] = ['', 0]
  while (next !== null) {
    const after: string = next === '' ? '' : `&after=${next}`
    const part: AuditPage = await page(`?operation=owner.recover&limit=1${after}`)
    found.push(...part.items.map((item) => item.atMicros))
    next = part.next
    steps++
  }
  expect(found).toEqual(['30000', '1'])
  expect(steps).toBeLessThanOrEqual(4)
})

test('no code of an invitation reaches the log or the audit', async () => {
  const issued = read(InvitationIssued, await (await invite()).json(), 'PLATFORM_INTERNAL')
  const random = issued.code!.slice(-43)
  expect(t.log.text()).not.toContain(random)
  expect(JSON.stringify(await page())).not.toContain(random)
})
