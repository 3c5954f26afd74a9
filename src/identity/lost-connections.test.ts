import { afterAll, beforeAll, expect, test } from 'vitest'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import {
  type Change as Attempted,
  type LossInjector,
  lastAudit,
  lossInjector,
  recordsSince,
} from '../../testing/losses/loss-injector.ts'
import {
  authenticateLogin,
  ENVIRONMENT,
  firstOwner,
  operatorWith,
} from '../../testing/operators.ts'
import type { Actor } from './actor.ts'
import { deliverProductAudit } from './audit.ts'
import { exchange } from './exchange.ts'
import { readInvitationOperation } from './invitation-operations.ts'
import { issueInvitation, revokeInvitation } from './invitations.ts'
import { changeOperator } from './operators.ts'
import { refresh, revokeSession } from './sessions.ts'

/*
 * Goal: if the connection is lost at any message of the protocol, the answer tells the truth and
 * the audit has exactly what the tables have. Method: each change runs once whole, to count its
 * messages, and then once for each message and point, on a connection of its own.
 */

let t: TestIdentity
let injector: LossInjector
let owner: Actor

beforeAll(async () => {
  t = await testIdentity()
  owner = await authenticateLogin(t, await firstOwner(t))
  injector = await lossInjector(t)
})

afterAll(async () => {
  await injector.close()
  await t.dispose()
})

/** A prepared change that has not run yet. */
interface Attempt {
  readonly run: Attempted
  /** Returns whether the change is stored. Asserts that it is not stored in part. */
  stored(): Promise<boolean>
}

interface Change {
  readonly name: string
  /** Audit operations that one change records, sorted. */
  readonly records: readonly string[]
  prepare(): Promise<Attempt>
}

const count = async (sql: string, ...parameters: unknown[]): Promise<number> =>
  (await t.sql(sql, parameters)).length

const input = { deviceName: null, operatorName: null, requestId: null }
const request = { operatorName: 'Grace', role: 'developer' as const, scope: ENVIRONMENT }

async function issued() {
  const operationId = t.system.ids.make('opn')
  const given = { ...request, operationId, requestId: null }
  const { invitation, code } = await issueInvitation(t.identity, owner, given)
  return { ...invitation, given, code: code!.reveal() }
}

const stateOf = async (invitationId: string): Promise<string> =>
  (
    await t.sql<{ state: string }>(
      'select state from service_operator_invitations where invitation_id = $1',
      [invitationId],
    )
  )[0]?.state ?? 'absent'

const UNCERTAIN = 'PLATFORM_IDENTITY_RESULT_UNCERTAIN'

const CHANGES: readonly Change[] = [
  {
    name: 'exchange',
    records: ['invitation.consume', 'session.create'],
    async prepare() {
      const { invitationId, code } = await issued()
      const before = await count('select 1 from service_operators')
      return {
        run: (core) => exchange(core, { ...input, code }),
        async stored() {
          const consumed = (await stateOf(invitationId)) === 'consumed'
          const operators = (await count('select 1 from service_operators')) - before
          expect(operators).toBe(consumed ? 1 : 0)
          if (!consumed) await exchange(t.identity, { ...input, code })
          return consumed
        },
      }
    },
  },
  {
    name: 'refresh',
    records: ['session.refresh'],
    async prepare() {
      const login = await operatorWith(t)
      const given = { refreshToken: login.refreshToken!.reveal(), requestId: null }
      return {
        run: (core) => refresh(core, given),
        // The old token is valid exactly where the rotation is not stored.
        stored: async () => (await rejectionCode(authenticateLogin(t, login))) !== 'none',
      }
    },
  },
  {
    name: 'reuse of a refresh token',
    records: ['session.reuse_detected'],
    // The caller is rejected in any case; whether the revocation is stored is not known.
    async prepare() {
      const login = await operatorWith(t)
      const given = { refreshToken: login.refreshToken!.reveal(), requestId: null }
      const second = await refresh(t.identity, given)
      return {
        run: (core) => refresh(core, given),
        stored: async () => (await rejectionCode(authenticateLogin(t, second))) !== 'none',
      }
    },
  },
  {
    name: 'revocation of a session',
    records: ['session.revoke'],
    async prepare() {
      const login = await operatorWith(t)
      const actor = await authenticateLogin(t, login)
      const given = { sessionId: login.session.sessionId, requestId: null }
      return {
        run: (core) => revokeSession(core, actor, given),
        stored: async () => (await rejectionCode(authenticateLogin(t, login))) !== 'none',
      }
    },
  },
  {
    name: 'disabling of an operator',
    records: ['operator.disable'],
    async prepare() {
      const login = await operatorWith(t)
      const { operatorId } = login.operator
      const operationId = t.system.ids.make('opn')
      const given = { verb: 'disable' as const, operatorId, operationId, requestId: null }
      const changedAtMicros = t.system.nowMicros()
      return {
        run: (core) => changeOperator(core, owner, { ...given, changedAtMicros }),
        async stored() {
          const ended: [string, string][] = [
            ['service_operators', 'disabled_at_micros'],
            ['service_operator_sessions', 'revoked_at_micros'],
          ]
          const found = []
          for (const [table, column] of ended) {
            const where = `where operator_id = $1 and ${column} is not null`
            found.push(await count(`select 1 from ${table} ${where}`, operatorId))
          }
          const sql = 'select 1 from service_operator_operations where operation_id = $1'
          found.push(await count(sql, operationId))
          expect([
            [0, 0, 0],
            [1, 1, 1],
          ]).toContainEqual(found)
          return found[0] === 1
        },
      }
    },
  },
  {
    name: 'creation of an invitation',
    records: ['invitation.create'],
    async prepare() {
      const operationId = t.system.ids.make('opn')
      const given = { ...request, operationId, requestId: null }
      const before = await count('select 1 from service_operator_invitations')
      return {
        run: (core) => issueInvitation({ ...core, workloads: [] }, owner, given),
        async stored() {
          // 404 proves that there was no commit (contract/management.md, Creation of an
          // invitation).
          const look = await rejectionCode(readInvitationOperation(t.identity, owner, operationId))
          expect(['none', 'PLATFORM_NOT_FOUND']).toContain(look)
          const after = await count('select 1 from service_operator_invitations')
          expect(after - before).toBe(look === 'none' ? 1 : 0)
          return look === 'none'
        },
      }
    },
  },
  {
    name: 'revocation of an invitation',
    records: ['invitation.revoke'],
    async prepare() {
      const { invitationId } = await issued()
      return {
        run: (core) => revokeInvitation(core, owner, { invitationId, requestId: null }),
        stored: async () => (await stateOf(invitationId)) === 'revoked',
      }
    },
  },
]

