import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { postgresProxy } from '../../testing/databases/postgres-proxy.ts'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { Database } from '../database/database.ts'
import { CAPABILITIES } from '../value/capabilities.ts'
import { INSTALLATION } from '../value/scope.ts'
import { Secret } from '../value/secret.ts'
import { type ExchangeInput, exchange } from './exchange.ts'

const DAY_MS = 86_400_000
const ENVIRONMENT = {
  projectId: 'prj_00000000000000000000000001',
  environmentId: 'env_00000000000000000000000001',
}
let t: TestIdentity

beforeEach(async () => {
  t = await testIdentity()
  await t.identity.startup()
})

afterEach(async () => {
  await t.dispose()
})

function input(given: Partial<ExchangeInput> = {}): ExchangeInput {
  const code = readFileSync(t.codePath, 'utf8').trimEnd()
  return { code, deviceName: null, operatorName: null, requestId: null, ...given }
}

async function rowCounts(): Promise<Record<string, unknown>> {
  const [row] = await t.sql(
    `select (select count(*)::int from service_operators) as operators,
            (select count(*)::int from service_operator_grants) as grants,
            (select count(*)::int from service_operator_sessions) as sessions,
            (select count(*)::int from service_platform_audit
              where operation = 'bootstrap.consume') as consumed,
            (select state from service_operator_invitations) as state`,
  )
  return row ?? {}
}

const NOTHING = { operators: 0, grants: 0, sessions: 0, consumed: 0, state: 'pending' }
const ONE_OF_EACH = { operators: 1, grants: 1, sessions: 1, consumed: 1, state: 'consumed' }

/** Inserts an invitation as its issuance does. */
async function delegated(code: Secret): Promise<void> {
  const digest = t.identity.credentials.digestInvitationCode(code.reveal())
  await t.sql(
    `insert into service_operator_invitations
       (invitation_id, kind, code_digest, operator_name, role, scope_kind, project_id,
        environment_id, capabilities, state, created_by, created_at_micros, expires_at_micros)
     select 'opi_00000000000000000000000009', 'delegated', $1, 'ci', 'developer', 'environment',
            $2, $3, array['logs:read', 'releases:read'], 'pending', operator_id, 1, $4
       from service_operators`,
    [
      digest,
      ENVIRONMENT.projectId,
      ENVIRONMENT.environmentId,
      String(t.system.nowMicros() + 1_000_000n),
    ],
  )
}

test('the first-owner code makes an operator with every capability, and a session', async () => {
  const requestId = t.system.ids.make('req')
  const login = await exchange(
    t.identity,
    input({ deviceName: 'Laptop', operatorName: 'Ada', requestId }),
  )
  const now = t.system.nowMicros()
  expect(login.operator).toMatchObject({ operatorName: 'Ada', createdAtMicros: now })
  expect(login.grants).toEqual([
    { scope: INSTALLATION, capabilities: CAPABILITIES, source: 'bootstrap' },
  ])
  expect(login.session).toMatchObject({
    deviceName: 'Laptop',
    createdAtMicros: now,
    accessExpiresAtMicros: now + 600_000_000n,
    refreshExpiresAtMicros: now + 30n * 86_400_000_000n,
  })
  expect(await rowCounts()).toEqual(ONE_OF_EACH)
  const actor = await t.identity.authenticate(login.accessToken.reveal())
  expect(actor).toEqual({
    operatorId: login.operator.operatorId,
    operatorName: 'Ada',
    purpose: null,
    sessionId: login.session.sessionId,
    operator: login.operator,
    session: login.session,
    grants: login.grants,
  })
  const audit = await t.sql(
    `select operation, outcome, actor_operator_id, request_id, session_id, invitation_id
       from service_platform_audit where operation <> 'bootstrap.create' order by audit_id`,
  )
  const correlation = {
    outcome: 'succeeded',
    actor_operator_id: login.operator.operatorId,
    request_id: requestId,
    session_id: login.session.sessionId,
    invitation_id: expect.stringMatching(/^opi_/),
  }
  expect(audit).toEqual([
    { operation: 'bootstrap.consume', ...correlation },
    { operation: 'session.create', ...correlation },
  ])
})

test('a consumed code cannot be exchanged', async () => {
  await exchange(t.identity, input())
  expect(await rejectionCode(exchange(t.identity, input()))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rowCounts()).toEqual(ONE_OF_EACH)
})

test('an expired code cannot be exchanged', async () => {
  t.system.advance(DAY_MS)
  expect(await rejectionCode(exchange(t.identity, input()))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rowCounts()).toEqual(NOTHING)
})

test.each(['', 'x', `rk_inv_v1_${'A'.repeat(43)}`, `rk_at_v1_${'A'.repeat(43)}`])(
  'the text %j is not a code',
  { tags: ['slow'] },
  async (code) => {
    expect(await rejectionCode(exchange(t.identity, input({ code })))).toBe(
      'PLATFORM_AUTHENTICATION_FAILED',
    )
    expect(await rowCounts()).toEqual(NOTHING)
  },
)

