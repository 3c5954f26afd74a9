/**
 * Login with an external token. The first login of a subject links it to a new operator, which
 * takes an invitation or an enrollment by the managed source. Later logins find the linked
 * operator.
 */
import { lockSubject } from '../../database/advisory-locks.ts'
import { listGrants } from '../../database/identity/grants.ts'
import {
  type ExternalIdentity,
  findLinkedOperator,
  insertIdentity,
  type LinkedOperator,
} from '../../database/identity/identities.ts'
import { insertOperator, lockOperator } from '../../database/identity/operators.ts'
import { corrupt } from '../../database/rows.ts'
import { type Tx, transaction } from '../../database/transaction.ts'
import { Fault } from '../../errors/fault.ts'
import type { OperatorId } from '../../value/ids.ts'
import { recordAudit } from '../audit.ts'
import type { IdentityCore, Origin } from '../core.ts'
import { consumeInvitation, digestCode, lockUsableInvitation } from '../exchange.ts'
import {
  type ManagedGrants,
  type ManagedSource,
  reconcile,
  requireEnrollmentToken,
} from '../managed-grants.ts'
import { type Login, openSession } from '../sessions.ts'
import { externalIdentity } from './subjects.ts'
import { type TokenVerifier, verifyToken } from './tokens.ts'

export interface ExternalCore extends IdentityCore {
  readonly oidc: TokenVerifier
  readonly managedSource: ManagedSource | null
}

export interface ExternalLoginInput extends Origin {
  /** The provider's token, a compact JWS. */
  readonly token: string
  readonly code: string | null
  readonly deviceName: string | null
  /** The header `service-managed-enrollment`. */
  readonly managedHeader: string | null
  readonly managedEnrollment: Enrollment | null
}

export interface Enrollment extends ManagedGrants {
  /** Used by the first login. An existing operator keeps its name. */
  readonly operatorName: string
}

export interface ExternalLogin {
  readonly login: Login
  /** Whether this login linked the subject. */
  readonly linked: boolean
}

/**
 * Logs in a subject. Throws PLATFORM_AUTHENTICATION_FAILED for an invalid token, code, header or
 * subject, PLATFORM_CONFLICT for a valid code where the subject is linked already (the code stays
 * valid), and the errors of reconcileGrants.
 */
export async function logInExternally(
  core: ExternalCore,
  input: ExternalLoginInput,
): Promise<ExternalLogin> {
  const { managedHeader, managedEnrollment } = input
  if (managedHeader !== null || managedEnrollment !== null) {
    requireEnrollmentToken(core.managedSource, managedHeader)
    // A code and an enrollment both define the operator, so the request is ambiguous.
    if (input.code !== null) {
      const violation = { path: 'code', rule: 'not together with managed enrollment' }
      throw new Fault('PLATFORM_REQUEST_INVALID', { violations: [violation] })
    }
  }
  const codeDigest = input.code === null ? null : digestCode(core, input.code)
  const identity = externalIdentity(core.oidc.provider, await verifyToken(core.oidc, input.token))
  return transaction(core.database, async (tx) => {
    await lockSubject(tx, identity.subjectDigest)
    const atMicros = core.system.nowMicros()
    const known = await findLinkedOperator(tx, identity)
    const login =
      known === null
        ? await linkNewOperator(core, tx, identity, { ...input, codeDigest }, atMicros)
        : await logInLinkedOperator(core, tx, known, { ...input, codeDigest }, atMicros)
    return { login, linked: known === null }
  })
}

type Digested = ExternalLoginInput & { readonly codeDigest: Uint8Array | null }

async function linkNewOperator(
  core: ExternalCore,
  tx: Tx,
  identity: ExternalIdentity,
  input: Digested,
  atMicros: bigint,
): Promise<Login> {
  const { codeDigest, deviceName, managedEnrollment, requestId } = input
  if (managedEnrollment !== null) return enroll(core, tx, identity, input, atMicros)
  if (codeDigest === null) throw rejection('the subject has no link, invitation or enrollment')
  const invitation = await lockUsableInvitation(tx, codeDigest, atMicros)
  const given = { deviceName, operatorName: null, requestId }
  const login = await consumeInvitation(core, tx, invitation, given, atMicros)
  await insertLink(core, tx, identity, login.operator.operatorId, { atMicros, requestId })
  return login
}

async function enroll(
  core: ExternalCore,
  tx: Tx,
  identity: ExternalIdentity,
  input: ExternalLoginInput,
  atMicros: bigint,
): Promise<Login> {
  const operator = await insertOperator(tx, {
    operatorId: core.system.ids.make('opr'),
    operatorName: input.managedEnrollment!.operatorName,
    createdAtMicros: atMicros,
  })
  const { operatorId } = operator
  await insertLink(core, tx, identity, operatorId, { atMicros, requestId: input.requestId })
  return reconcileAndOpenSession(core, tx, operatorId, input, atMicros)
}

async function logInLinkedOperator(
  core: ExternalCore,
  tx: Tx,
  { operatorId, disabled }: LinkedOperator,
  input: Digested,
  atMicros: bigint,
): Promise<Login> {
  if (disabled) throw rejection('the operator is disabled')
  if (input.codeDigest !== null) {
    await lockUsableInvitation(tx, input.codeDigest, atMicros)
    throw new Fault('PLATFORM_CONFLICT', { detail: 'the subject is linked already' })
  }
  const facts = { actor: operatorId, atMicros, requestId: input.requestId }
  const subject = core.oidc.provider.providerId
  const login = await reconcileAndOpenSession(core, tx, operatorId, input, atMicros)
  const { sessionId } = login.session
  await recordAudit(tx, core.system, 'identity.login', { ...facts, subject, sessionId })
  return login
}

/** Applies the enrollment, if any, and opens a session. */
async function reconcileAndOpenSession(
  core: ExternalCore,
  tx: Tx,
  operatorId: OperatorId,
  { managedEnrollment, deviceName, requestId }: ExternalLoginInput,
  atMicros: bigint,
): Promise<Login> {
  const operator = await lockOperator(tx, operatorId)
  if (operator === null) throw corrupt('identity without its operator')
  if (managedEnrollment !== null) {
    const { sourceRevision, grants } = managedEnrollment
    const source = core.managedSource!
    const given = { source, operator, sourceRevision, grants, atMicros, requestId }
    await reconcile(core, tx, given)
  }
  const grants = await listGrants(tx, operatorId)
  const login = await openSession(core, tx, { operator, grants, deviceName, atMicros })
  const { sessionId } = login.session
  const facts = { actor: operatorId, subject: sessionId, atMicros, requestId, sessionId }
  await recordAudit(tx, core.system, 'session.create', facts)
  return login
}

async function insertLink(
  core: ExternalCore,
  tx: Tx,
  identity: ExternalIdentity,
  operatorId: OperatorId,
  { atMicros, requestId }: Origin & { readonly atMicros: bigint },
): Promise<void> {
  await insertIdentity(tx, identity, operatorId, atMicros)
  const facts = { actor: operatorId, subject: identity.providerId, atMicros, requestId }
  await recordAudit(tx, core.system, 'identity.link', facts)
}

function rejection(detail: string): Fault {
  return new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail })
}
