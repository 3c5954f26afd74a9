import { afterEach, beforeEach, expect, test } from 'vitest'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import {
  authenticateLogin,
  ENVIRONMENT,
  everythingBut,
  firstOwner,
  OTHER_ENVIRONMENT,
  OTHER_PROJECT,
  operatorWith,
  PROJECT,
} from '../../testing/operators.ts'
import { CAPABILITIES, capabilitiesOfRole, ROLES } from '../value/capabilities.ts'
import { INSTALLATION, type Scope } from '../value/scope.ts'
import type { Actor } from './actor.ts'
import { exchange } from './exchange.ts'
import { readInvitationOperation } from './invitation-operations.ts'
import { type InvitationInput, issueInvitation, revokeInvitation } from './invitations.ts'
import type { Login } from './sessions.ts'

const LIFETIME_MS = 1_800_000
let t: TestIdentity
let ownerLogin: Login
let owner: Actor

beforeEach(async () => {
  t = await testIdentity()
  ownerLogin = await firstOwner(t)
  owner = await authenticateLogin(t, ownerLogin)
})

afterEach(async () => {
  await t.dispose()
})

function input(given: Partial<InvitationInput> = {}): InvitationInput {
  return {
    operatorName: 'Grace',
    role: 'developer',
    scope: ENVIRONMENT,
    operationId: null,
    requestId: null,
    ...given,
  }
}

const issue = (actor: Actor, given: Partial<InvitationInput> = {}) =>
  issueInvitation(t.identity, actor, input(given))

const use = (code: string) =>
  exchange(t.identity, { code, deviceName: null, operatorName: null, requestId: null })

const revoke = (actor: Actor, { invitation }: Awaited<ReturnType<typeof issue>>) =>
  revokeInvitation(t.identity, actor, { invitationId: invitation.invitationId, requestId: null })

const rows = () =>
  t.sql('select 1 from service_operator_invitations where kind = $1', ['delegated'])

test('an invitation carries scope, name and the expanded role, for 30 minutes', {
  tags: ['slow'],
}, async () => {
  for (const scope of [INSTALLATION, PROJECT, ENVIRONMENT]) {
    for (const role of ROLES) {
      const { invitation, code } = await issue(owner, { scope, role })
      expect(invitation).toMatchObject({ scope, role, operatorName: 'Grace', state: 'pending' })
      expect(invitation.capabilities).toEqual(capabilitiesOfRole(role))
      expect(invitation.expiresAtMicros - invitation.createdAtMicros).toBe(1_800_000_000n)
      const login = await use(code!.reveal())
      expect(login.operator.operatorName).toBe('Grace')
      expect(login.grants).toEqual([
        { scope, capabilities: capabilitiesOfRole(role), source: 'invitation' },
      ])
    }
  }
})

test('the creator needs operators:manage at the scope', async () => {
  const scoped = await authenticateLogin(
    t,
    await operatorWith(t, { scope: PROJECT, capabilities: CAPABILITIES }),
  )
  const expected: readonly [Scope, string][] = [
    [INSTALLATION, 'PLATFORM_ACCESS_DENIED'],
    [PROJECT, 'none'],
    [ENVIRONMENT, 'none'],
    [OTHER_PROJECT, 'PLATFORM_ACCESS_DENIED'],
  ]
  for (const [scope, code] of expected) {
    expect(await rejectionCode(issue(scoped, { scope, role: 'observer' }))).toBe(code)
  }
  const capabilities = everythingBut('operators:manage')
  const without = await authenticateLogin(
    t,
    await operatorWith(t, { scope: INSTALLATION, capabilities }),
  )
  expect(await rejectionCode(issue(without, { role: 'observer' }))).toBe('PLATFORM_ACCESS_DENIED')
  expect(await rows()).toHaveLength(2)
})

test('the creator cannot grant a capability that it does not hold at the scope', {
  tags: ['slow'],
}, async () => {
  for (const role of ROLES) {
    for (const missing of capabilitiesOfRole(role)) {
      const actor = await authenticateLogin(
        t,
        await operatorWith(
          t,
          { scope: ENVIRONMENT, capabilities: everythingBut(missing) },
          { scope: OTHER_ENVIRONMENT, capabilities: CAPABILITIES },
        ),
      )
      expect(await rejectionCode(issue(actor, { role }))).toBe('PLATFORM_ACCESS_DENIED')
    }
  }
  expect(await rows()).toEqual([])
})

