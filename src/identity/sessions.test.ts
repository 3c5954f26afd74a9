import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import type { Reader } from '../database/database.ts'
import { findSessionByAccess } from '../database/identity/sessions.ts'
import { SCHEMA_VERSION } from '../database/migrate.ts'
import { transaction } from '../database/transaction.ts'
import type { SessionId } from '../value/ids.ts'
import type { Actor } from './actor.ts'
import { exchange } from './exchange.ts'
import {
  type Login,
  listSessions,
  openSession,
  refresh,
  revokeSession,
  type SessionPage,
} from './sessions.ts'

const ACCESS_MS = 600_000
const REFRESH_MS = 30 * 86_400_000
let t: TestIdentity
let login: Login

beforeEach(async () => {
  t = await testIdentity()
  await t.identity.startup()
  const code = readFileSync(t.codePath, 'utf8').trimEnd()
  const names = { deviceName: 'first', operatorName: null }
  login = await exchange(t.identity, { code, ...names, requestId: null })
})

afterEach(async () => {
  await t.dispose()
})

const actorOf = (from: Login): Promise<Actor> => t.identity.authenticate(from.accessToken.reveal())

const refreshOf = (from: Login, identity = t.identity): Promise<Login> =>
  refresh(identity, { refreshToken: from.refreshToken!.reveal(), requestId: null })

/** A further operator with grants, logged in. */
async function operatorWith(capabilities: readonly string[]): Promise<Login> {
  const { secret, digest } = t.identity.credentials.issueInvitationCode()
  await t.sql(
    `insert into service_operator_invitations
       (invitation_id, kind, code_digest, operator_name, role, scope_kind, capabilities, state,
        created_by, created_at_micros, expires_at_micros)
     values ($1, 'delegated', $2, 'second', 'developer', 'installation', $3, 'pending', $4, 1, $5)`,
    [
      t.system.ids.make('opi'),
      digest,
      capabilities,
      login.operator.operatorId,
      String(t.system.nowMicros() + 1_000_000n),
    ],
  )
  const code = secret.reveal()
  const names = { deviceName: null, operatorName: null }
  return exchange(t.identity, { code, ...names, requestId: null })
}

const count = async (operation: string): Promise<number> =>
  (await t.audit()).filter((each) => each === operation).length

test('an access token expires after ten minutes', async () => {
  t.system.advance(ACCESS_MS - 1)
  expect((await actorOf(login)).sessionId).toBe(login.session.sessionId)
  t.system.advance(1)
  expect(await rejectionCode(actorOf(login))).toBe('PLATFORM_AUTHENTICATION_FAILED')
})

