import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  AUTHORITY,
  type ExternalLogins,
  externalLogins,
  MANAGED_TOKEN,
  PROJECT,
} from '../../../build/testing/external-logins.ts'
import { type PostgresProxy, postgresProxy } from '../../../build/testing/postgres-proxy.ts'
import { Database } from '../../database/database.ts'
import { isFault } from '../../errors/fault.ts'
import type { OperatorId } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import { type ManagedSource, reconcileGrants } from '../managed-grants.ts'
import { type ExternalCore, type ExternalLoginInput, logInExternally } from './logins.ts'

/*
 * Goal: whatever message of the protocol the connection is lost at, the answer tells the truth and
 * the audit has exactly what the tables have. Method: each change runs once whole, to count its
 * messages, and then once for each message, on a connection of its own.
 */

let t: ExternalLogins
let proxy: PostgresProxy
let subjects = 0

beforeAll(async () => {
  t = await externalLogins()
  proxy = await postgresProxy(t.url)
})

afterAll(async () => {
  await proxy.close()
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
  const done = (await change(coreOn(t.identity.database))) as { login: { operator: object } }
  const { operatorId } = done.login.operator as { operatorId: OperatorId }
  return { token, operatorId }
}

function coreOn(database: Database): ExternalCore {
  const { system, credentials, oidc } = t.identity
  return { database, system, credentials, oidc: oidc!, managedSource: source }
}

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
]

/** Runs the change on one fresh connection through the proxy; answers its code. */
async function run(change: Change, arm: () => void): Promise<string> {
  const database = new Database({ url: new Secret(proxy.url), connectionsMax: 1 })
  try {
    await database.rows('select 1')
    arm()
    await change(coreOn(database))
    return 'none'
  } catch (error) {
    return isFault(error) ? error.code : String(error)
  } finally {
    await database.close()
  }
}

async function snapshot(): Promise<{ audit: string[]; state: string }> {
  const parts: unknown[] = []
  for (const name of ['operators', 'operator_grants', 'operator_identities', 'operator_sessions']) {
    parts.push(await t.sql(`select * from service_${name} order by 1, 2`))
  }
  parts.push(await t.sql('select * from service_operator_managed_revisions order by 1, 2'))
  parts.push(await t.sql('select invitation_id, state from service_operator_invitations'))
  return { audit: (await t.audit()).sort(), state: JSON.stringify(parts) }
}

/** What `after` has more. */
function added(before: readonly string[], after: readonly string[]): string[] {
  const rest = [...before]
  return after.filter((each) => {
    const found = rest.indexOf(each)
    if (found !== -1) rest.splice(found, 1)
    return found === -1
  })
}

test.each(CHANGES)(
  '%s: a lost connection is never a false answer',
  async (_, records, prepare) => {
    let stop: () => readonly string[] = () => []
    const whole = await run(await prepare(), () => {
      stop = proxy.record()
    })
    expect(whole).toBe('none')
    const messages = stop()
    const total = messages.length
    expect(messages.lastIndexOf('Q') + 1).toBe(total)
    for (let number = 1; number <= total; number++) {
      for (const point of ['before', 'after'] as const) {
        if (point === 'after' && !['S', 'Q'].includes(messages[number - 1]!)) continue
        const change = await prepare()
        const before = await snapshot()
        const code = await run(change, () => proxy.cutAtMessage(number, point))
        const after = await snapshot()
        const committed = number === total && point === 'after'
        const where = `message ${number} of ${total}, ${point}`
        const uncertain = 'PLATFORM_IDENTITY_RESULT_UNCERTAIN'
        expect(code, where).toBe(number === total ? uncertain : 'PLATFORM_UNAVAILABLE')
        expect(added(before.audit, after.audit), where).toEqual(committed ? records : [])
        expect(before.state === after.state, where).toBe(!committed)
      }
    }
  },
  120_000,
)
