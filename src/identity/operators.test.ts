import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import {
  authenticateLogin,
  ENVIRONMENT,
  everythingBut,
  firstOwner,
  operatorWith,
} from '../../testing/operators.ts'
import { externalLogins } from '../../testing/providers/external-logins.ts'
import { CAPABILITIES } from '../value/capabilities.ts'
import type { OperatorId } from '../value/ids.ts'
import { INSTALLATION } from '../value/scope.ts'
import { exchange } from './exchange.ts'
import { issueInvitation } from './invitations.ts'
import {
  changeOperator,
  listOperatorSessions,
  listOperators,
  type OperatorChange,
} from './operators.ts'
import { type Login, refresh } from './sessions.ts'

const DAY_MICROS = 86_400_000_000n
const AUTHENTICATION_FAILED = 'PLATFORM_AUTHENTICATION_FAILED'
let t: TestIdentity
let owner: Login

beforeEach(async () => {
  t = await testIdentity()
  owner = await firstOwner(t)
})

afterEach(() => t.dispose())

const anotherOwner = () => operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES })
const developer = () => operatorWith(t, { scope: ENVIRONMENT, capabilities: ['releases:read'] })
const idOf = (login: Login): OperatorId => login.operator.operatorId

function change(
  verb: OperatorChange['verb'],
  operator: Login,
  given: Partial<OperatorChange> = {},
): OperatorChange {
  const operationId = t.system.ids.make('opn')
  const changedAtMicros = t.system.nowMicros()
  const operatorId = idOf(operator)
  return { verb, operatorId, operationId, changedAtMicros, requestId: null, ...given }
}

const apply = async (by: Login, given: OperatorChange, identity = t.identity) =>
  changeOperator(identity, await authenticateLogin(t, by), given)

const refreshOf = (login: Login) =>
  refresh(t.identity, { refreshToken: login.refreshToken!.reveal(), requestId: null })

/** Resolves once this many transactions wait for a lock. */
async function untilWaiting(count: number): Promise<void> {
  const waiting = `select count(distinct pid)::int as count from pg_locks
                    where not granted and pid <> pg_backend_pid()`
  await expect.poll(async () => (await t.sql<{ count: number }>(waiting))[0]?.count).toBe(count)
}

/** Runs `works`, in this order, against the locks that `hold` takes. */
async function inOrder<T>(hold: string, works: readonly (() => Promise<T>)[]) {
  await t.sql('begin')
  await t.sql(hold)
  const running: Promise<T>[] = []
  for (const work of works) {
    running.push(work())
    await untilWaiting(running.length)
  }
  await t.sql('commit')
  return Promise.all(running)
}

test('a disabled operator fails every authentication, and its sessions stay revoked', {
  tags: ['slow'],
}, async () => {
  const ana = await developer()
  const disabled = await apply(owner, change('disable', ana))
  expect(disabled).toMatchObject({
    kind: 'operator.disable',
    disabledAtMicros: t.system.nowMicros(),
    authorizationRevision: 2n,
    replayed: false,
  })
  const enabled = await apply(owner, change('enable', ana))
  expect(enabled).toMatchObject({ disabledAtMicros: null, authorizationRevision: 3n })
  expect(await rejectionCode(authenticateLogin(t, ana))).toBe(AUTHENTICATION_FAILED)
  expect(await rejectionCode(refreshOf(ana))).toBe(AUTHENTICATION_FAILED)
  expect((await t.audit()).slice(-2)).toEqual(['operator.disable', 'operator.enable'])
  const records = await t.sql(
    `select actor_operator_id as actor, subject, session_id, operation_id
       from service_platform_audit where operation = 'operator.disable'`,
  )
  expect(records).toEqual([
    {
      actor: idOf(owner),
      subject: idOf(ana),
      session_id: owner.session.sessionId,
      operation_id: disabled.operationId,
    },
  ])
})

test('an exact repeat gets the first outcome, regardless of later changes', async () => {
  const ana = await developer()
  const given = change('disable', ana)
  const first = await apply(owner, given)
  await apply(owner, change('enable', ana))
  t.system.advance(1_000)
  expect(await apply(owner, given)).toEqual({ ...first, replayed: true })
  const record = (await listOperators(t.identity, await authenticateLogin(t, owner), PAGE)).items[0]
  expect(record).toMatchObject({ operatorId: idOf(ana), disabledAtMicros: null })
})

