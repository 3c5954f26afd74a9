import { afterEach, beforeEach, expect, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../../../testing/identity.ts'
import { type TestManagement, testManagement } from '../../../../testing/openapi/checked-origins.ts'
import { ENVIRONMENT, firstOwner, operatorWith } from '../../../../testing/operators.ts'
import {
  readLogin,
  readRejection,
  UNAUTHENTICATED,
  workloadLogins,
} from '../../../../testing/providers/workload-logins.ts'
import { changeOperator } from '../../../identity/operators.ts'
import type { Login } from '../../../identity/sessions.ts'
import { CAPABILITIES } from '../../../value/capabilities.ts'
import { INSTALLATION } from '../../../value/scope.ts'
import { auditRoutes } from './audit.ts'
import { type AuthApp, authRoutes } from './auth.ts'
import { operatorRoutes } from './operators.ts'

let t: TestIdentity
let hono: TestManagement
let owner: Login
let ana: Login

beforeEach(async () => {
  t = await testIdentity()
  owner = await firstOwner(t)
  t.system.advance(1)
  ana = await operatorWith(t, { scope: ENVIRONMENT, capabilities: ['releases:read'] })
  const { identity, system } = t
  hono = testManagement<AuthApp>({
    app: { identity, sessions: identity, environment: null, managementOrigin: null },
    system,
    log: t.log.log,
    routes: [...authRoutes, ...operatorRoutes, ...auditRoutes],
  })
})

afterEach(() => t.dispose())

/** Sends a request and checks the response against the published document. */
async function send(
  method: string,
  path: string,
  given: { login?: Login; key?: string; body?: unknown } = {},
) {
  const { login = owner, key, body } = given
  const headers = new Headers({ authorization: `Bearer ${login.accessToken.reveal()}` })
  if (key !== undefined) headers.set('idempotency-key', key)
  if (body !== undefined) headers.set('content-type', 'application/json')
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
  const response = await hono.request(path, init)
  return { status: response.status, body: await response.json() }
}

function change(verb: string, key: string, changedAtMicros = t.system.nowMicros()) {
  const path = `/v1/access/operators/${ana.operator.operatorId}/${verb}`
  return send('POST', path, { key, body: { changedAtMicros: String(changedAtMicros) } })
}

test('an operator is disabled once, and the repeat answers the same', async () => {
  const key = t.system.ids.make('opn')
  const first = await change('disable', key)
  const now = String(t.system.nowMicros())
  const { operatorId } = ana.operator
  const operation = {
    version: 1,
    operationId: key,
    kind: 'operator.disable',
    outcome: 'applied',
    replayed: false,
    revision: '2',
    createdAtMicros: now,
  }
  const body = { version: 1, operatorId, disabledAtMicros: now, operation }
  expect(first).toEqual({ status: 200, body })
  const replayed = { ...body, operation: { ...operation, replayed: true } }
  expect(await change('disable', key)).toEqual({ status: 200, body: replayed })
  expect((await send('GET', '/v1/auth/me', { login: ana })).status).toBe(401)

  const reused = await change('enable', key)
  expect([reused.status, reused.body.error.code]).toEqual([409, 'PLATFORM_CONFLICT'])
  const enabled = await change('enable', t.system.ids.make('opn'))
  expect(enabled).toMatchObject({ status: 200, body: { disabledAtMicros: null } })
})

test('the last owner is 409, an unknown operator 404, an old request 400', {
  tags: ['slow'],
}, async () => {
  const body = { changedAtMicros: String(t.system.nowMicros()) }
  const key = t.system.ids.make('opn')
  const disable = async (operatorId: string) => {
    const path = `/v1/access/operators/${operatorId}/disable`
    const answer = await send('POST', path, { key, body })
    return [answer.status, answer.body.error.code]
  }
  expect(await disable(owner.operator.operatorId)).toEqual([409, 'PLATFORM_CONFLICT'])
  expect(await disable(t.system.ids.make('opr'))).toEqual([404, 'PLATFORM_NOT_FOUND'])
  const old = await change('disable', key, t.system.nowMicros() - 90_000_000_000n)
  expect([old.status, old.body.error.violations]).toEqual([
    400,
    [{ path: 'changedAtMicros', rule: 'within 24 hours of the server time' }],
  ])
  // Nothing was stored under the Operation ID.
  expect((await change('disable', key)).status).toBe(200)
})

test('operators and their sessions are read in pages', async () => {
  const first = (await send('GET', '/v1/access/operators?limit=1')).body
  expect(first).toMatchObject({
    version: 1,
    items: [
      {
        operatorId: ana.operator.operatorId,
        operatorName: ana.operator.operatorName,
        disabledAtMicros: null,
        grants: [{ scope: ENVIRONMENT, capabilities: ['releases:read'], source: 'invitation' }],
        identities: [],
      },
    ],
    next: ana.operator.operatorId,
  })
  const second = (await send('GET', `/v1/access/operators?after=${first.next}`)).body
  expect(second).toMatchObject({
    items: [{ operatorName: 'owner', grants: [{ capabilities: CAPABILITIES }] }],
    next: null,
  })
  const sessionsOf = async ({ operator }: Login) =>
    (await send('GET', `/v1/access/operators/${operator.operatorId}/sessions`)).body.sessions
  const { sessionId } = ana.session
  expect(await sessionsOf(ana)).toMatchObject([{ sessionId, current: false }])
  expect(await sessionsOf(owner)).toMatchObject([{ current: true }])
  const unknown = `/v1/access/operators/${t.system.ids.make('opr')}/sessions`
  expect((await send('GET', unknown)).status).toBe(404)
})

test('the audit names the actor and the operator that a subject belongs to', async () => {
  await t.sql('update service_operators set operator_name = $2 where operator_id = $1', [
    ana.operator.operatorId,
    'Ana',
  ])
  await change('disable', t.system.ids.make('opn'))
  const { items } = (await send('GET', '/v1/access/audit')).body
  const byOperation = Object.fromEntries(
    items.map((item: { operation: string }) => [item.operation, item]),
  )
  expect(byOperation).toMatchObject({
    'operator.disable': { actorName: 'owner', subjectName: 'Ana' },
    'session.create': { actorName: 'owner', subjectName: 'owner' },
    'bootstrap.create': { actor: null, actorName: null },
  })
})

test('a workload invitation of a disabled operator is not consumed', {
  tags: ['slow'],
}, async () => {
  const w = await workloadLogins()
  try {
    const { identity, owner: first } = w.t
    const actor = await identity.authenticate(first.accessToken)
    const other = await operatorWith(w.t, { scope: INSTALLATION, capabilities: CAPABILITIES })
    await w.invite()
    await w.t.sql('update service_operator_invitations set created_by = $1 where kind = $2', [
      other.operator.operatorId,
      'delegated',
    ])
    const change = (verb: 'disable' | 'enable') =>
      changeOperator(identity, actor, {
        verb,
        operatorId: other.operator.operatorId,
        operationId: w.t.system.ids.make('opn'),
        changedAtMicros: w.t.system.nowMicros(),
        requestId: null,
      })
    await change('disable')
    expect(await readRejection(await w.logIn('github'))).toBe(UNAUTHENTICATED)
    await change('enable')
    await readLogin(await w.logIn('github'), 201)
  } finally {
    await w.dispose()
  }
})
