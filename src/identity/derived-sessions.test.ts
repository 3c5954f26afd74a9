import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import {
  authenticateLogin,
  ENVIRONMENT,
  firstOwner,
  OTHER_ENVIRONMENT,
  operatorWith,
  PROJECT,
} from '../../testing/operators.ts'
import { CAPABILITIES, type Capability } from '../value/capabilities.ts'
import { INSTALLATION, type Scope } from '../value/scope.ts'
import { holds } from './actor.ts'
import { DERIVED_SESSIONS_MAX, type DerivationInput, deriveSession } from './derived-sessions.ts'
import { issueInvitation } from './invitations.ts'
import { changeOperator } from './operators.ts'
import { IdentityRetention } from './retention.ts'
import { type Login, listSessions, refresh, revokeSession, whileAuthorized } from './sessions.ts'

const PAGE = { after: null, limit: 100 }
let t: TestIdentity
let parent: Login

beforeEach(async () => {
  t = await testIdentity()
  parent = await firstOwner(t)
})

afterEach(() => t.dispose())

async function derive(given: Partial<DerivationInput> = {}, from = parent): Promise<Login> {
  return deriveSession(t.identity, await authenticateLogin(t, from), {
    capabilities: ['logs:read'],
    scope: ENVIRONMENT,
    lifetimeSeconds: 3_600,
    purpose: 'job',
    requestId: null,
    ...given,
  })
}

async function revoke(login: Login, by = login): Promise<void> {
  const actor = await authenticateLogin(t, by)
  await revokeSession(t.identity, actor, { sessionId: login.session.sessionId, requestId: null })
}

const codeOf = (login: Login): Promise<string> => rejectionCode(authenticateLogin(t, login))
const ENDED = 'PLATFORM_AUTHENTICATION_FAILED'
const DENIED = 'PLATFORM_ACCESS_DENIED'

describe('the rights of a derived session', () => {
  test('a derived session has what was derived, and nothing else', async () => {
    const derived = await derive({ capabilities: ['logs:read', 'data:read', 'logs:read'] })
    const actor = await authenticateLogin(t, derived)
    expect(actor.grants).toEqual([
      { scope: ENVIRONMENT, capabilities: ['data:read', 'logs:read'], source: 'bootstrap' },
    ])
    expect(derived.grants).toEqual(actor.grants)
    for (const capability of CAPABILITIES) {
      const isDerived = capability === 'data:read' || capability === 'logs:read'
      expect(holds(actor, capability, ENVIRONMENT), capability).toBe(isDerived)
      for (const scope of [INSTALLATION, PROJECT, OTHER_ENVIRONMENT]) {
        expect(holds(actor, capability, scope), capability).toBe(false)
      }
    }
  })

  test('a session derives only what it holds at the scope', { tags: ['slow'] }, async () => {
    const login = await operatorWith(
      t,
      { scope: ENVIRONMENT, capabilities: ['data:read', 'logs:read'] },
      { scope: PROJECT, capabilities: ['usage:read'] },
    )
    const attempts: readonly [Capability[], Scope, string][] = [
      [['data:read', 'logs:read', 'usage:read'], ENVIRONMENT, 'none'],
      [['usage:read'], PROJECT, 'none'],
      [['usage:read'], OTHER_ENVIRONMENT, 'none'],
      [['data:write'], ENVIRONMENT, DENIED],
      [['data:read', 'data:write'], ENVIRONMENT, DENIED],
      [['data:read'], OTHER_ENVIRONMENT, DENIED],
      [['data:read'], PROJECT, DENIED],
      [['usage:read'], INSTALLATION, DENIED],
    ]
    for (const [capabilities, scope, code] of attempts) {
      const attempt = rejectionCode(derive({ capabilities, scope }, login))
      expect(await attempt, `${capabilities} at ${scope.kind}`).toBe(code)
    }
  })

  test('a grant that the operator loses takes the right away at once', {
    tags: ['slow'],
  }, async () => {
    const login = await operatorWith(t, {
      scope: INSTALLATION,
      capabilities: ['data:read', 'logs:read'],
    })
    const derived = await derive({ capabilities: ['data:read', 'logs:read'] }, login)
    const replace = (capabilities: readonly string[]) =>
      t.sql('update service_operator_grants set capabilities = $2 where operator_id = $1', [
        login.operator.operatorId,
        capabilities,
      ])
    await replace(['logs:read'])
    const actor = await authenticateLogin(t, derived)
    expect(actor.grants).toMatchObject([{ scope: ENVIRONMENT, capabilities: ['logs:read'] }])
    const held = await whileAuthorized(t.identity, actor, (current) => current.grants)
    expect(held).toEqual(actor.grants)
    await replace([])
    expect((await authenticateLogin(t, derived)).grants).toEqual([])
  })

  test('a grant that the operator gains adds no right to a derived session', async () => {
    const login = await operatorWith(t, { scope: ENVIRONMENT, capabilities: ['logs:read'] })
    const derived = await derive({}, login)
    await t.sql('update service_operator_grants set capabilities = $1 where operator_id = $2', [
      CAPABILITIES,
      login.operator.operatorId,
    ])
    expect((await authenticateLogin(t, derived)).grants).toMatchObject([
      { capabilities: ['logs:read'] },
    ])
  })

  test('a grant that moves to a narrower scope narrows the derived session', async () => {
    const login = await operatorWith(t, { scope: PROJECT, capabilities: ['logs:read'] })
    const derived = await derive({ scope: PROJECT }, login)
    const { projectId, environmentId } = ENVIRONMENT
    await t.sql(
      `update service_operator_grants
          set scope_kind = 'environment', project_id = $2, environment_id = $3
        where operator_id = $1`,
      [login.operator.operatorId, projectId, environmentId],
    )
    expect((await authenticateLogin(t, derived)).grants).toMatchObject([{ scope: ENVIRONMENT }])
  })
})