test('an Operation ID that belongs to another request is a conflict', async () => {
  const [ana, bo, other] = [await developer(), await developer(), await anotherOwner()]
  const given = change('disable', ana)
  await apply(owner, given)
  const changedAtMicros = given.changedAtMicros + 1n
  for (const [by, changed] of [
    [owner, { ...given, operatorId: idOf(bo) }],
    [owner, { ...given, verb: 'enable' as const }],
    [owner, { ...given, changedAtMicros }],
    [other, given],
  ] as const) {
    expect(await rejectionCode(apply(by, changed))).toBe('PLATFORM_CONFLICT')
  }
})

test('an operator that is in the state already stays as it is', async () => {
  const ana = await developer()
  const first = await apply(owner, change('disable', ana))
  t.system.advance(1_000)
  const records = await t.audit()
  const second = await apply(owner, change('disable', ana))
  const { disabledAtMicros, authorizationRevision } = first
  expect(second).toMatchObject({ disabledAtMicros, authorizationRevision, replayed: false })
  expect(await t.audit()).toEqual(records)
})

test('the capability is needed at the installation, and the clock within a day', async () => {
  const ana = await developer()
  for (const grant of [
    { scope: ENVIRONMENT, capabilities: CAPABILITIES },
    { scope: INSTALLATION, capabilities: everythingBut('operators:manage') },
  ]) {
    const by = await operatorWith(t, grant)
    const actor = await authenticateLogin(t, by)
    expect(await rejectionCode(apply(by, change('disable', ana)))).toBe('PLATFORM_ACCESS_DENIED')
    expect(await rejectionCode(listOperators(t.identity, actor, PAGE))).toBe(
      'PLATFORM_ACCESS_DENIED',
    )
    const sessions = listOperatorSessions(t.identity, actor, { operatorId: idOf(ana), ...PAGE })
    expect(await rejectionCode(sessions)).toBe('PLATFORM_ACCESS_DENIED')
  }
  const late = { changedAtMicros: t.system.nowMicros() - DAY_MICROS - 1n }
  expect(await rejectionCode(apply(owner, change('disable', ana, late)))).toBe(
    'PLATFORM_REQUEST_INVALID',
  )
  const unknown = { operatorId: t.system.ids.make('opr') }
  expect(await rejectionCode(apply(owner, change('disable', ana, unknown)))).toBe(
    'PLATFORM_NOT_FOUND',
  )
})

describe('the last owner', () => {
  test('the last owner cannot be disabled, not even by itself', async () => {
    const halfOwner = { scope: ENVIRONMENT, capabilities: CAPABILITIES }
    await operatorWith(t, halfOwner)
    expect(await rejectionCode(apply(owner, change('disable', owner)))).toBe('PLATFORM_CONFLICT')
    const other = await anotherOwner()
    await apply(owner, change('disable', other))
    expect(await rejectionCode(apply(owner, change('disable', owner)))).toBe('PLATFORM_CONFLICT')
    await apply(owner, change('enable', other))
    await apply(owner, change('disable', owner))
    expect(await rejectionCode(authenticateLogin(t, owner))).toBe(AUTHENTICATION_FAILED)
  })

  test.each([
    ['each disables itself', false, 'PLATFORM_CONFLICT'],
    ['each disables the other', true, AUTHENTICATION_FAILED],
  ])(
    'one owner remains if two are disabled at once: %s',
    { tags: ['slow'] },
    async (_, crossed, loss) => {
      const other = await anotherOwner()
      const servers = [t.identity, t.another()]
      const works = [owner, other].map((by, i) => {
        const target = crossed === (i === 0) ? other : owner
        return () => rejectionCode(apply(by, change('disable', target), servers[i]))
      })
      const hold = 'select 1 from service_operators for update'
      expect((await inOrder(hold, works)).toSorted()).toEqual([loss, 'none'].toSorted())
      const enabled = await t.sql(
        'select 1 from service_operators where disabled_at_micros is null',
      )
      expect(enabled).toHaveLength(1)
    },
  )
})