test.each(CHANGES)(
  '$name: a lost connection never causes a false response',
  { tags: ['slow'] },
  async (change) => {
    const seen = new Set<string>()
    for (const loss of await injector.lossesOf((await change.prepare()).run)) {
      const attempt = await change.prepare()
      t.system.advance(1)
      const last = await lastAudit(t)
      const code = await injector.inject(attempt.run, loss)
      const records = await recordsSince(t, last)
      const stored = await attempt.stored()
      expect(records, loss.where).toEqual(stored ? change.records : [])
      expect(code, loss.where).toBe(loss.last ? UNCERTAIN : 'PLATFORM_UNAVAILABLE')
      // The result is uncertain only where both outcomes are possible.
      expect(stored, loss.where).toBe(loss.last && loss.point !== 'before')
      seen.add(`${code} ${stored}`)
    }
    expect([...seen].sort()).toEqual([
      `${UNCERTAIN} false`,
      `${UNCERTAIN} true`,
      'PLATFORM_UNAVAILABLE false',
    ])
  },
)

test('a replay or a repeated revocation is unavailable at worst, never uncertain', {
  tags: ['slow'],
}, async () => {
  const { given, invitationId } = await issued()
  await issued()
  const revoked = await issued()
  const revocation = { invitationId: revoked.invitationId, requestId: null }
  await revokeInvitation(t.identity, owner, revocation)
  const repeated: readonly Attempted[] = [
    (core) => issueInvitation({ ...core, workloads: [] }, owner, given),
    (core) => revokeInvitation(core, owner, revocation),
  ]
  for (const run of repeated) {
    const last = await lastAudit(t)
    for (const loss of await injector.lossesOf(run)) {
      expect(await injector.inject(run, loss), loss.where).toBe('PLATFORM_UNAVAILABLE')
    }
    expect(await recordsSince(t, last)).toEqual([])
  }
  expect(await stateOf(invitationId)).toBe('pending')
})

test('an audit record of the Product is delivered until it is known to be stored', async () => {
  const record = (): Parameters<typeof deliverProductAudit>[1] => ({
    auditId: t.system.ids.make('aud'),
    operation: 'product.channel.promote',
    outcome: 'succeeded',
    actor: owner.operatorId,
    sessionId: owner.sessionId,
    credentialId: null,
    subject: 'production',
    atMicros: t.system.nowMicros(),
    requestId: null,
    operationId: null,
    purpose: null,
  })
  for (const loss of await injector.lossesOf((core) => deliverProductAudit(core, record()))) {
    t.system.advance(1)
    const last = await lastAudit(t)
    const delivered = record()
    const code = await injector.inject((core) => deliverProductAudit(core, delivered), loss)
    expect(code, loss.where).toBe('PLATFORM_UNAVAILABLE')
    await deliverProductAudit(t.identity, delivered)
    expect(await recordsSince(t, last), loss.where).toEqual(['product.channel.promote'])
  }
})