describe('a derived session cannot get more', () => {
  test('a derived session derives no other one, whatever it holds', async () => {
    const capabilities = [...CAPABILITIES]
    const derived = await derive({ capabilities, scope: INSTALLATION })
    expect(await rejectionCode(derive({}, derived))).toBe(DENIED)
  })

  test('a derived session has no refresh token, and its access token is none', async () => {
    const derived = await derive()
    expect(derived.refreshToken).toBeNull()
    const refreshToken = derived.accessToken.reveal()
    expect(await rejectionCode(refresh(t.identity, { refreshToken, requestId: null }))).toBe(ENDED)
    const rows = await t.sql(
      'select refresh_digest from service_operator_sessions where session_id = $1',
      [derived.session.sessionId],
    )
    expect(rows).toEqual([{ refresh_digest: null }])
  })

  test('a derived session revokes itself only, unless it holds operators:manage', {
    tags: ['slow'],
  }, async () => {
    const derived = await derive()
    const sibling = await derive()
    for (const login of [parent, sibling]) {
      expect(await rejectionCode(revoke(login, derived))).toBe(DENIED)
      expect(await codeOf(login)).toBe('none')
    }
    await revoke(derived)
    expect(await codeOf(derived)).toBe(ENDED)
    const manager = await derive({ capabilities: ['operators:manage'], scope: INSTALLATION })
    await revoke(sibling, manager)
    expect(await codeOf(sibling)).toBe(ENDED)
  })

  test('a server that knows no derived sessions does not recognize their tokens', async () => {
    const derived = await derive()
    // Such a server computes the MAC of the tokens of logins alone.
    const rows = await t.sql<{ access_digest: Buffer }>(
      'select access_digest from service_operator_sessions where session_id = $1',
      [derived.session.sessionId],
    )
    const token = derived.accessToken.reveal()
    expect(t.identity.credentials.recognizeAccessToken(token)).toEqual(rows[0]!.access_digest)
    expect(t.identity.credentials.kindOf(token)).toBe('derived-token')
    expect(t.identity.credentials.kindOf(parent.accessToken.reveal())).toBe('access-token')
  })
})

