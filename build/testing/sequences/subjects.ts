/**
 * People at the identity provider and what the managed source says about them, for the sequences:
 * enrolment, later logins, PUT of grants, and grants from before there were sources.
 */
import { expect } from 'vitest'
import type { Identity } from '../../../src/identity/identity.ts'
import { reconcileGrants } from '../../../src/identity/managed-grants.ts'
import { logInExternally } from '../../../src/identity/oidc/logins.ts'
import { externalIdentity } from '../../../src/identity/oidc/subjects.ts'
import type { Login } from '../../../src/identity/sessions.ts'
import type { OperatorId } from '../../../src/value/ids.ts'
import { type ExternalLogins, MANAGED_HEADER } from '../providers/external-logins.ts'
import {
  type Model,
  NOBODY,
  type Operation,
  type Result,
  type Statement,
  type SubjectModel,
} from './model.ts'
import { CONTENTS, grantsOf, LEGACY, REVISIONS, textOf } from './statements.ts'

export interface Subject {
  /** null where the operator is known to this server alone. */
  readonly sub: string | null
  operatorId: OperatorId | null
  model: SubjectModel
}

/** Of whoever is new, an old operator that the provider vouches for, and one that it does not. */
export async function newSubjects(t: ExternalLogins): Promise<Subject[]> {
  const old = await insertOld(t)
  const local = await insertOld(t)
  const sub = `subject-of-${old}`
  const { providerId, subjectDigest } = externalIdentity(t.identity.oidc!.provider, sub)
  await t.sql(
    `insert into service_operator_identities
       (provider_id, subject_digest, operator_id, linked_at_micros)
     values ($1, $2, $3, 1)`,
    [providerId, subjectDigest, old],
  )
  return [
    { sub: `new-beside-${old}`, operatorId: null, model: NOBODY },
    { sub, operatorId: old, model: { ...NOBODY, operator: 'linked', legacy: true } },
    { sub: null, operatorId: local, model: { ...NOBODY, operator: 'local', legacy: true } },
  ]
}

async function insertOld(t: ExternalLogins): Promise<OperatorId> {
  const operatorId = t.system.ids.make('opr')
  const { scope, capabilities, source } = LEGACY
  await t.sql(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ($1, 'Old', 1)`,
    [operatorId],
  )
  await t.sql(
    `insert into service_operator_grants
       (operator_id, scope_kind, project_id, environment_id, capabilities, source,
        created_at_micros)
     values ($1, $2, $3, $4, $5, $6, 1)`,
    [operatorId, scope.kind, scope.projectId, scope.environmentId, capabilities, source],
  )
  return operatorId
}

/** The operation of a draft: `step` revisions past the one that the source spoke last. */
export function subjectOperation(
  { model }: Subject,
  kind: 'log-in' | 'enroll' | 'reconcile',
  { step, content }: { readonly step: number; readonly content: number },
): Operation {
  if (kind === 'log-in') return { kind, statement: null }
  const revision = Math.min(Math.max(model.revision + step, 0), REVISIONS.length - 1)
  return { kind, statement: { revision, content: content % CONTENTS.length } }
}

/** null where nobody could do it: a login without a subject, a PUT for an operator unknown yet. */
export function subjectRun(
  t: ExternalLogins,
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
        const { login, linked } = await logIn(t, server, sub, operation.statement)
        const known = thing.operatorId ?? login.operator.operatorId
        expect(login.operator.operatorId, 'one subject is one operator').toBe(known)
        thing.operatorId = known
        keep(login)
        return `${linked ? 'linked' : 'recognised'} ${textOf(login.grants)}`
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
  t: ExternalLogins,
  { database, system, credentials, oidc, managedSource }: Identity,
  sub: string,
  statement: Statement | null,
) {
  const enrollment = statement === null ? null : { operatorName: 'New', ...sentBy(statement) }
  return logInExternally(
    { database, system, credentials, verifiers: [oidc!], managedSource },
    {
      token: await t.token({ sub }),
      code: null,
      deviceName: null,
      managedHeader: statement === null ? null : MANAGED_HEADER['service-managed-enrollment'],
      managedEnrollment: enrollment,
      requestId: null,
    },
  )
}

let sendings = 0

/** Every way of sending one content in turn. */
function sentBy({ revision, content }: Statement) {
  const ways = CONTENTS[content]!
  const grants = ways[sendings++ % ways.length]!
  return { sourceRevision: REVISIONS[revision]!, grants }
}

/** Whether a model is what the database holds now. */
export async function storedSubject(
  t: ExternalLogins,
  { operatorId }: Subject,
): Promise<(model: Model) => boolean> {
  const [row] = await t.sql<{ revision: string | null; authorization: number; linked: boolean }>(
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
  const grants = await t.sql<{ scope: object; capabilities: string[]; source: string }>(
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
    grantsOf(model.content, model.legacy) === textOf(grants)
}
