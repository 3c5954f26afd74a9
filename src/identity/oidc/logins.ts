/**
 * Login with an external token. The first login of a subject links it to a new operator, which
 * takes an invitation or an enrollment by the managed source. Later logins find the linked
 * operator.
 */
import { lockSubject } from '../../database/advisory-locks.ts'
import { listGrants } from '../../database/identity/grants.ts'
import {
  type ExternalIdentity,
  insertIdentity,
  type LinkedOperator,
  lockLinkedOperator,
} from '../../database/identity/identities.ts'
import { type Invitation, lockPendingInvitationOf } from '../../database/identity/invitations.ts'
import { insertOperator, lockOperator } from '../../database/identity/operators.ts'
import { corrupt } from '../../database/rows.ts'
import { type Tx, transaction } from '../../database/transaction.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { OperatorId } from '../../value/ids.ts'
import { recordAudit } from '../audit.ts'
import type { IdentityCore, Origin } from '../core.ts'
import { consumeInvitation, digestCode, lockUsableInvitation } from '../exchange.ts'
import { TOKEN_REJECTIONS } from '../jwt/rejections.ts'
import {
  type ManagedGrants,
  type ManagedSource,
  reconcile,
  requireEnrollmentToken,
} from '../managed-grants.ts'
import { type Login, openSession } from '../sessions.ts'
import type { DeniedLogins } from './denied-logins.ts'
import type { OidcProvider } from './provider.ts'
import { externalIdentity } from './subjects.ts'
import { detectReplay, type PresentedToken, recordUse } from './token-uses.ts'
import { chooseVerifier, type TokenVerifier, verifyToken } from './tokens.ts'

export interface ExternalCore extends IdentityCore {
  /** One verifier or more; all have different issuers. */
  readonly verifiers: readonly TokenVerifier[]
  readonly managedSource: ManagedSource | null
  readonly deniedLogins: DeniedLogins
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
  /** Name of an operator that the login creates; an existing operator keeps its name. */
  readonly operatorName: string
}

export interface ExternalLogin {
  readonly login: Login
  /** True if this login linked the subject. */
  readonly linked: boolean
}

/**
 * Throws PLATFORM_AUTHENTICATION_FAILED for every invalid token, code, header or subject,
 * PLATFORM_CONFLICT for a valid code of a subject that is linked already (the code stays valid),
 * and the errors of reconcileGrants.
 */
export async function logInExternally(
  core: ExternalCore,
  input: ExternalLoginInput,
): Promise<ExternalLogin> {
  const { managedHeader, managedEnrollment } = input
  if (managedHeader !== null || managedEnrollment !== null) {
    requireEnrollmentToken(core.managedSource, managedHeader)
    // An invitation code and a managed enrollment exclude each other: each would name the operator.
    if (input.code !== null) {
      const violation = { path: 'code', rule: 'not together with managed enrollment' }
      throw new Fault('PLATFORM_REQUEST_INVALID', { violations: [violation] })
    }
  }
  const codeDigest = input.code === null ? null : digestCode(core, input.code)
  const verifier = await auditedIfDenied(core, input, null, () =>
    chooseVerifier(core.verifiers, input.token),
  )
  const entered = await auditedIfDenied(core, input, verifier.provider, () =>
    logInVerified(core, { ...input, codeDigest }, verifier),
  )
  if (entered === null) throw rejection(`external token: ${TOKEN_REJECTIONS.replayed}`)
  return entered
}

/**
 * Runs a part of a login, and audits its rejection where it may be that of a workload: the provider
 * is one of workloads, or the issuer is unknown on a server that has providers of workloads.
 */
async function auditedIfDenied<T>(
  core: ExternalCore,
  origin: Origin,
  provider: OidcProvider | null,
  run: () => T | Promise<T>,
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const isWorkload =
      provider?.isWorkload ?? core.verifiers.some((verifier) => verifier.provider.isWorkload)
    if (isWorkload && isFault(error, 'PLATFORM_AUTHENTICATION_FAILED')) {
      await core.deniedLogins.record(core, provider?.providerId ?? null, origin)
    }
    throw error
  }
}