test('exactly one of sixteen concurrent exchanges of a code succeeds', async () => {
  const other = t.another()
  const outcomes = await Promise.all(
    Array.from({ length: 16 }, (_, i) =>
      rejectionCode(exchange(i % 2 === 0 ? t.identity : other, input())),
    ),
  )
  expect(outcomes.filter((code) => code === 'none')).toHaveLength(1)
  expect(outcomes.filter((code) => code === 'PLATFORM_AUTHENTICATION_FAILED')).toHaveLength(15)
  expect(await rowCounts()).toEqual(ONE_OF_EACH)
})

test('a bootstrap code is invalid once an operator exists', async () => {
  await t.sql(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ('opr_00000000000000000000000001', 'managed', 1)`,
  )
  expect(await rejectionCode(exchange(t.identity, input()))).toBe('PLATFORM_AUTHENTICATION_FAILED')
})

test('a delegated code grants exactly its scope, capabilities and name', {
  tags: ['slow'],
}, async () => {
  await exchange(t.identity, input())
  const { secret } = t.identity.credentials.issueInvitationCode()
  await delegated(secret)
  const login = await exchange(t.identity, input({ code: secret.reveal() }))
  expect(login.operator.operatorName).toBe('ci')
  expect(login.grants).toEqual([
    {
      scope: { kind: 'environment', ...ENVIRONMENT },
      capabilities: ['logs:read', 'releases:read'],
      source: 'invitation',
    },
  ])
  expect(await t.audit()).toContain('invitation.consume')
})

test('a delegated code rejects a chosen name, and stays valid', async () => {
  await exchange(t.identity, input())
  const { secret } = t.identity.credentials.issueInvitationCode()
  await delegated(secret)
  const code = secret.reveal()
  expect(await rejectionCode(exchange(t.identity, input({ code, operatorName: 'root' })))).toBe(
    'PLATFORM_REQUEST_INVALID',
  )
  expect(await rejectionCode(exchange(t.identity, input({ code })))).toBe('none')
})

test('a delegated code that is consumed or revoked cannot be exchanged', async () => {
  await exchange(t.identity, input())
  const { secret } = t.identity.credentials.issueInvitationCode()
  await delegated(secret)
  const code = secret.reveal()
  await t.sql(
    `update service_operator_invitations set state = 'revoked', revoked_at_micros = 1
      where kind = 'delegated'`,
  )
  expect(await rejectionCode(exchange(t.identity, input({ code })))).toBe(
    'PLATFORM_AUTHENTICATION_FAILED',
  )
  await t.sql(
    `update service_operator_invitations set state = 'pending', revoked_at_micros = null
      where kind = 'delegated'`,
  )
  expect(await rejectionCode(exchange(t.identity, input({ code })))).toBe('none')
  expect(await rejectionCode(exchange(t.identity, input({ code })))).toBe(
    'PLATFORM_AUTHENTICATION_FAILED',
  )
  expect(await t.sql('select 1 from service_operators')).toHaveLength(2)
})

test('a connection that is lost at any statement leaves everything or nothing', {
  tags: ['slow'],
}, async () => {
  const proxy = await postgresProxy(t.url)
  const { system, credentials } = t.identity
  const statements = [
    /for update/,
    /insert into service_operators/,
    /insert into service_operator_grants/,
    /update service_operator_invitations/,
    /insert into service_operator_sessions/,
    /insert into service_platform_audit/,
  ]
  const attempt = async (statement: RegExp, when: 'before' | 'after') => {
    const database = new Database({ url: new Secret(proxy.url) })
    proxy.cut(statement, when)
    const code = await rejectionCode(exchange({ database, system, credentials }, input()))
    await database.close()
    return code
  }
  try {
    for (const statement of statements) {
      expect(await attempt(statement, 'before')).toBe('PLATFORM_UNAVAILABLE')
      expect(await attempt(statement, 'after')).toBe('PLATFORM_UNAVAILABLE')
      expect(await rowCounts()).toEqual(NOTHING)
    }
    const commit = /^Q.{4}commit\0/s
    expect(await attempt(commit, 'before')).toBe('PLATFORM_IDENTITY_RESULT_UNCERTAIN')
    expect(await rowCounts()).toEqual(NOTHING)
    expect(await attempt(commit, 'after')).toBe('PLATFORM_IDENTITY_RESULT_UNCERTAIN')
    expect(await rowCounts()).toEqual(ONE_OF_EACH)
    expect(proxy.cuts).toBe(14)
  } finally {
    await proxy.close()
  }
})

test('neither codes nor tokens nor the pepper are in any table, in any form', async () => {
  const used = input().code
  const login = await exchange(t.identity, input())
  const secrets = [used, login.accessToken.reveal(), login.refreshToken!.reveal()]
  const tables = await t.sql<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  )
  let dump = ''
  for (const { name } of tables) {
    dump += JSON.stringify(await t.sql(`select row_to_json(x)::text as line from ${name} x`))
  }
  expect(dump).toContain(login.session.sessionId)
  for (const secret of [...secrets, 'B'.repeat(43)]) {
    const random = secret.slice(-43)
    for (const form of [
      random,
      random.slice(0, 12),
      random.slice(-12),
      Buffer.from(random, 'base64url').toString('hex'),
      Buffer.from(secret).toString('hex'),
      Buffer.from(secret).toString('base64'),
    ]) {
      expect(dump).not.toContain(form)
    }
  }
  expect(dump).not.toContain('07070707')
})
