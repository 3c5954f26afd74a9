import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../build/testing/identity.ts'
import {
  actorOf,
  codeOf,
  ENVIRONMENT,
  firstOwner,
  operatorWith,
} from '../../build/testing/operators.ts'
import {
  type CutPoint,
  type PostgresProxy,
  postgresProxy,
} from '../../build/testing/postgres-proxy.ts'
import { Database } from '../database/database.ts'
import { Secret } from '../value/secret.ts'
import type { Actor } from './actor.ts'
import { recoverBootstrap } from './bootstrap.ts'
import { openBootstrapFiles } from './bootstrap-files.ts'
import type { IdentityCore } from './core.ts'
import { exchange } from './exchange.ts'
import { readInvitationOperation } from './invitation-operations.ts'
import { issueInvitation, revokeInvitation } from './invitations.ts'
import { recoverOwner } from './owner-recovery.ts'
import { refresh, revokeSession } from './sessions.ts'

/*
 * Goal: whatever message of the protocol the connection is lost at, the answer tells the truth and
 * the audit has exactly what the tables have. Method: each change runs once whole, to count its
 * messages, and then once for each message and point, on a connection of its own.
 */

let t: TestIdentity
let proxy: PostgresProxy
let owner: Actor

beforeAll(async () => {
  t = await testIdentity()
  owner = await actorOf(t, await firstOwner(t))
  proxy = await postgresProxy(t.url)
})

afterAll(async () => {
  await proxy.close()
  await t.dispose()
})

/** One change, prepared so that nothing of it has happened yet. */
interface Attempt {
  run(core: IdentityCore): Promise<unknown>
  /** Whether it is stored; asserts that nothing is stored in part. */
  stored(): Promise<boolean>
}

