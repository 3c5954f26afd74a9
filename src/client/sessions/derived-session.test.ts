import { afterEach, beforeEach, expect, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../../testing/identity.ts'
import { testManagement } from '../../../testing/openapi/checked-origins.ts'
import { ENVIRONMENT, firstOwner } from '../../../testing/operators.ts'
import { Fault } from '../../errors/fault.ts'
import { type AuthApp, authRoutes } from '../../http/management/identity/auth.ts'
import { loginBody } from '../../http/management/identity/fields.ts'
import { type SessionsApp, sessionRoutes } from '../../http/management/identity/sessions.ts'
import type { Route } from '../../http/management/route.ts'
import { revokeSession as revoke } from '../../identity/sessions.ts'
import { readSelf } from '../../wire/operations/identity/auth.ts'
import type { Context } from '../contexts.ts'
import { LOCAL_ORIGIN } from '../origins.ts'
import { type DerivedSession, deriveSession } from './derived-session.ts'
import { OperatorSession, profileOf, type SessionStore } from './sessions.ts'

let t: TestIdentity
let context: Context
let parent: OperatorSession
let derived: DerivedSession
/** `METHOD path` of the requests. */
let requests: string[]
let isDown: boolean

beforeEach(async () => {
  t = await testIdentity()
  const login = await firstOwner(t)
  const { identity, system } = t
  const server = testManagement<AuthApp & SessionsApp>({
    app: { identity, sessions: identity, environment: null, managementOrigin: null },
    system,
    log: t.log.log,
    routes: [...authRoutes, ...sessionRoutes] as readonly Route<AuthApp & SessionsApp>[],
  })
  requests = []
  isDown = false
  const fetch = async (url: string, init: RequestInit) => {
    if (isDown) throw new TypeError('the server is down')
    const path = url.slice(LOCAL_ORIGIN.length)
    requests.push(`${init.method} ${path}`)
    return server.request(path, init)
  }
  const environment = { system, fetch, pause: async () => system.advance(1_000) }
  const signal = new AbortController().signal
  // The parts of a context that requests use.
  const uninterrupted = <T>(work: Promise<T>): Promise<T> => work
  context = { environment, signal, uninterrupted, remark: () => {} } as unknown as Context
  const origins = { authenticationOrigin: LOCAL_ORIGIN, managementOrigin: LOCAL_ORIGIN }
  const store: SessionStore = {
    newest: async (known) => known,
    change: (_, work) => work(null),
    write: () => {},
  }
  parent = new OperatorSession(context, store, profileOf(loginBody(login), origins))
  derived = await deriveSession(context, parent, {
    capabilities: ['logs:read'],
    scope: ENVIRONMENT,
    purpose: 'mcp',
    lifetimeSeconds: 300,
  })
})

afterEach(() => t.dispose())

const DERIVE = 'POST /v1/auth/sessions/derived'
const derivations = () => requests.filter((each) => each === DERIVE).length

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'none',
    (error) => (error instanceof Fault ? error.code : String(error)),
  )
}

test('requests have the rights of the derivation, and share one derivation', async () => {
  const selves = await Promise.all([1, 2, 3].map(() => derived.session.call(readSelf)))
  for (const self of selves) {
    expect(self.grants).toMatchObject([{ scope: ENVIRONMENT, capabilities: ['logs:read'] }])
    expect(self.session).toMatchObject({ purpose: 'mcp', current: true })
  }
  expect(derivations()).toBe(1)
})

test('a session is derived again before it ends', async () => {
  t.system.advance(269_000)
  await derived.session.call(readSelf)
  expect(derivations()).toBe(1)
  t.system.advance(2_000)
  await Promise.all([derived.session.call(readSelf), derived.session.call(readSelf)])
  expect(derivations()).toBe(2)
})

test('a session that the server has ended is derived again, once for each request', async () => {
  const { sessionId } = derived.session.profile
  const actor = await t.identity.authenticate(parent.profile.accessToken.reveal())
  await revoke(t.identity, actor, { sessionId, requestId: null })
  const self = await derived.session.call(readSelf)
  expect(self.session.sessionId).not.toBe(sessionId)
  expect(derivations()).toBe(2)
})

test('a session ends with its parent, and no other one is derived', async () => {
  const actor = await t.identity.authenticate(parent.profile.accessToken.reveal())
  const { sessionId } = parent.profile
  await revoke(t.identity, actor, { sessionId, requestId: null })
  expect(await codeOf(derived.session.call(readSelf))).toBe('CLIENT_NOT_LOGGED_IN')
})

test('a session that is ended is revoked on the server, and serves no later request', async () => {
  const token = derived.session.profile.accessToken.reveal()
  await derived.end()
  expect(requests.at(-1)).toBe(`DELETE /v1/auth/sessions/${derived.session.profile.sessionId}`)
  expect(await codeOf(t.identity.authenticate(token))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await codeOf(derived.session.call(readSelf))).toBe('CLIENT_NOT_LOGGED_IN')
  await derived.end()
  expect(derivations()).toBe(1)
})

test('the end of a session does not fail where the server is down', async () => {
  isDown = true
  await derived.end()
  expect(await codeOf(derived.session.call(readSelf))).toBe('CLIENT_NOT_LOGGED_IN')
})
