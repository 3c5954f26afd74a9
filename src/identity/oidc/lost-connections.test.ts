/**
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type LossInjector,
  lastAudit,
  lossInjector,
  recordsSince,
} from '../../../testing/losses/loss-injector.ts'
import {
  AUTHORITY,
  type ExternalLogins,
  externalLogins,
  MANAGED_TOKEN,
  PROJECT,
} from '../../../testing/providers/external-logins.ts'
import type { OperatorId } from '../../value/ids.ts'
import { INSTALLATION } from '../../value/scope.ts'
import { Secret } from '../../value/secret.ts'
import type { IdentityCore } from '../core.ts'
import { issueInvitation } from '../invitations.ts'
import { type ManagedSource, reconcileGrants } from '../managed-grants.ts'
import { DeniedLogins } from './denied-logins.ts'
import { type ExternalCore, type ExternalLoginInput, logInExternally } from './logins.ts'
import type { TokenVerifier } from './tokens.ts'

/*
 * Goal: at whichever message of the protocol the connection is lost, the response tells the truth
 * and the audit has exactly what the tables have. Method: each change runs once whole, to count its
 * messages, and then once for each message, on a connection of its own.
 */

let t: ExternalLogins
let injector: LossInjector
let subjects = 0

beforeAll(async () => {
  t = await externalLogins()
  injector = await lossInjector(t)
})

afterAll(async () => {
  await injector.close()
  await t.dispose()
})

type Change = (core: ExternalCore) => Promise<unknown>
const source: ManagedSource = { enrollmentToken: new Secret(MANAGED_TOKEN), authority: AUTHORITY }
const grants = [
  { scope: { kind: 'project', projectId: PROJECT, environmentId: null }, role: 'developer' },
] as const
const enrollment = (sourceRevision: bigint) => ({
  managedHeader: `Bearer ${MANAGED_TOKEN}`,
  managedEnrollment: { operatorName: 'Managed', sourceRevision, grants },
})

async function login(given: Partial<ExternalLoginInput>): Promise<Change> {
  const token = given.token ?? (await t.token({ sub: `lost-${++subjects}` }))
  const none = { code: null, deviceName: null, managedHeader: null, managedEnrollment: null }
  return (core) => logInExternally(core, { ...none, requestId: null, ...given, token })
}

async function enrolled() {
  const token = await t.token({ sub: `lost-${++subjects}` })
  const change = await login({ token, ...enrollment(1n) })
  const done = (await change(withProvider(t.identity))) as { login: { operator: object } }
  const { operatorId } = done.login.operator as { operatorId: OperatorId }
  return { token, operatorId }
}

function withProvider({ database, system, credentials }: IdentityCore): ExternalCore {
  const verifiers = [t.identity.oidc!]
  const deniedLogins = new DeniedLogins()
  return { database, system, credentials, verifiers, managedSource: source, deniedLogins }
}

const CI = 'ci'

/** Logs in through the provider as if it were one of workloads. */
async function workloadLogin(given: Partial<ExternalLoginInput> = {}): Promise<Change> {
  const change = await login(given)
  return (core) => change({ ...core, verifiers: [workloadVerifier()] })
}

function workloadVerifier(): TokenVerifier {
  const { provider, ...verifier } = t.identity.oidc!
  return { ...verifier, provider: { ...provider, providerId: CI, isWorkload: true } }
}

/** A token whose subject is invited as a workload. */
async function invitedToken(): Promise<string> {
  const subject = `lost-${++subjects}`
  const invitation = { operatorName: 'CI', role: 'observer', scope: INSTALLATION } as const
  await issueInvitation(
    { ...coreOf(t.identity), workloads: [workloadVerifier()] },
    await t.identity.authenticate(t.owner.accessToken),
    { ...invitation, workload: { providerId: CI, subject }, operationId: null, requestId: null },
  )
  return t.token({ sub: subject })
}