interface Change {
  readonly name: string
  /** Audit operations that one change records, sorted. */
  readonly records: readonly string[]
  /** What it answers where its outcome is unknown. */
  readonly uncertain: string
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
    uncertain: UNCERTAIN,
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
    uncertain: UNCERTAIN,
    async prepare() {
      const login = await operatorWith(t)
      const given = { refreshToken: login.refreshToken.reveal(), requestId: null }
      return {
        run: (core) => refresh(core, given),
        // The old token works exactly where the rotation is not stored.
        stored: async () => (await codeOf(actorOf(t, login))) !== 'none',
      }
    },
  },
  {
    name: 'reuse of a refresh token',
    records: ['session.reuse_detected'],
    // To the caller it is a refusal in any case; whether the revocation stands is not known.
    uncertain: UNCERTAIN,
    async prepare() {
      const login = await operatorWith(t)
      const given = { refreshToken: login.refreshToken.reveal(), requestId: null }
      const second = await refresh(t.identity, given)
      return {
        run: (core) => refresh(core, given),
        stored: async () => (await codeOf(actorOf(t, second))) !== 'none',
      }
    },
  },
  {
    name: 'revocation of a session',
    records: ['session.revoke'],
    uncertain: UNCERTAIN,
    async prepare() {
      const login = await operatorWith(t)
      const actor = await actorOf(t, login)
      const given = { sessionId: login.session.sessionId, requestId: null }
      return {
        run: (core) => revokeSession(core, actor, given),
        stored: async () => (await codeOf(actorOf(t, login))) !== 'none',
      }
    },
  },
  {
    name: 'creation of an invitation',
    records: ['invitation.create'],
    uncertain: UNCERTAIN,
    async prepare() {
      const operationId = t.system.ids.make('opn')
      const given = { ...request, operationId, requestId: null }
      const before = await count('select 1 from service_operator_invitations')
      return {
        run: (core) => issueInvitation(core, owner, given),
        async stored() {
          // What the contract tells a client to do: 404 proves that there was no commit.
          const look = await codeOf(readInvitationOperation(t.identity, owner, operationId))
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
    uncertain: UNCERTAIN,
    async prepare() {
      const { invitationId } = await issued()
      return {
        run: (core) => revokeInvitation(core, owner, { invitationId, requestId: null }),
        stored: async () => (await stateOf(invitationId)) === 'revoked',
      }
    },
  },
]

const POINTS: readonly CutPoint[] = ['before', 'after', 'within-answer']

/** Runs `work` on one fresh connection through the proxy, with its settings made. */
async function throughProxy<T>(work: (core: IdentityCore) => Promise<T>, arm: () => void) {
  const { system, credentials } = t.identity
  const database = new Database({ url: new Secret(proxy.url), connectionsMax: 1 })
  try {
    await database.rows('select 1')
    arm()
    return await work({ database, system, credentials })
  } finally {
    await database.close()
  }
}

/** Types of the messages that `work` sends when nothing is lost; its refusal is none of ours. */
async function messagesOf(work: Attempt['run']): Promise<readonly string[]> {
  let stop: () => readonly string[] = () => []
  return throughProxy(
    async (core) => {
      await codeOf(work(core))
      return stop()
    },
    () => {
      stop = proxy.record()
    },
  )
}

/** Audit operations behind `auditId`, sorted. */
async function recordsSince(auditId: string): Promise<string[]> {
  const rows = await t.sql<{ operation: string }>(
    'select operation from service_platform_audit where audit_id > $1 order by operation',
    [auditId],
  )
  return rows.map((row) => row.operation)
}

const lastAudit = async (): Promise<string> =>
  (await t.sql<{ last: string }>('select max(audit_id) as last from service_platform_audit'))[0]!
    .last

test.each(CHANGES)(
  '$name: a lost connection is never a false answer',
  async (change) => {
    const messages = await messagesOf((await change.prepare()).run)
    const total = messages.length
    const commit = messages.lastIndexOf('Q') + 1
    expect(commit).toBe(total)
    const seen = new Set<string>()
    for (let number = 1; number <= total; number++) {
      const answered = ['S', 'Q'].includes(messages[number - 1]!)
      for (const point of answered ? POINTS : POINTS.slice(0, 1)) {
        const attempt = await change.prepare()
        t.system.advance(1)
        const last = await lastAudit()
        const code = await codeOf(
          throughProxy(attempt.run, () => proxy.cutAtMessage(number, point)),
        )
        const where = `message ${number} of ${total}, ${point}`
        const records = await recordsSince(last)
        const stored = await attempt.stored()
        expect(records, where).toEqual(stored ? change.records : [])
        expect(code, where).toBe(number === commit ? change.uncertain : 'PLATFORM_UNAVAILABLE')
        // Uncertainty is only where both are possible; here it shows which.
        if (number < commit || point === 'before') expect(stored, where).toBe(false)
        else expect(stored, where).toBe(true)
        seen.add(`${code} ${stored}`)
      }
    }
    expect([...seen].sort()).toEqual([
      `${change.uncertain} false`,
      `${change.uncertain} true`,
      'PLATFORM_UNAVAILABLE false',
    ])
  },
  120_000,
)

test('what changes nothing is unavailable at worst: a replay, a repeated revocation', async () => {
  const { given, invitationId } = await issued()
  await issued()
  const revoked = await issued()
  const revocation = { invitationId: revoked.invitationId, requestId: null }
  await revokeInvitation(t.identity, owner, revocation)
  const repeated: readonly Attempt['run'][] = [
    (core) => issueInvitation(core, owner, given),
    (core) => revokeInvitation(core, owner, revocation),
  ]
  for (const run of repeated) {
    const messages = await messagesOf(run)
    const last = await lastAudit()
    for (let number = 1; number <= messages.length; number++) {
      for (const point of POINTS) {
        const code = await codeOf(throughProxy(run, () => proxy.cutAtMessage(number, point)))
        expect(code).toBe('PLATFORM_UNAVAILABLE')
      }
    }
    expect(await recordsSince(last)).toEqual([])
  }
  expect(await stateOf(invitationId)).toBe('pending')
}, 60_000)

test('an owner recovery that loses its connection is settled by running it again', async () => {
  const files = openBootstrapFiles(t.stateDirectory, 'owner-recovery')
  await everyLoss({
    run: (core) => recoverOwner(core, files),
    again: () => recoverOwner(t.identity, files),
    path: files.path,
    uncertain: 'SERVER_OWNER_RECOVERY_RESULT_UNCERTAIN',
    operation: 'owner.recover',
  })
  const code = readFileSync(files.path, 'utf8').trimEnd()
  expect(await codeOf(exchange(t.identity, { ...input, code }))).toBe('none')
}, 120_000)

test('a bootstrap recovery that loses its connection is settled by running it again', async () => {
  const outer = { t, proxy }
  t = await testIdentity()
  proxy = await postgresProxy(t.url)
  try {
    await t.identity.startup()
    const files = openBootstrapFiles(t.stateDirectory)
    await everyLoss({
      run: (core) => recoverBootstrap(core, files),
      again: () => recoverBootstrap(t.identity, files),
      path: files.path,
      uncertain: 'SERVER_BOOTSTRAP_RECOVERY_RESULT_UNCERTAIN',
      operation: 'bootstrap.recover',
    })
    const code = readFileSync(files.path, 'utf8').trimEnd()
    expect(await codeOf(exchange(t.identity, { ...input, code }))).toBe('none')
  } finally {
    await proxy.close()
    await t.dispose()
    t = outer.t
    proxy = outer.proxy
  }
}, 120_000)

/** Each loss, then the same again undisturbed: the file then holds the one pending code. */
async function everyLoss(recovery: {
  run(core: IdentityCore): Promise<void>
  again(): Promise<void>
  readonly path: string
  readonly uncertain: string
  readonly operation: string
}): Promise<void> {
  const messages = await messagesOf(recovery.run)
  for (let number = 1; number <= messages.length; number++) {
    const answered = ['S', 'Q'].includes(messages[number - 1]!)
    for (const point of answered ? POINTS : POINTS.slice(0, 1)) {
      t.system.advance(1)
      const last = await lastAudit()
      const code = await codeOf(throughProxy(recovery.run, () => proxy.cutAtMessage(number, point)))
      expect(['PLATFORM_UNAVAILABLE', recovery.uncertain]).toContain(code)
      const records = await recordsSince(last)
      if (code === 'PLATFORM_UNAVAILABLE') expect(records).toEqual([])
      else expect([[], [recovery.operation]]).toContainEqual(records)
      t.system.advance(1)
      await recovery.again()
      const pending = await t.sql<{ code_digest: Buffer }>(
        `select code_digest from service_operator_invitations
          where kind = 'bootstrap' and state = 'pending'`,
      )
      const inFile = readFileSync(recovery.path, 'utf8').trimEnd()
      expect(pending.map((row) => row.code_digest)).toEqual([
        t.identity.credentials.digestInvitationCode(inFile),
      ])
      expect(existsSync(`${recovery.path}.next`)).toBe(false)
    }
  }
}
