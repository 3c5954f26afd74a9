/**
 * Subjects of the identity provider and statements of the managed source about them, for the
 * sequences: enrolment, later logins, PUT of grants, and grants from before managed sources
 * existed.
 */
import { expect } from 'vitest'
import type { Identity } from '../../src/identity/identity.ts'
import { reconcileGrants } from '../../src/identity/managed-grants.ts'
import { logInExternally } from '../../src/identity/oidc/logins.ts'
import { externalIdentity } from '../../src/identity/oidc/subjects.ts'
import type { Login } from '../../src/identity/sessions.ts'
import type { OperatorId } from '../../src/value/ids.ts'
import { type ExternalLogins, MANAGED_HEADER } from '../providers/external-logins.ts'
import {
  type Model,
  type Operation,
  type Result,
  type Statement,
  type SubjectModel,
  UNKNOWN_SUBJECT,
} from './model.ts'
import { CONTENTS, expectedGrantsText, grantsText, LEGACY, REVISIONS } from './statements.ts'

export interface Subject {
  /** Null if the operator is known only to this server. */
  readonly sub: string | null
  operatorId: OperatorId | null
  model: SubjectModel
}

/** Returns a new subject, an old operator that the provider knows, and one that it does not. */
export async function newSubjects(fixture: ExternalLogins): Promise<Subject[]> {
  const linked = await insertOperator(fixture)
  const local = await insertOperator(fixture)
  const sub = `subject-of-${linked}`
  const { provider } = fixture.identity.oidc!
  const { providerId, subjectDigest } = externalIdentity(provider, sub)
  await fixture.sql(
    `insert into service_operator_identities
       (provider_id, subject_digest, operator_id, linked_at_micros)
     values ($1, $2, $3, 1)`,
    [providerId, subjectDigest, linked],
  )
  return [
    { sub: `new-beside-${linked}`, operatorId: null, model: UNKNOWN_SUBJECT },
    { sub, operatorId: linked, model: { ...UNKNOWN_SUBJECT, operator: 'linked', legacy: true } },
    {
      sub: null,
      operatorId: local,
      model: { ...UNKNOWN_SUBJECT, operator: 'local', legacy: true },
    },
  ]
}

/** Inserts an operator as servers did before managed sources existed. */
async function insertOperator(fixture: ExternalLogins): Promise<OperatorId> {
  const operatorId = fixture.system.ids.make('opr')
  const { scope, capabilities, source } = LEGACY
  await fixture.sql(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ($1, 'Old', 1)`,
    [operatorId],
  )
  await fixture.sql(
    `insert into service_operator_grants
       (operator_id, scope_kind, project_id, environment_id, capabilities, source,
        created_at_micros)
     values ($1, $2, $3, $4, $5, $6, 1)`,
    [operatorId, scope.kind, scope.projectId, scope.environmentId, capabilities, source],
  )
  return operatorId
}

/** Creates the operation of a draft: `step` revisions after the last statement. */
export function subjectOperation(
  { model }: Subject,
  kind: 'log-in' | 'enroll' | 'reconcile',
  { step, content }: { readonly step: number; readonly content: number },
): Operation {
  if (kind === 'log-in') return { kind, statement: null }
  const revision = Math.min(Math.max(model.revision + step, 0), REVISIONS.length - 1)
  return { kind, statement: { revision, content: content % CONTENTS.length } }
}

/** Returns null if it is impossible: a login without a subject, a PUT for an unknown operator. */
export function subjectRun(
  fixture: ExternalLogins,
  thing: Subject,
  operation: Operation,
  keep: (login: Login) => void,
): ((server: Identity) => Promise<Result>) | null {
  const { sub, operatorId } = thing
  switch (operation.kind) {
    case 'log-in':
    case 'enroll':
      if (sub === null) return null
      return async (server) => {
        const { login, linked } = await logIn(fixture, server, sub, operation.statement)
        const known = thing.operatorId ?? login.operator.operatorId
        expect(login.operator.operatorId, 'one subject has one operator').toBe(known)
        thing.operatorId = known
        keep(login)
        return `${linked ? 'linked' : 'recognised'} ${grantsText(login.grants)}`
      }
    case 'reconcile':
      if (operatorId === null) return null
      return async (server) => {
        const given = { operatorId, ...sentBy(operation.statement), requestId: null }
        const done = await reconcileGrants(server, server.managedSource!, given)
        expect(done.applied).toBe(!done.replayed)
        return `${done.applied ? 'applied' : 'replayed'} ${done.authorizationRevision}`
      }
    default:
      throw new Error(`${operation.kind} is not for a subject`)
  }
}

async function logIn(
  fixture: ExternalLogins,
  { database, system, credentials, oidc, managedSource, deniedLogins }: Identity,
  sub: string,
  statement: Statement | null,
) {
  const enrollment = statement === null ? null : { operatorName: 'New', ...sentBy(statement) }
  return logInExternally(
    { database, system, credentials, verifiers: [oidc!], managedSource, deniedLogins },
    {
      token: await fixture.token({ sub }),
      code: null,
      deviceName: null,
      managedHeader: statement === null ? null : MANAGED_HEADER['service-managed-enrollment'],
      managedEnrollment: enrollment,
      requestId: null,
    },
  )
}

let sentCount = 0
/** Alternates between the ways to send one content. */
function sentBy({ revision, content }: Statement) {
  const ways = CONTENTS[content]!
  const grants = ways[sentCount++ % ways.length]!
  return { sourceRevision: REVISIONS[revision]!, grants }
}

/** Returns whether the database holds the state of a model. */
export async function storedSubject(
  fixture: ExternalLogins,
  { operatorId }: Subject,
): Promise<(model: Model) => boolean> {
  const [row] = await fixture.sql<{
    revision: string | null
    authorization: number
    linked: boolean
  }>(
    `select r.source_revision::text as revision,
            o.authorization_revision::integer as authorization,
            exists (select 1 from service_operator_identities i
                     where i.operator_id = o.operator_id) as linked
       from service_operators o
       left join service_operator_managed_revisions r on r.operator_id = o.operator_id
      where o.operator_id = $1`,
    [operatorId],
  )
  if (row === undefined) return (model) => model.kind === 'subject' && model.operator === 'none'
  const grants = await fixture.sql<{ scope: object; capabilities: string[]; source: string }>(
    `select json_build_object('kind', scope_kind, 'projectId', project_id,
                              'environmentId', environment_id) as scope,
            capabilities, source
       from service_operator_grants where operator_id = $1`,
    [operatorId],
  )
  return (model) =>
    model.kind === 'subject' &&
    model.operator === (row.linked ? 'linked' : 'local') &&
    String(REVISIONS[model.revision] ?? null) === String(row.revision) &&
    model.authorization === row.authorization &&
    expectedGrantsText(model.content, model.legacy) === grantsText(grants)
}
