/** Creates operators with sessions, for tests of their capabilities. */
import { readFileSync } from 'node:fs'
import { type Grant, insertGrant } from '../src/database/identity/grants.ts'
import { insertOperator } from '../src/database/identity/operators.ts'
import { transaction } from '../src/database/transaction.ts'
import type { Sessions } from '../src/http/management/route.ts'
import type { Actor } from '../src/identity/actor.ts'
import { exchange } from '../src/identity/exchange.ts'
import { type Login, openSession } from '../src/identity/sessions.ts'
import { CAPABILITIES, type Capability } from '../src/value/capabilities.ts'
import type { EnvironmentId, ProjectId } from '../src/value/ids.ts'
import { environmentScope, type Scope } from '../src/value/scope.ts'
import type { TestIdentity } from './identity.ts'

export const PROJECT_ID = 'prj_00000000000000000000000001' as ProjectId
export const ENVIRONMENT_ID = 'env_00000000000000000000000001' as EnvironmentId
export const PROJECT: Scope = { kind: 'project', projectId: PROJECT_ID, environmentId: null }
export const ENVIRONMENT: Scope = environmentScope(PROJECT_ID, ENVIRONMENT_ID)
export const OTHER_PROJECT: Scope = {
  kind: 'project',
  projectId: 'prj_00000000000000000000000002' as ProjectId,
  environmentId: null,
}
export const OTHER_ENVIRONMENT: Scope = environmentScope(
  PROJECT_ID,
  'env_00000000000000000000000002' as EnvironmentId,
)

/** Logs in the first owner with the code of the first start. */
export async function firstOwner(fixture: TestIdentity): Promise<Login> {
  await fixture.identity.startup()
  const code = readFileSync(fixture.codePath, 'utf8').trimEnd()
  const names = { deviceName: null, operatorName: null }
  return exchange(fixture.identity, { code, ...names, requestId: null })
}

export const everythingBut = (...excluded: readonly Capability[]): readonly Capability[] =>
  CAPABILITIES.filter((capability) => !excluded.includes(capability))

/** Inserts an operator with exactly these grants and a session, without an invitation or audit. */
export function operatorWith(
  { identity }: TestIdentity,
  ...grants: readonly { scope: Scope; capabilities: readonly Capability[] }[]
): Promise<Login> {
  const atMicros = identity.system.nowMicros()
  return transaction(identity.database, async (tx) => {
    const operator = await insertOperator(tx, {
      operatorId: identity.system.ids.make('opr'),
      operatorName: 'tester',
      createdAtMicros: atMicros,
    })
    const stored = grants.map((grant): Grant & { source: 'invitation' } => ({
      ...grant,
      source: 'invitation',
    }))
    for (const grant of stored) await insertGrant(tx, operator.operatorId, grant, atMicros)
    return openSession(identity, tx, { operator, grants: stored, deviceName: null, atMicros })
  })
}

export function authenticateLogin({ identity }: TestIdentity, login: Login): Promise<Actor> {
  return identity.authenticate(login.accessToken.reveal())
}

/** Sessions without a store: every token belongs to this server, and no session ends. */
export function unstoredSessions(authenticate: Sessions['authenticate']): Sessions {
  return {
    recognize: (token) => token,
    authenticate,
    whileAuthorized: async (actor, work) => work(actor),
  }
}