test('several grants together may authorize the creator', async () => {
  const actor = await authenticateLogin(
    t,
    await operatorWith(
      t,
      { scope: INSTALLATION, capabilities: ['operators:manage'] },
      { scope: PROJECT, capabilities: capabilitiesOfRole('developer') },
    ),
  )
  expect(await rejectionCode(issue(actor))).toBe('none')
  expect(await rejectionCode(issue(actor, { scope: OTHER_PROJECT }))).toBe('PLATFORM_ACCESS_DENIED')
})

test('an exact replay returns the same invitation without its code', async () => {
  const operationId = t.system.ids.make('opn')
  const first = await issue(owner, { operationId })
  t.system.advance(60_000)
  const second = await issue(owner, { operationId })
  expect(first.code).not.toBeNull()
  expect(second.code).toBeNull()
  expect(second.invitation).toEqual({
    ...first.invitation,
    codeDigest: second.invitation.codeDigest,
  })
  expect((await t.audit()).filter((each) => each === 'invitation.create')).toHaveLength(1)
  expect(await rows()).toHaveLength(1)
})

test('an Operation ID with any other content, or by another owner, is reused', async () => {
  const operationId = t.system.ids.make('opn')
  await issue(owner, { operationId })
  const other = await authenticateLogin(
    t,
    await operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES }),
  )
  const attempts = [
    issue(owner, { operationId, operatorName: 'Grace H' }),
    issue(owner, { operationId, role: 'observer' }),
    issue(owner, { operationId, scope: PROJECT }),
    issue(owner, { operationId, scope: OTHER_ENVIRONMENT }),
    issue(other, { operationId }),
  ]
  for (const code of await Promise.all(attempts.map(rejectionCode))) {
    expect(code).toBe('PLATFORM_INVITATION_OPERATION_REUSED')
  }
  expect(await rows()).toHaveLength(1)
})

test('a replay requires the current capabilities of the creator', async () => {
  const operationId = t.system.ids.make('opn')
  const login = await operatorWith(t, { scope: PROJECT, capabilities: CAPABILITIES })
  await issue(await authenticateLogin(t, login), { operationId })
  await t.sql('delete from service_operator_grants where operator_id = $1', [
    login.operator.operatorId,
  ])
  const later = await authenticateLogin(t, login)
  expect(await rejectionCode(issue(later, { operationId }))).toBe('PLATFORM_ACCESS_DENIED')
  expect(await rejectionCode(readInvitationOperation(t.identity, later, operationId))).toBe(
    'PLATFORM_ACCESS_DENIED',
  )
})

test('every request without an Operation ID creates an invitation', async () => {
  const [a, b] = [await issue(owner), await issue(owner)]
  expect(a.invitation.invitationId).not.toBe(b.invitation.invitationId)
  expect(await t.sql('select 1 from service_operator_invitation_operations')).toEqual([])
})

test('one of sixteen concurrent issuances with one Operation ID reveals the code', {
  tags: ['slow'],
}, async () => {
  const servers = [t.identity, t.another()]
  // Opens connections first, so that the transactions overlap.
  await Promise.all(
    servers.flatMap(({ database }) =>
      Array.from({ length: 8 }, () => database.rows('select pg_sleep(0.05)')),
    ),
  )
  for (let round = 1; round <= 5; round++) {
    const operationId = t.system.ids.make('opn')
    const issued = await Promise.all(
      Array.from({ length: 16 }, (_, i) =>
        issueInvitation(servers[i % 2]!, owner, input({ operationId })),
      ),
    )
    expect(issued.filter(({ code }) => code !== null)).toHaveLength(1)
    expect(new Set(issued.map(({ invitation }) => invitation.invitationId)).size).toBe(1)
    expect(await rows()).toHaveLength(round)
    const created = (await t.audit()).filter((each) => each === 'invitation.create')
    expect(created).toHaveLength(round)
  }
})