describe('the end of a derived session', () => {
  test('a derived session ends after its lifetime', async () => {
    const derived = await derive({ lifetimeSeconds: 60 })
    t.system.advance(59_999)
    expect(await codeOf(derived)).toBe('none')
    t.system.advance(1)
    expect(await codeOf(derived)).toBe(ENDED)
    const actor = { sessionId: derived.session.sessionId } as Parameters<typeof whileAuthorized>[1]
    expect(await rejectionCode(whileAuthorized(t.identity, actor, () => null))).toBe(ENDED)
  })

  test('a derived session outlives the access token of its parent', async () => {
    const derived = await derive()
    t.system.advance(601_000)
    expect(await codeOf(parent)).toBe(ENDED)
    expect(await codeOf(derived)).toBe('none')
    parent = await refresh(t.identity, {
      refreshToken: parent.refreshToken!.reveal(),
      requestId: null,
    })
    expect(await codeOf(derived)).toBe('none')
  })

  test('a derived session ends no later than its parent', { tags: ['slow'] }, async () => {
    await t.sql('update service_operator_sessions set refresh_expires_at_micros = $1', [
      String(t.system.nowMicros() + 5_000_000n),
    ])
    const derived = await derive()
    expect(derived.session.accessExpiresAtMicros).toBe(t.system.nowMicros() + 5_000_000n)
    expect(derived.session.refreshExpiresAtMicros).toBe(derived.session.accessExpiresAtMicros)
  })

  const ENDS: readonly [string, () => Promise<unknown>][] = [
    ['is revoked', () => revoke(parent)],
    [
      'had its refresh token used twice',
      async () => {
        const refreshToken = parent.refreshToken!.reveal()
        await refresh(t.identity, { refreshToken, requestId: null })
        await rejectionCode(refresh(t.identity, { refreshToken, requestId: null }))
      },
    ],
    [
      'belongs to an operator that is disabled',
      async () => {
        const capabilities = [...CAPABILITIES]
        const other = await operatorWith(t, { scope: INSTALLATION, capabilities })
        await changeOperator(t.identity, await authenticateLogin(t, other), {
          verb: 'disable',
          operatorId: parent.operator.operatorId,
          operationId: t.system.ids.make('opn'),
          changedAtMicros: t.system.nowMicros(),
          requestId: null,
        })
      },
    ],
    [
      'has expired',
      () =>
        t.sql(
          `update service_operator_sessions set refresh_expires_at_micros = $2
            where session_id = $1`,
          [parent.session.sessionId, String(t.system.nowMicros())],
        ),
    ],
    [
      'is gone',
      () =>
        t.sql('delete from service_operator_sessions where session_id = $1', [
          parent.session.sessionId,
        ]),
    ],
    [
      // A server of the version before knows no derived sessions.
      'was revoked without its derived sessions',
      () =>
        t.sql(
          `update service_operator_sessions set revoked_at_micros = 1, revocation = 'requested'
            where session_id = $1`,
          [parent.session.sessionId],
        ),
    ],
  ]

  test.each(ENDS)(
    'a derived session ends at once where its parent %s',
    { tags: ['slow'] },
    async (_, end) => {
      const derived = await derive()
      const actor = await authenticateLogin(t, derived)
      await end()
      expect(await codeOf(derived)).toBe(ENDED)
      expect(await rejectionCode(whileAuthorized(t.identity, actor, () => null))).toBe(ENDED)
      expect((await listSessions(t.identity, actor, PAGE)).sessions).not.toContainEqual(
        expect.objectContaining({ sessionId: derived.session.sessionId }),
      )
    },
  )

  test('a derivation that waits for the end of its parent is rejected', async () => {
    const actor = await authenticateLogin(t, parent)
    await t.sql('begin')
    await t.sql(
      `update service_operator_sessions set revoked_at_micros = 1, revocation = 'requested'
        where session_id = $1`,
      [actor.sessionId],
    )
    const deriving = rejectionCode(
      deriveSession(t.identity, actor, {
        capabilities: ['logs:read'],
        scope: ENVIRONMENT,
        lifetimeSeconds: 60,
        purpose: 'job',
        requestId: null,
      }),
    )
    await expect
      .poll(async () => (await t.sql('select 1 from pg_locks where not granted')).length)
      .toBeGreaterThan(0)
    await t.sql('commit')
    expect(await deriving).toBe(ENDED)
  })

  test('a revocation ends each session that concurrent derivations open', {
    tags: ['slow'],
  }, async () => {
    for (let round = 0; round < 10; round++) {
      const login = await operatorWith(t, { scope: ENVIRONMENT, capabilities: ['logs:read'] })
      const attempts = Array.from({ length: 4 }, () => derive({}, login))
      const [outcomes] = await Promise.all([Promise.allSettled(attempts), revoke(login)])
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') expect(await codeOf(outcome.value)).toBe(ENDED)
      }
      const live = await t.sql(
        `select 1 from service_operator_sessions
          where operator_id = $1 and revoked_at_micros is null`,
        [login.operator.operatorId],
      )
      expect(live).toEqual([])
    }
  })
})

