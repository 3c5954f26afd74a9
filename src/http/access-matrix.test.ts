import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { mountedRoutes } from '../../testing/management/mounted-routes.ts'
import type { TestManagement } from '../../testing/openapi/checked-origins.ts'
import {
  authenticateLogin,
  ENVIRONMENT,
  ENVIRONMENT_ID,
  everythingBut,
  firstOwner,
  OTHER_ENVIRONMENT,
  operatorWith,
  PROJECT_ID,
} from '../../testing/operators.ts'
import { issueInvitation } from '../identity/invitations.ts'
import { type Login, revokeSession } from '../identity/sessions.ts'
import { CAPABILITIES, type Capability } from '../value/capabilities.ts'
import { INSTALLATION } from '../value/scope.ts'
import { MANAGEMENT_OPERATIONS } from '../wire/operations/management.ts'
import type { Route } from './management/route.ts'
import { type ManagementApp, managementRoutes } from './management/routes.ts'

/*
 * Goal: no route of the management origin serves a caller without the right to it
 * (contract/management.md, Authentication). Method: each route of the array that the server mounts
 * is called by each kind of caller. A new route fails until it asks for a capability or stands in
 * one of the lists below.
 */

/** Routes that require no session. */
const PUBLIC = [
  'GET /health/live',
  'GET /health/ready',
  'GET /v1/auth/config',
  'GET /v1/auth/oidc/config',
  'GET /v1/openapi.json',
  'POST /v1/auth/exchange',
  // A token of the provider replaces the session.
  'POST /v1/auth/oidc',
  'POST /v1/auth/refresh',
  // The token of the gateway; a session is rejected.
  'PUT /v1/auth/managed/operators/:operatorId/grants',
]

/** Routes for every session, which read or change data of the caller only. */
const ANY_SESSION = [
  'GET /v1/auth/me',
  'GET /v1/auth/resources',
  'GET /v1/auth/sessions',
  // Another operator's session needs a capability; see the last test.
  'DELETE /v1/auth/sessions/:sessionId',
  // Its body decides which capabilities the caller needs; derived-sessions.test.ts has the rules.
  'POST /v1/auth/sessions/derived',
]

const nameOf = ({ method, path }: Route<ManagementApp>): string => `${method} ${path}`
const capabilityOf = ({ access }: Route<ManagementApp>): Capability | null =>
  access.kind === 'public' ? null : access.capability

const guarded = managementRoutes.filter((route) => capabilityOf(route) !== null)
const withSession = managementRoutes.filter((route) => route.access.kind !== 'public')

let t: TestIdentity
let hono: TestManagement
let owner: Login
/** Path parameters and bodies that refer to existing records. */
let samples: Readonly<Record<string, string>>
let bodies: Readonly<Record<string, object>>

beforeAll(async () => {
  t = await testIdentity()
  owner = await firstOwner(t)
  const operationId = t.system.ids.make('opn')
  const request = { operatorName: 'Grace', role: 'observer' as const, scope: ENVIRONMENT }
  const { invitation } = await issueInvitation(t.identity, await authenticateLogin(t, owner), {
    ...request,
    operationId,
    requestId: null,
  })
  samples = {
    projectId: PROJECT_ID,
    environmentId: ENVIRONMENT_ID,
    invitationId: invitation.invitationId,
    operationId,
    operatorId: owner.operator.operatorId,
    sessionId: owner.session.sessionId,
  }
  const change = { changedAtMicros: String(t.system.nowMicros()) }
  bodies = {
    'POST /v1/access/invitations': request,
    'POST /v1/access/operators/:operatorId/disable': change,
    'POST /v1/access/operators/:operatorId/enable': change,
    'PUT /v1/access/operators/:operatorId/grants': {
      scope: ENVIRONMENT,
      role: null,
      expectedCapabilities: null,
    },
  }
  // Authentication comes first (contract/management.md, Authentication).
  hono = mountedRoutes(t)
})

afterAll(async () => {
  await t.dispose()
})