/** Returns null for a replay. The commit then stores its audit record. */
async function logInVerified(
  core: ExternalCore,
  input: ExternalLoginInput & { readonly codeDigest: Uint8Array | null },
  verifier: TokenVerifier,
): Promise<ExternalLogin | null> {
  const { provider } = verifier
  const { subject, expiresAtMicros } = await verifyToken(verifier, input.token)
  const identity = externalIdentity(provider, subject)
  const token = presentedToken(core, provider, input.token, expiresAtMicros)
  return transaction(core.database, async (tx) => {
    await lockSubject(tx, identity.subjectDigest)
    const given = { ...input, provider, atMicros: core.system.nowMicros() }
    if (token !== null && (await detectReplay(core, tx, token, given))) return null
    const known = await lockLinkedOperator(tx, identity)
    const login =
      known === null
        ? await linkNewOperator(core, tx, identity, given)
        : await logInLinkedOperator(core, tx, known, given)
    if (token !== null) await recordUse(tx, token, login.session.sessionId, given.atMicros)
    return { login, linked: known === null }
  })
}

/** Null for a person's token, which may open several sessions within its lifetime. */
function presentedToken(
  { credentials }: IdentityCore,
  { isWorkload, providerId }: OidcProvider,
  token: string,
  expiresAtMicros: bigint,
): PresentedToken | null {
  if (!isWorkload) return null
  return { digest: credentials.digestExternalToken(token), providerId, expiresAtMicros }
}

/** The parts of one login, once its token is verified. */
type VerifiedLogin = ExternalLoginInput & {
  readonly codeDigest: Uint8Array | null
  readonly provider: OidcProvider
  readonly atMicros: bigint
}

async function linkNewOperator(
  core: ExternalCore,
  tx: Tx,
  identity: ExternalIdentity,
  input: VerifiedLogin,
): Promise<Login> {
  if (input.managedEnrollment !== null) return enroll(core, tx, identity, input)
  const { deviceName, requestId, atMicros, provider } = input
  const invitation = await lockInvitation(tx, identity, input)
  const given = { deviceName, operatorName: null, requestId, isRenewable: !provider.isWorkload }
  const login = await consumeInvitation(core, tx, invitation, given, atMicros)
  await insertLink(core, tx, identity, login.operator.operatorId, input)
  return login
}

/** Locks the invitation of the code or, without one, that names the identity. */
async function lockInvitation(
  tx: Tx,
  identity: ExternalIdentity,
  { codeDigest, atMicros }: VerifiedLogin,
): Promise<Invitation> {
  if (codeDigest !== null) return lockUsableInvitation(tx, codeDigest, atMicros)
  const invitation = await lockPendingInvitationOf(tx, identity, atMicros)
  if (invitation !== null) return invitation
  throw rejection('the subject has no link, invitation or enrollment')
}

async function enroll(
  core: ExternalCore,
  tx: Tx,
  identity: ExternalIdentity,
  input: VerifiedLogin,
): Promise<Login> {
  const operator = await insertOperator(tx, {
    operatorId: core.system.ids.make('opr'),
    operatorName: input.managedEnrollment!.operatorName,
    createdAtMicros: input.atMicros,
  })
  const { operatorId } = operator
  await insertLink(core, tx, identity, operatorId, input)
  return reconcileAndOpenSession(core, tx, operatorId, input)
}

async function logInLinkedOperator(
  core: ExternalCore,
  tx: Tx,
  { operatorId, disabled }: LinkedOperator,
  input: VerifiedLogin,
): Promise<Login> {
  const { atMicros, requestId } = input
  if (disabled) throw rejection('the operator is disabled')
  if (input.codeDigest !== null) {
    await lockUsableInvitation(tx, input.codeDigest, atMicros)
    throw new Fault('PLATFORM_CONFLICT', { detail: 'the subject is linked already' })
  }
  const facts = { actor: operatorId, atMicros, requestId }
  const subject = input.provider.providerId
  const login = await reconcileAndOpenSession(core, tx, operatorId, input)
  const { sessionId } = login.session
  await recordAudit(tx, core.system, 'identity.login', { ...facts, subject, sessionId })
  return login
}

/** Applies the managed grants, if the request has any, then opens a session. */
async function reconcileAndOpenSession(
  core: ExternalCore,
  tx: Tx,
  operatorId: OperatorId,
  { managedEnrollment, deviceName, requestId, provider, atMicros }: VerifiedLogin,
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
  const opened = { operator, grants, deviceName, atMicros, isRenewable: !provider.isWorkload }
  const login = await openSession(core, tx, opened)
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