test('a session has a bounded number of derived sessions that can be used', {
  tags: ['slow'],
}, async () => {
  const opened: Login[] = []
  for (let i = 0; i < DERIVED_SESSIONS_MAX - 2; i++) opened.push(await derive())
  // Concurrent derivations do not pass the bound together.
  const last = await Promise.allSettled(Array.from({ length: 6 }, () => derive()))
  expect(last.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
  expect(await rejectionCode(derive())).toBe('PLATFORM_RATE_LIMITED')
  await revoke(opened[0]!)
  await derive()
  expect(await rejectionCode(derive())).toBe('PLATFORM_RATE_LIMITED')
  t.system.advance(599_000)
  expect(await rejectionCode(derive())).toBe('PLATFORM_RATE_LIMITED')
  const other = await operatorWith(t, { scope: ENVIRONMENT, capabilities: ['logs:read'] })
  expect(await rejectionCode(derive({}, other))).toBe('none')
})

test('the list of sessions names purpose and parent of derived ones', async () => {
  const derived = await derive({ purpose: 'mcp' })
  const actor = await authenticateLogin(t, derived)
  const { sessions } = await listSessions(t.identity, actor, PAGE)
  expect(sessions.map(({ sessionId, derivation }) => [sessionId, derivation])).toEqual([
    [
      derived.session.sessionId,
      {
        parentSessionId: parent.session.sessionId,
        purpose: 'mcp',
        capabilities: ['logs:read'],
        scope: ENVIRONMENT,
      },
    ],
    [parent.session.sessionId, null],
  ])
})

test('each audit record of a derived session names its purpose', async () => {
  const manager = await derive({
    capabilities: [...CAPABILITIES],
    scope: INSTALLATION,
    purpose: 'console',
  })
  const actor = await authenticateLogin(t, manager)
  const colleague = await operatorWith(t, { scope: ENVIRONMENT, capabilities: ['logs:read'] })
  await issueInvitation(t.identity, actor, {
    operatorName: 'Grace',
    role: 'observer',
    scope: ENVIRONMENT,
    operationId: t.system.ids.make('opn'),
    requestId: null,
  })
  await changeOperator(t.identity, actor, {
    verb: 'disable',
    operatorId: colleague.operator.operatorId,
    operationId: t.system.ids.make('opn'),
    changedAtMicros: t.system.nowMicros(),
    requestId: null,
  })
  await revoke(manager)
  const rows = await t.sql(
    `select operation, purpose from service_platform_audit
      where purpose is not null order by at_micros, audit_id`,
  )
  expect(rows).toEqual([
    { operation: 'session.derive', purpose: 'console' },
    { operation: 'invitation.create', purpose: 'console' },
    { operation: 'operator.disable', purpose: 'console' },
    { operation: 'session.revoke', purpose: 'console' },
  ])
})

test('retention removes ended derived sessions, and their parents apart from them', async () => {
  await operatorWith(t, { scope: ENVIRONMENT, capabilities: ['logs:read'] })
  await derive({ lifetimeSeconds: 1 })
  t.system.advance(40 * 86_400_000)
  const { system, log } = t
  const { database } = t.identity
  const options = { database, system, log: log.log, auditDays: 365, sessionDays: 1 }
  const retention = new IdentityRetention(options)
  await retention.run()
  await retention.close()
  const rows = await t.sql('select purpose from service_operator_sessions where operator_id = $1', [
    parent.operator.operatorId,
  ])
  expect(rows).toHaveLength(1)
})