async function call(route: Route<ManagementApp>, token: string | null): Promise<Response> {
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => samples[name] ?? 'sample')
  const headers = new Headers()
  if (token !== null) headers.set('authorization', `Bearer ${token}`)
  if (route.operationId === 'required') headers.set('idempotency-key', samples.operationId!)
  const body = bodies[nameOf(route)]
  if (body !== undefined) headers.set('content-type', 'application/json')
  return hono.request(path, {
    method: route.method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

async function rejection(response: Response): Promise<string> {
  const body = (await response.json()) as { error: { code: string } }
  return `${response.status} ${body.error.code}`
}

const tokenOf = (login: Login): string => login.accessToken.reveal()
const UNAUTHENTICATED = '401 PLATFORM_AUTHENTICATION_FAILED'
const DENIED = '403 PLATFORM_ACCESS_DENIED'

test('the routes without a session are exactly those of the list', () => {
  const found = managementRoutes.filter((route) => route.access.kind === 'public').map(nameOf)
  expect(found.toSorted()).toEqual(PUBLIC.toSorted())
})

test('the routes for every session are exactly those of the list', () => {
  const found = withSession.filter((route) => capabilityOf(route) === null).map(nameOf)
  expect(found.toSorted()).toEqual(ANY_SESSION.toSorted())
})

test('exactly the routes of an Environment are below its base path', () => {
  for (const route of managementRoutes) {
    expect(route.path.startsWith('/v1/projects/'), route.path).toBe(
      route.access.kind === 'environment',
    )
  }
})

test('each operation of the management origin has one route', () => {
  const names = managementRoutes.map(({ name }) => name)
  expect(names).toEqual(MANAGEMENT_OPERATIONS.map(({ name }) => name))
  expect(new Set(managementRoutes.map(nameOf)).size).toBe(managementRoutes.length)
})

describe('routes without a valid session', () => {
  const callers: readonly [string, () => Promise<string | null>][] = [
    ['no token', async () => null],
    ['a malformed token', async () => 'rk_at_v1_x'],
    ['an unknown token', async () => `rk_at_v1_${'A'.repeat(43)}`],
    ['an Application key', async () => `rk_sec_v1_${'A'.repeat(43)}`],
    ['a refresh token', async () => owner.refreshToken!.reveal()],
    [
      'an expired token',
      async () => {
        const login = await operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES })
        await t.sql(
          `update service_operator_sessions set access_expires_at_micros = $2
            where session_id = $1`,
          [login.session.sessionId, String(t.system.nowMicros())],
        )
        return tokenOf(login)
      },
    ],
    [
      'a revoked session',
      async () => {
        const login = await operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES })
        const { sessionId } = login.session
        await revokeSession(t.identity, await authenticateLogin(t, login), {
          sessionId,
          requestId: null,
        })
        return tokenOf(login)
      },
    ],
    [
      'a disabled operator',
      async () => {
        const login = await operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES })
        await t.sql('update service_operators set disabled_at_micros = 1 where operator_id = $1', [
          login.operator.operatorId,
        ])
        return tokenOf(login)
      },
    ],
  ]

  test.each(callers)('every route that needs a session answers 401 to %s', async (_, tokenFor) => {
    const token = await tokenFor()
    for (const route of withSession) {
      expect(await rejection(await call(route, token)), nameOf(route)).toBe(UNAUTHENTICATED)
    }
  })
})

describe('guarded routes without the capability at the scope', () => {
  test('guarded routes answer 403 to every capability at another Environment', async () => {
    const login = await operatorWith(t, { scope: OTHER_ENVIRONMENT, capabilities: CAPABILITIES })
    for (const route of guarded) {
      expect(await rejection(await call(route, tokenOf(login))), nameOf(route)).toBe(DENIED)
    }
  })

  test('guarded routes answer 403 to every other capability at the installation', async () => {
    for (const route of guarded) {
      const capabilities = everythingBut(capabilityOf(route)!)
      const login = await operatorWith(t, { scope: INSTALLATION, capabilities })
      expect(await rejection(await call(route, tokenOf(login))), nameOf(route)).toBe(DENIED)
    }
  })

  test('guarded routes answer 403 once the grant was removed after the login', async () => {
    const login = await operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES })
    expect((await call(withSession[0]!, tokenOf(login))).status).not.toBe(401)
    await t.sql('delete from service_operator_grants where operator_id = $1', [
      login.operator.operatorId,
    ])
    for (const route of guarded) {
      expect(await rejection(await call(route, tokenOf(login))), nameOf(route)).toBe(DENIED)
    }
  })
})

test('another Environment is 404 for operators with grants there', async () => {
  const login = await operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES })
  const configured = samples
  samples = { ...samples, environmentId: OTHER_ENVIRONMENT.environmentId! }
  try {
    for (const route of guarded.filter((each) => each.access.kind === 'environment')) {
      expect(await rejection(await call(route, tokenOf(login)))).toBe('404 PRODUCT_NOT_FOUND')
    }
  } finally {
    samples = configured
  }
})

test('revoking the session of another requires operators:manage at the installation', async () => {
  const route = managementRoutes.find(
    (each) => each.method === 'DELETE' && /:sessionId$/.test(each.path),
  )!
  for (const grant of [
    { scope: INSTALLATION, capabilities: everythingBut('operators:manage') },
    { scope: ENVIRONMENT, capabilities: CAPABILITIES },
  ]) {
    const login = await operatorWith(t, grant)
    expect(await rejection(await call(route, tokenOf(login)))).toBe(DENIED)
  }
  expect((await authenticateLogin(t, owner)).sessionId).toBe(owner.session.sessionId)
})