test('the look-up follows the invitation through its states', async () => {
  const look = (id: Parameters<typeof readInvitationOperation>[2]) =>
    readInvitationOperation(t.identity, owner, id)
  const issued = async () => {
    const operationId = t.system.ids.make('opn')
    return { ...(await issue(owner, { operationId })), operationId }
  }
  const [used, revoked, left] = [await issued(), await issued(), await issued()]
  expect((await look(used.operationId)).state).toBe('pending')
  await use(used.code!.reveal())
  await revoke(owner, revoked)
  t.system.advance(LIFETIME_MS - 1)
  expect((await look(left.operationId)).state).toBe('pending')
  t.system.advance(1)
  expect((await look(left.operationId)).state).toBe('expired')
  expect((await look(used.operationId)).state).toBe('consumed')
  expect((await look(revoked.operationId)).state).toBe('revoked')
  expect(await rejectionCode(use(left.code!.reveal()))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await rejectionCode(look(t.system.ids.make('opn')))).toBe('PLATFORM_NOT_FOUND')
})

test('a revoked invitation cannot be exchanged, and revoking again changes nothing', async () => {
  const issued = await issue(owner)
  await revoke(owner, issued)
  await revoke(owner, issued)
  expect(await rejectionCode(use(issued.code!.reveal()))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect((await t.audit()).filter((each) => each === 'invitation.revoke')).toHaveLength(1)
})

test('a consumed invitation cannot be revoked, and its operator stays', async () => {
  const issued = await issue(owner)
  const login = await use(issued.code!.reveal())
  expect(await rejectionCode(revoke(owner, issued))).toBe('PLATFORM_CONFLICT')
  expect(await rejectionCode(authenticateLogin(t, login))).toBe('none')
})

test('an expired invitation can still be revoked', async () => {
  const issued = await issue(owner)
  t.system.advance(LIFETIME_MS)
  expect(await rejectionCode(revoke(owner, issued))).toBe('none')
})

test('an operator without operators:manage cannot learn which IDs exist', async () => {
  const operationId = t.system.ids.make('opn')
  const issued = await issue(owner, { operationId })
  const capabilities = everythingBut('operators:manage')
  const weak = await authenticateLogin(
    t,
    await operatorWith(t, { scope: INSTALLATION, capabilities }),
  )
  for (const id of [operationId, t.system.ids.make('opn')]) {
    const look = readInvitationOperation(t.identity, weak, id)
    expect(await rejectionCode(look)).toBe('PLATFORM_ACCESS_DENIED')
  }
  for (const invitationId of [issued.invitation.invitationId, t.system.ids.make('opi')]) {
    const work = revokeInvitation(t.identity, weak, { invitationId, requestId: null })
    expect(await rejectionCode(work)).toBe('PLATFORM_ACCESS_DENIED')
  }
})

test('look-up and revocation need operators:manage at the stored scope', async () => {
  const operationId = t.system.ids.make('opn')
  const issued = await issue(owner, { operationId })
  const cases: readonly [Scope, string][] = [
    [OTHER_ENVIRONMENT, 'PLATFORM_ACCESS_DENIED'],
    [OTHER_PROJECT, 'PLATFORM_ACCESS_DENIED'],
    [ENVIRONMENT, 'none'],
    [PROJECT, 'none'],
  ]
  for (const [scope, code] of cases) {
    const login = await operatorWith(t, { scope, capabilities: ['operators:manage'] })
    const actor = await authenticateLogin(t, login)
    expect(await rejectionCode(readInvitationOperation(t.identity, actor, operationId))).toBe(code)
    expect(await rejectionCode(revoke(actor, issued))).toBe(code)
  }
})

test('an invitation is audited with its creator, session and operation', async () => {
  const operationId = t.system.ids.make('opn')
  const requestId = t.system.ids.make('req')
  const { invitation } = await issue(owner, { operationId, requestId })
  const found = await t.sql(
    `select outcome, actor_operator_id, subject, request_id, session_id, invitation_id,
            operation_id
       from service_platform_audit where operation = 'invitation.create'`,
  )
  expect(found).toEqual([
    {
      outcome: 'succeeded',
      actor_operator_id: ownerLogin.operator.operatorId,
      subject: invitation.invitationId,
      request_id: requestId,
      session_id: ownerLogin.session.sessionId,
      invitation_id: invitation.invitationId,
      operation_id: operationId,
    },
  ])
})

test('an operation stores no code and no name, only the fingerprint', async () => {
  const operationId = t.system.ids.make('opn')
  const { code } = await issue(owner, { operationId })
  const [row] = await t.sql<{ line: string }>(
    'select row_to_json(x)::text as line from service_operator_invitation_operations x',
  )
  expect(row?.line).not.toContain('Grace')
  expect(row?.line).not.toContain(code!.reveal().slice(-43))
})
