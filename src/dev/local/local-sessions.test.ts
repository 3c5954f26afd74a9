/**
 * Goal: a session that is derived at `svc dev` is limited as one of a server is.
 * Method: the sessions alone, where time passes; the routes of a running `svc dev` over HTTP.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LocalDevelopment } from '../../../testing/development/local-development.ts'
import { ENVIRONMENT, ENVIRONMENT_ID, PROJECT_ID } from '../../../testing/operators.ts'
import { Fault } from '../../errors/fault.ts'
import { routesOfEnvironment } from '../../http/management/routes.ts'
import type { Actor } from '../../identity/actor.ts'
import { DERIVED_SESSIONS_MAX } from '../../identity/derived-sessions.ts'
import type { Login } from '../../identity/sessions.ts'
import { TestSystem } from '../../system/system.ts'
import type { Capability } from '../../value/capabilities.ts'
import { environmentScope, INSTALLATION, type Scope } from '../../value/scope.ts'
import { parseLocalServer } from '../../wire/files/local-server.ts'
import { LocalSessions } from './local-sessions.ts'

describe('sessions in memory', () => {
  let system: TestSystem
  let sessions: LocalSessions
  let author: Actor
  beforeEach(async () => {
    system = new TestSystem()
    sessions = open()
    author = await sessions.authenticate(sessions.accessToken.reveal())
  })

  const open = () =>
    new LocalSessions(system, { projectId: PROJECT_ID, environmentId: ENVIRONMENT_ID })

  interface Wanted {
    readonly capabilities?: readonly Capability[]
    readonly scope?: Scope
    readonly by?: Actor
  }

  const derive = ({
    capabilities = ['logs:read'],
    scope = ENVIRONMENT,
    by = author,
  }: Wanted = {}) =>
    sessions.derive(by, { capabilities, scope, purpose: 'mcp', lifetimeSeconds: 60 })
  const actorOf = ({ accessToken }: Login) => sessions.authenticate(accessToken.reveal())

  async function codeOf(work: () => unknown): Promise<string> {
    try {
      await work()
      return 'none'
    } catch (error) {
      return error instanceof Fault ? error.code : String(error)
    }
  }

  test('a derived session has what was derived, and its purpose', async () => {
    const login = derive({ capabilities: ['logs:read', 'data:read', 'logs:read'] })
    expect(login).toMatchObject({ refreshToken: null, session: { derivation: { purpose: 'mcp' } } })
    const actor = await actorOf(login)
    expect(actor).toMatchObject({ purpose: 'mcp', operatorId: author.operatorId })
    expect(actor.grants).toMatchObject([
      { scope: ENVIRONMENT, capabilities: ['data:read', 'logs:read'] },
    ])
  })

  test('nothing is derived that the author does not hold', async () => {
    for (const capability of ['operators:manage', 'releases:publish'] as const) {
      expect(await codeOf(() => derive({ capabilities: [capability] }))).toBe(
        'PLATFORM_ACCESS_DENIED',
      )
    }
    expect(await codeOf(() => derive({ scope: INSTALLATION }))).toBe('PLATFORM_ACCESS_DENIED')
  })

  test('a derived session derives no other one', async () => {
    const by = await actorOf(derive())
    expect(await codeOf(() => derive({ by }))).toBe('PLATFORM_ACCESS_DENIED')
  })

  test('a session ends after its lifetime, also for a request that has begun', async () => {
    const login = derive()
    const actor = await actorOf(login)
    system.advance(59_999)
    expect((await actorOf(login)).sessionId).toBe(login.session.sessionId)
    expect(await sessions.whileAuthorized(actor, ({ purpose }) => purpose)).toBe('mcp')
    system.advance(1)
    expect(await codeOf(() => actorOf(login))).toBe('PLATFORM_AUTHENTICATION_FAILED')
    expect(await codeOf(() => sessions.whileAuthorized(actor, () => 'work'))).toBe(
      'PLATFORM_AUTHENTICATION_FAILED',
    )
  })

  test('a revoked session ends at once', async () => {
    const [first, second] = [derive(), derive()]
    const actor = await actorOf(first)
    sessions.revoke(author, first.session.sessionId)
    expect(await codeOf(() => actorOf(first))).toBe('PLATFORM_AUTHENTICATION_FAILED')
    expect(await codeOf(() => sessions.whileAuthorized(actor, () => 'work'))).toBe(
      'PLATFORM_AUTHENTICATION_FAILED',
    )
    sessions.revoke(await actorOf(second), second.session.sessionId)
    expect(await codeOf(() => actorOf(second))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  })

  test('a derived session ends no other one, and none ends the session of the author', async () => {
    const other = derive()
    const actor = await actorOf(derive())
    for (const { sessionId } of [other.session, author.session]) {
      expect(await codeOf(() => sessions.revoke(actor, sessionId))).toBe('PLATFORM_ACCESS_DENIED')
    }
    expect(await codeOf(() => sessions.revoke(author, author.sessionId))).toBe(
      'PLATFORM_ACCESS_DENIED',
    )
    const unknown = system.ids.make('ops')
    expect(await codeOf(() => sessions.revoke(author, unknown))).toBe('PLATFORM_NOT_FOUND')
    expect((await actorOf(other)).purpose).toBe('mcp')
  })

  test('the number of sessions is bounded, and ended ones do not count', async () => {
    const logins = Array.from({ length: DERIVED_SESSIONS_MAX }, () => derive())
    expect(await codeOf(derive)).toBe('PLATFORM_RATE_LIMITED')
    sessions.revoke(author, logins[0]!.session.sessionId)
    expect(await codeOf(derive)).toBe('none')
    expect(await codeOf(derive)).toBe('PLATFORM_RATE_LIMITED')
    system.advance(60_000)
    expect(await codeOf(derive)).toBe('none')
  })

  test('pages have each session once, newest first', () => {
    const derived = Array.from({ length: 4 }, () => {
      system.advance(1_000)
      return derive().session.sessionId
    })
    const listed = []
    for (let after = null as Actor['sessionId'] | null; ; ) {
      const page = sessions.page({ after, limit: 2 })
      listed.push(...page.sessions.map(({ sessionId }) => sessionId))
      after = page.next
      if (after === null) break
    }
    expect(listed).toEqual([...derived.toReversed(), author.sessionId])
  })

  test('no token of another process is accepted', async () => {
    const token = derive().accessToken.reveal()
    const next = open()
    expect(next.recognize(token)).toBe(null)
    for (const stale of [token, sessions.accessToken.reveal(), '', 'rk_at_v1_']) {
      expect(await codeOf(() => next.authenticate(stale))).toBe('PLATFORM_AUTHENTICATION_FAILED')
    }
  })
})

describe('a running svc dev', () => {
  let dev: LocalDevelopment
  beforeAll(async () => {
    dev = new LocalDevelopment()
    await dev.start()
  })
  afterAll(() => dev.dispose())

  const descriptor = () => JSON.parse(readFileSync(join(dev.root, 'service.json'), 'utf8'))
  const server = () => parseLocalServer(readFileSync(join(dev.root, 'dev.json')))

  async function request(token: string, method: string, path: string, body?: object) {
    const response = await fetch(server().managementUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : null }
  }

  function derive(capabilities: readonly Capability[], token = server().accessToken.reveal()) {
    const { projectId, environmentId } = descriptor()
    const scope = environmentScope(projectId, environmentId)
    const body = { capabilities, scope, lifetimeSeconds: 600, purpose: 'console' }
    return request(token, 'POST', '/v1/auth/sessions/derived', body)
  }

  test('a derived session reaches the routes of its capabilities alone', {
    tags: ['slow'],
  }, async () => {
    const { status, body } = await derive(['logs:read'])
    expect(status).toBe(201)
    const { projectId, environmentId } = descriptor()
    const ids: Readonly<Record<string, string>> = { projectId, environmentId }
    for (const { access, method, path } of routesOfEnvironment) {
      if (access.kind !== 'environment') continue
      const at = path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? 'sample')
      const { status: answered } = await request(body.accessToken, method, at)
      const isReached = access.capability === 'logs:read'
      expect(answered === 403, `${method} ${path} ${answered}`).toBe(!isReached)
    }
  })

  test('a session is derived, listed and revoked with the wire form of a server', async () => {
    const author = server().accessToken.reveal()
    const { body: login } = await derive(['environments:read'])
    expect(login).toMatchObject({ version: 1, tokenType: 'Bearer', refreshToken: null })
    const { body: self } = await request(login.accessToken, 'GET', '/v1/auth/me')
    expect(self.session).toMatchObject({ purpose: 'console', current: true })
    expect(self.grants).toMatchObject([{ capabilities: ['environments:read'] }])
    const { body: resources } = await request(login.accessToken, 'GET', '/v1/auth/resources')
    expect(resources.resources).toMatchObject([{ capabilities: ['environments:read'] }])
    expect((await derive(['environments:read'], login.accessToken)).status).toBe(403)
    const { sessionId } = login.session
    const listed = async () =>
      (await request(author, 'GET', '/v1/auth/sessions')).body.sessions.map(
        (session: { readonly sessionId: string }) => session.sessionId,
      )
    expect(await listed()).toContain(sessionId)
    const ended = await request(login.accessToken, 'DELETE', `/v1/auth/sessions/${sessionId}`)
    expect(ended.status).toBe(204)
    expect((await request(login.accessToken, 'GET', '/v1/auth/me')).status).toBe(401)
    expect(await listed()).not.toContain(sessionId)
  })

  test('a derived session ends with the process', { tags: ['slow'] }, async () => {
    const { body } = await derive(['logs:read'])
    await dev.stop()
    await dev.start()
    expect((await request(body.accessToken, 'GET', '/v1/auth/me')).status).toBe(401)
  })
})