const coreOf = ({ database, system, credentials }: IdentityCore): IdentityCore => ({
  database,
  system,
  credentials,
})

const CHANGES: readonly (readonly [
  name: string,
  records: readonly string[],
  prepare: () => Promise<Change>,
])[] = [
  [
    'a first login by invitation',
    ['identity.link', 'invitation.consume', 'session.create'],
    async () => login({ code: await t.invite() }),
  ],
  [
    'a first login of a workload',
    ['identity.link', 'invitation.consume', 'session.create'],
    async () => workloadLogin({ token: await invitedToken() }),
  ],
  [
    'a replay of the token of a workload',
    ['identity.login'],
    async () => {
      const token = await invitedToken()
      await (await workloadLogin({ token }))(withProvider(t.identity))
      return workloadLogin({ token })
    },
  ],
  [
    'a first login by the managed source',
    ['grants.reconcile', 'identity.link', 'session.create'],
    () => login(enrollment(1n)),
  ],
  [
    'a later login',
    ['identity.login', 'session.create'],
    async () => login({ token: (await enrolled()).token }),
  ],
  [
    'a later login with a new revision',
    ['grants.reconcile', 'identity.login', 'session.create'],
    async () => login({ token: (await enrolled()).token, ...enrollment(2n) }),
  ],
  [
    'a reconciliation',
    ['grants.reconcile'],
    async () => {
      const { operatorId } = await enrolled()
      const input = { operatorId, sourceRevision: 2n, grants: [], requestId: null }
      return (core) => reconcileGrants(core, source, input)
    },
  ],
  [
    'a reconciliation that adopts a legacy grant',
    ['grants.adopt_legacy', 'grants.reconcile'],
    async () => {
      const { operatorId } = await enrolled()
      await t.sql(
        `insert into service_operator_grants
           (operator_id, scope_kind, capabilities, source, created_at_micros)
         values ($1, 'installation', array['logs:read'], 'legacy', 1)`,
        [operatorId],
      )
      const input = { operatorId, sourceRevision: 2n, grants, requestId: null }
      return (core) => reconcileGrants(core, source, input)
    },
  ],
]

/** The compared columns of each table. The database compares them, since the tables grow. */
const COMPARED = {
  operators: 'rows',
  operator_grants: 'rows',
  operator_identities: 'rows',
  operator_sessions: 'rows',
  operator_managed_revisions: 'rows',
  operator_token_uses: 'rows',
  operator_invitations: '(rows.invitation_id, rows.state)',
}
const STATE = Object.entries(COMPARED)
  .map(
    ([name, row]) =>
      `select '${name}', count(*), md5(string_agg((${row})::text, ',' order by (${row})::text))
         from service_${name} rows`,
  )
  .join(' union all ')

async function state(): Promise<string> {
  return JSON.stringify(await t.sql(STATE))
}

test.each(CHANGES)('%s: a lost connection is never a false answer', async (_, records, prepare) => {
  const prepared = async () => {
    const change = await prepare()
    return (core: IdentityCore) => change(withProvider(core))
  }
  const found = await injector.lossesOf(await prepared())
  expect(found.filter(({ last }) => last).map(({ point }) => point)).toEqual([
    'before',
    'after',
    'within-answer',
  ])
  for (const loss of found) {
    const change = await prepared()
    const [before, auditId] = [await state(), await lastAudit(t)]
    t.system.advance(1)
    const code = await injector.inject(change, loss)
    const committed = loss.last && loss.point !== 'before'
    const uncertain = 'PLATFORM_IDENTITY_RESULT_UNCERTAIN'
    expect(code, loss.where).toBe(loss.last ? uncertain : 'PLATFORM_UNAVAILABLE')
    expect(await recordsSince(t, auditId), loss.where).toEqual(committed ? records : [])
    expect((await state()) === before, loss.where).toBe(!committed)
  }
})