describe('disabling at the same time', () => {
  const noneAlive = async (operator: Login) => {
    await apply(owner, change('enable', operator))
    const alive = `select 1 from service_operator_sessions
                    where operator_id = $1 and revoked_at_micros is null`
    expect(await t.sql(alive, [idOf(operator)])).toEqual([])
  }

  test.each(['first', 'second'])(
    'disabling with a refresh that comes %s leaves no session',
    { tags: ['slow'] },
    async (order) => {
      const ana = await developer()
      const disable = () => rejectionCode(apply(owner, change('disable', ana)))
      const works = [() => rejectionCode(refreshOf(ana)), disable]
      const hold = `select 1 from service_operator_sessions
                   where operator_id = '${idOf(ana)}' for update`
      const results = await inOrder(hold, order === 'first' ? works : works.toReversed())
      expect(results).toContain('none')
      await noneAlive(ana)
    },
  )

  test('disabling with many refreshes at once leaves no valid token', {
    tags: ['slow'],
  }, async () => {
    for (let round = 0; round < 8; round++) {
      const ana = await developer()
      const [refreshed] = await Promise.allSettled([
        refreshOf(ana),
        apply(owner, change('disable', ana), t.another()),
      ])
      const last = refreshed.status === 'fulfilled' ? refreshed.value : ana
      await noneAlive(ana)
      expect(await rejectionCode(authenticateLogin(t, last))).toBe(AUTHENTICATION_FAILED)
      expect(await rejectionCode(refreshOf(last))).toBe(AUTHENTICATION_FAILED)
    }
  })
})

test('an external login at the same time leaves no session behind', {
  tags: ['slow'],
}, async () => {
  const external = await externalLogins()
  try {
    const { identity } = external
    const token = await external.token({ sub: 'ana' })
    const login = (code?: string) =>
      external.logIn(code === undefined ? {} : { code }, { token }).then(({ status }) => status)
    expect(await login(await external.invite())).toBe(201)
    const actor = await identity.authenticate(external.owner.accessToken)
    const operatorId = (await listOperators(identity, actor, PAGE)).items[0]!.operatorId
    // What `disable` does, as far as the login can see it, under a lock that the test holds.
    await external.sql('begin')
    await external.sql(
      'update service_operators set disabled_at_micros = 1 where operator_id = $1',
      [operatorId],
    )
    const loggingIn = login()
    const waiting = 'select 1 from pg_locks where not granted and pid <> pg_backend_pid()'
    await expect.poll(async () => (await external.sql(waiting)).length).toBe(1)
    await external.sql('commit')
    expect(await loggingIn).toBe(401)
    const sessions = 'select 1 from service_operator_sessions where operator_id = $1'
    expect(await external.sql(sessions, [operatorId])).toHaveLength(1)
  } finally {
    await external.dispose()
  }
})

test('an invitation of a disabled operator cannot be exchanged', async () => {
  const other = await anotherOwner()
  const request = { operatorName: 'Back', role: 'owner' as const, scope: INSTALLATION }
  const given = { ...request, operationId: null, requestId: null }
  const { code } = await issueInvitation(t.identity, await authenticateLogin(t, other), given)
  const input = { code: code!.reveal(), deviceName: null, operatorName: null, requestId: null }
  await apply(owner, change('disable', other))
  expect(await rejectionCode(exchange(t.identity, input))).toBe(AUTHENTICATION_FAILED)
  await apply(owner, change('enable', other))
  expect(await rejectionCode(exchange(t.identity, input))).toBe('none')
})

const PAGE = { after: null, limit: 100 }

test('operators and their sessions are listed in pages, newest first', async () => {
  t.system.advance(1)
  const ana = await developer()
  t.system.advance(61_000)
  await authenticateLogin(t, ana)
  const actor = await authenticateLogin(t, owner)
  await t.sql(
    `insert into service_operator_identities
       (provider_id, subject_digest, operator_id, linked_at_micros) values ('corp', $1, $2, 7)`,
    [Buffer.alloc(32), idOf(ana)],
  )
  const first = await listOperators(t.identity, actor, { after: null, limit: 1 })
  expect(first).toEqual({
    items: [
      {
        operatorId: idOf(ana),
        operatorName: ana.operator.operatorName,
        createdAtMicros: ana.operator.createdAtMicros,
        disabledAtMicros: null,
        lastUsedAtMicros: t.system.nowMicros(),
        grants: ana.grants,
        identities: [{ providerId: 'corp', linkedAtMicros: 7n }],
      },
    ],
    next: idOf(ana),
  })
  const second = await listOperators(t.identity, actor, { after: idOf(ana), limit: 1 })
  expect(second.items.map(({ operatorId }) => operatorId)).toEqual([idOf(owner)])
  expect(second.next).toBeNull()

  const page = { operatorId: idOf(ana), ...PAGE }
  const { sessions } = await listOperatorSessions(t.identity, actor, page)
  expect(sessions.map(({ sessionId }) => sessionId)).toEqual([ana.session.sessionId])
  const unknown = { ...page, operatorId: t.system.ids.make('opr') }
  expect(await rejectionCode(listOperatorSessions(t.identity, actor, unknown))).toBe(
    'PLATFORM_NOT_FOUND',
  )
})
