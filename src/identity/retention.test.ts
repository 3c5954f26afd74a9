/**
 * Goal: the audit and ended sessions are kept for their time, and not longer. Method: the clock of
 * the server is moved, and the tables are read after each run.
 */
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../testing/identity.ts'
import type { OperatorId, SessionId } from '../value/ids.ts'
import { exchange } from './exchange.ts'
import { IdentityRetention } from './retention.ts'
import { type Login, refresh } from './sessions.ts'

const DAY_MS = 86_400_000
const AUDIT_DAYS = 40
const SESSION_DAYS = 10
let t: TestIdentity
let owner: Login
let retention: IdentityRetention

beforeEach(async () => {
  t = await testIdentity()
  await t.identity.startup()
  const code = readFileSync(t.codePath, 'utf8').trimEnd()
  const names = { deviceName: 'first', operatorName: null }
  owner = await exchange(t.identity, { code, ...names, requestId: null })
  retention = open()
  await retention.run()
})

afterEach(async () => {
  await retention.close()
  await t.dispose()
})

function open(): IdentityRetention {
  const days = { auditDays: AUDIT_DAYS, sessionDays: SESSION_DAYS }
  const { database } = t.identity
  return new IdentityRetention({ database, system: t.system, log: t.log.log, ...days })
}

/** Inserts a session that ends at a time, and was used last at its creation. */
async function session(given: {
  operatorId?: OperatorId
  expiresAtMs: number
  revokedAtMs?: number
}): Promise<SessionId> {
  const sessionId = t.system.ids.make('ops')
  const { operatorId = owner.operator.operatorId, expiresAtMs, revokedAtMs = null } = given
  await t.sql(
    `insert into service_operator_sessions
       (session_id, operator_id, access_digest, access_expires_at_micros, refresh_generation,
        refresh_expires_at_micros, created_at_micros, last_used_at_micros, revoked_at_micros,
        revocation)
     values ($1, $2, sha256($1::text::bytea), 1, 1, $3, $4, $4, $5, $6)`,
    [
      sessionId,
      operatorId,
      expiresAtMs * 1000,
      t.system.nowMillis() * 1000,
      ...(revokedAtMs === null ? [null, null] : [revokedAtMs * 1000, 'requested']),
    ],
  )
  return sessionId
}

async function sessions(): Promise<string[]> {
  const rows = await t.sql<{ session_id: string }>(
    'select session_id from service_operator_sessions order by session_id',
  )
  return rows.map((row) => row.session_id)
}

const failures = () => t.log.records().filter((line) => line.event === 'identity.retention_failed')

/** Moves the clock to a time, where the owner uses the first session. */
async function useOwnerAt(millis: number): Promise<void> {
  t.system.advance(millis - t.system.nowMillis())
  const refreshToken = owner.refreshToken!.reveal()
  owner = await refresh(t.identity, { refreshToken, requestId: null })
}

test('a record of the audit is removed after its days, and no earlier', async () => {
  const start = t.system.nowMillis()
  await useOwnerAt(start + DAY_MS)
  t.system.advance(start + AUDIT_DAYS * DAY_MS - t.system.nowMillis())
  await retention.run()
  expect(await t.audit()).toContain('bootstrap.consume')
  t.system.advance(1)
  await retention.run()
  expect(await t.audit()).toEqual(['session.refresh'])
})

test('a session is removed some days after its expiry or revocation, and no earlier', async () => {
  const start = t.system.nowMillis()
  const expired = await session({ expiresAtMs: start + DAY_MS })
  const revoked = await session({ expiresAtMs: start + 25 * DAY_MS, revokedAtMs: start + DAY_MS })
  const live = await session({ expiresAtMs: start + 25 * DAY_MS })
  const all = [owner.session.sessionId, expired, revoked, live]
  await useOwnerAt(start + DAY_MS + SESSION_DAYS * DAY_MS)
  await retention.run()
  expect(await sessions()).toEqual(all)
  t.system.advance(1)
  await retention.run()
  expect(await sessions()).toEqual([owner.session.sessionId, live])
})

test('the session that an operator used last stays, with the time of that use', async () => {
  const first = owner.session.sessionId
  t.system.advance(1_000)
  const last = await session({ expiresAtMs: t.system.nowMillis() + 1_000 })
  t.system.advance(400 * DAY_MS)
  await retention.run()
  expect(await sessions()).toEqual([last])
  expect(first).not.toBe(last)
})

test('a session stays while the token of a workload that opened it is remembered', async () => {
  const start = t.system.nowMillis()
  const opened = await session({ expiresAtMs: start + 1_000 })
  await session({ expiresAtMs: start + 30 * DAY_MS })
  const tokenEnd = start + 12 * DAY_MS
  await t.sql(
    `insert into service_operator_token_uses (token_digest, session_id, expires_at_micros)
     values (sha256('token'), $1, $2)`,
    [opened, tokenEnd * 1000],
  )
  await useOwnerAt(tokenEnd + 60_000)
  await retention.run()
  expect(await sessions()).toContain(opened)
  expect(failures()).toEqual([])
  t.system.advance(1)
  await retention.run()
  expect(await sessions()).not.toContain(opened)
  expect(await t.sql('select 1 from service_operator_token_uses')).toEqual([])
})

test('one run removes more than one batch, and logs the numbers', async () => {
  const start = t.system.nowMillis()
  await t.sql(
    `insert into service_platform_audit (audit_id, operation, outcome, at_micros)
     select 'aud_' || lpad(i::text, 26, '0'), 'session.refresh', 'succeeded', i
       from generate_series(1, 2500) as i`,
  )
  await retention.run()
  expect(await t.audit()).not.toContain('session.refresh')
  const removed = t.log.records().filter((line) => line.event === 'identity.records_removed')
  expect(removed).toMatchObject([{ audits: 2_500, sessions: 0 }])
  expect(t.system.nowMillis()).toBe(start)
})

test('two servers on one database remove together, and neither fails', async () => {
  await t.sql(
    `insert into service_platform_audit (audit_id, operation, outcome, at_micros)
     select 'aud_' || lpad(i::text, 26, '0'), 'session.refresh', 'succeeded', i
       from generate_series(1, 2500) as i`,
  )
  const other = open()
  try {
    await Promise.all([retention.run(), other.run()])
  } finally {
    await other.close()
  }
  expect(await t.audit()).not.toContain('session.refresh')
  const removed = t.log.records().filter((line) => line.event === 'identity.records_removed')
  expect(removed.reduce((sum, line) => sum + Number(line.audits), 0)).toBe(2_500)
  expect(failures()).toEqual([])
})

test('a run that fails is logged, and the next one removes', async () => {
  await t.sql('alter table service_platform_audit rename to elsewhere')
  t.system.advance((AUDIT_DAYS + 1) * DAY_MS)
  await retention.run()
  expect(failures()).toHaveLength(1)
  await t.sql('alter table elsewhere rename to service_platform_audit')
  await retention.run()
  expect(await t.audit()).toEqual([])
})