test('a refresh replaces both tokens and keeps the absolute end of the session', async () => {
  t.system.advance(1_000)
  const next = await refreshOf(login)
  expect(next.session.sessionId).toBe(login.session.sessionId)
  expect(next.session.refreshExpiresAtMicros).toBe(login.session.refreshExpiresAtMicros)
  expect(next.session.accessExpiresAtMicros).toBe(t.system.nowMicros() + 600_000_000n)
  expect(next.grants).toEqual(login.grants)
  expect(await rejectionCode(actorOf(login))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect((await actorOf(next)).operatorId).toBe(login.operator.operatorId)
  expect(await count('session.refresh')).toBe(1)
})

test('a session expires after 30 days however often it is refreshed', async () => {
  t.system.advance(REFRESH_MS - 60_000)
  const next = await refreshOf(login)
  // No access token outlives its session.
  expect(next.session.accessExpiresAtMicros).toBe(login.session.refreshExpiresAtMicros)
  t.system.advance(60_000)
  expect(await rejectionCode(refreshOf(next))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rejectionCode(actorOf(next))).toBe('PLATFORM_AUTHENTICATION_FAILED')
})

test('a token of any older generation revokes the session, once', async () => {
  const second = await refreshOf(login)
  const third = await refreshOf(second)
  const fourth = await refreshOf(third)
  expect(await rejectionCode(refreshOf(login))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rejectionCode(actorOf(fourth))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rejectionCode(refreshOf(fourth))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rejectionCode(refreshOf(second))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await count('session.reuse_detected')).toBe(1)
  const rows = await t.sql('select revocation from service_operator_sessions')
  expect(rows).toEqual([{ revocation: 'reuse' }])
})

test('an unknown token revokes nothing', async () => {
  const { credentials } = t.identity
  const { sessionId } = login.session
  const forged = [
    // Authentic but never stored: for this generation, a future one, and an unknown session.
    credentials.issueRefreshToken(sessionId, 1n),
    credentials.issueRefreshToken(sessionId, 2n),
    credentials.issueRefreshToken(t.system.ids.make('ops'), 1n),
  ].map(({ secret }) => secret.reveal())
  for (const refreshToken of [...forged, '', 'rk_rt_v1_', login.accessToken.reveal()]) {
    expect(await rejectionCode(refresh(t.identity, { refreshToken, requestId: null }))).toBe(
      'PLATFORM_AUTHENTICATION_FAILED',
    )
  }
  expect(await rejectionCode(actorOf(login))).toBe('none')
  expect(await rejectionCode(refreshOf(login))).toBe('none')
})

test('one of 32 concurrent refreshes succeeds, and the session is revoked', {
  tags: ['slow'],
}, async () => {
  const other = t.another()
  const results = await Promise.allSettled(
    Array.from({ length: 32 }, (_, i) => refreshOf(login, i % 2 === 0 ? t.identity : other)),
  )
  const winners = results.filter((result) => result.status === 'fulfilled')
  expect(winners).toHaveLength(1)
  expect(await rejectionCode(actorOf(winners[0]!.value))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rejectionCode(refreshOf(winners[0]!.value))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await count('session.refresh')).toBe(1)
  expect(await count('session.reuse_detected')).toBe(1)
})

test('no token is valid once a revocation concurrent with a refresh has returned', {
  tags: ['slow'],
}, async () => {
  for (let round = 0; round < 20; round++) {
    const each = await operatorWith(['logs:read'])
    const actor = await actorOf(each)
    const { sessionId } = each.session
    const [refreshed] = await Promise.allSettled([
      refreshOf(each),
      revokeSession(t.identity, actor, { sessionId, requestId: null }),
    ])
    const tokens = refreshed.status === 'fulfilled' ? [each, refreshed.value] : [each]
    for (const token of tokens) {
      expect(await rejectionCode(actorOf(token))).toBe('PLATFORM_AUTHENTICATION_FAILED')
      expect(await rejectionCode(refreshOf(token))).toBe('PLATFORM_AUTHENTICATION_FAILED')
    }
  }
  expect(await count('session.revoke')).toBe(20)
})

test('every token of a disabled operator is rejected at once', async () => {
  await t.sql('update service_operators set disabled_at_micros = 1')
  expect(await rejectionCode(actorOf(login))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rejectionCode(refreshOf(login))).toBe('PLATFORM_AUTHENTICATION_FAILED')
})

test('each request uses the current grants', async () => {
  expect((await actorOf(login)).grants).toHaveLength(1)
  await t.sql(`update service_operator_grants set capabilities = array['logs:read']`)
  expect((await actorOf(login)).grants[0]?.capabilities).toEqual(['logs:read'])
  await t.sql('delete from service_operator_grants')
  expect((await actorOf(login)).grants).toEqual([])
})

test('authentication reads by indexes only', async () => {
  const { digest } = t.identity.credentials.issueAccessToken()
  const plan: string[] = []
  const explaining: Reader = {
    rows: async (sql, parameters) => {
      const rows = await t.sql<{ 'QUERY PLAN': string }>(`explain ${sql}`, parameters)
      plan.push(...rows.map((row) => row['QUERY PLAN']))
      return []
    },
  }
  await findSessionByAccess(explaining, digest, t.system.nowMicros())
  const text = plan.join('\n')
  expect(text).toContain('service_operator_sessions_access_digest')
  expect(text).not.toContain('Seq Scan')
})

test('authentication writes once a minute at most', async () => {
  const used = async () =>
    (
      await t.sql<{ at: string }>('select last_used_at_micros as at from service_operator_sessions')
    ).map((row) => BigInt(row.at))[0]
  const start = t.system.nowMicros()
  t.system.advance(59_999)
  await actorOf(login)
  expect(await used()).toBe(start)
  t.system.advance(1)
  await actorOf(login)
  expect(await used()).toBe(start + 60_000_000n)
})

test('an operator sees only its own active sessions, newest first', async () => {
  const other = await operatorWith(['logs:read'])
  t.system.advance(1)
  const self = await actorOf(login)
  const whole = { after: null, limit: 100 }
  const listed = await listSessions(t.identity, self, whole)
  expect(listed.sessions.map(({ sessionId }) => sessionId)).toEqual([login.session.sessionId])
  expect((await listSessions(t.identity, await actorOf(other), whole)).sessions).toHaveLength(1)
  t.system.advance(REFRESH_MS)
  expect(await listSessions(t.identity, self, whole)).toEqual({ sessions: [], next: null })
})

test('pages of any size contain each active session once', async () => {
  const operator = { ...login.operator }
  const opened = [login.session.sessionId]
  for (let i = 0; i < 24; i++) {
    t.system.advance(1)
    const input = { operator, grants: [], deviceName: null, atMicros: t.system.nowMicros() }
    const { session } = await transaction(t.identity.database, (tx) =>
      openSession(t.identity, tx, input),
    )
    opened.unshift(session.sessionId)
  }
  const self = await actorOf(login)
  for (const limit of [1, 4, 5, 24, 25, 26, 1_000]) {
    const seen: SessionId[] = []
    let after: SessionId | null = null
    let pages = 0
    do {
      const page: SessionPage = await listSessions(t.identity, self, { after, limit })
      seen.push(...page.sessions.map(({ sessionId }) => sessionId))
      after = page.next
      pages += 1
    } while (after !== null)
    expect([seen, pages]).toEqual([opened, Math.ceil(25 / limit)])
  }
  // A page is stable if the last session of the previous page was revoked.
  const { next } = await listSessions(t.identity, self, { after: null, limit: 10 })
  await revokeSession(t.identity, self, { sessionId: opened[9]!, requestId: null })
  const second = await listSessions(t.identity, self, { after: next, limit: 10 })
  expect(second.sessions[0]?.sessionId).toBe(opened[10])
})

test('authentication returns the operator, the session and the grants', async () => {
  const self = await actorOf(login)
  expect(self.operator).toEqual(login.operator)
  expect(self.session).toEqual(login.session)
  expect(self.grants).toEqual(login.grants)
})

test('revoking the own session is idempotent and leaves one record', async () => {
  const self = await actorOf(login)
  const { sessionId } = login.session
  await revokeSession(t.identity, self, { sessionId, requestId: null })
  await revokeSession(t.identity, self, { sessionId, requestId: null })
  expect(await rejectionCode(actorOf(login))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await count('session.revoke')).toBe(1)
})

test('revoking another session requires operators:manage, even if it does not exist', async () => {
  const unknown = t.system.ids.make('ops') as SessionId
  const weak = await operatorWith(['logs:read'])
  const weakActor = await actorOf(weak)
  for (const sessionId of [login.session.sessionId, unknown]) {
    const work = revokeSession(t.identity, weakActor, { sessionId, requestId: null })
    expect(await rejectionCode(work)).toBe('PLATFORM_ACCESS_DENIED')
  }
  const owner = await actorOf(login)
  const work = revokeSession(t.identity, owner, { sessionId: unknown, requestId: null })
  expect(await rejectionCode(work)).toBe('PLATFORM_NOT_FOUND')
  const { sessionId } = weak.session
  await revokeSession(t.identity, owner, { sessionId, requestId: null })
  expect(await rejectionCode(actorOf(weak))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rejectionCode(actorOf(login))).toBe('none')
})

test('a stored grant that breaks a rule is corruption, not a smaller grant', async () => {
  for (const capabilities of [['x:y'], ['logs:read', 'data:read'], ['logs:read', 'logs:read']]) {
    await t.sql('update service_operator_grants set capabilities = $1', [capabilities])
    expect(await rejectionCode(actorOf(login))).toBe('PLATFORM_IDENTITY_STORAGE_CORRUPT')
  }
})

test('readiness depends on the database and its schema', async () => {
  expect(await t.identity.ready()).toBe(true)
  await t.sql('update service_platform_meta set schema_version = 2')
  expect(await t.identity.ready()).toBe(false)
  await t.sql('update service_platform_meta set schema_version = $1', [SCHEMA_VERSION])
  expect(await Promise.all([t.identity.ready(), t.identity.ready()])).toEqual([true, true])
})
