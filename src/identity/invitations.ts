/**
 * Delegated invitations: issued once, replayed without the code, revoked any number of times. A
 * creator must hold `operators:manage` at the scope, and every capability of the invitation.
 * exchange.ts consumes the codes.
 */
import { lockOperation } from '../database/advisory-locks.ts'
import type { ExternalIdentity } from '../database/identity/identities.ts'
import {
  findInvitationOperation,
  type InvitationOperation,
  insertInvitationOperation,
} from '../database/identity/invitation-operations.ts'
import {
  getInvitation,
  type Invitation,
  insertInvitation,
  lockInvitation,
  markInvitationRevoked,
} from '../database/identity/invitations.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import { digestEquals, sha256 } from '../system/digests.ts'
import { encodeBase64Url } from '../value/base64url.ts'
import { canonicalJson } from '../value/canonical-json.ts'
import { capabilitiesOfRole, type Role } from '../value/capabilities.ts'
import type { InvitationId, OperationId } from '../value/ids.ts'
import type { Scope } from '../value/scope.ts'
import type { Secret } from '../value/secret.ts'
import { type Actor, requireCapability, requireCapabilitySomewhere } from './actor.ts'
import { recordAudit } from './audit.ts'
import type { IdentityCore, Origin } from './core.ts'
import {
  lockUnlinkedIdentity,
  type WorkloadCore,
  type WorkloadSubject,
  workloadIdentity,
} from './workloads.ts'

export type { Invitation }

/**
 * Lifetime of a delegated invitation, and of one that recovers an owner's access, in microseconds
 * (contract/management.md, Limits).
 * @limit Identity and keys: lifetime of an invitation code
 */
export const INVITATION_LIFETIME_MICROS = 1_800_000_000n

export interface InvitationInput extends Origin {
  readonly operatorName: string
  readonly role: Role
  readonly scope: Scope
  /** The workload that may log in without a code; undefined for a person's invitation. */
  readonly workload?: WorkloadSubject | undefined
  /** Null: the issuance can be neither replayed nor looked up. */
  readonly operationId: OperationId | null
}

export interface InvitationIssued {
  readonly invitation: Invitation
  readonly operationId: OperationId | null
  /**
   * Null on a replay, since the code is revealed once, and for a workload, which logs in without a
   * code.
   */
  readonly code: Secret | null
  readonly replayed: boolean
}

type InvitationCore = IdentityCore & WorkloadCore

/** Input whose subject is digested. */
type DigestedInput = Omit<InvitationInput, 'workload'> & {
  readonly workload: ExternalIdentity | null
}

/**
 * Issues an invitation, or replays an issuance. Throws PLATFORM_ACCESS_DENIED,
 * PLATFORM_INVITATION_OPERATION_REUSED where the Operation ID belongs to another request or
 * creator, and for a workload PLATFORM_REQUEST_INVALID where its provider is not configured and
 * PLATFORM_CONFLICT where it is linked already.
 */
export async function issueInvitation(
  core: InvitationCore,
  actor: Actor,
  given: InvitationInput,
): Promise<InvitationIssued> {
  requireCapability(actor, 'operators:manage', given.scope)
  for (const capability of capabilitiesOfRole(given.role)) {
    requireCapability(actor, capability, given.scope)
  }
  const workload = given.workload === undefined ? null : workloadIdentity(core, given.workload)
  const input = { ...given, workload }
  return transaction(core.database, async (tx) => {
    const { operationId } = input
    if (operationId !== null) {
      await lockOperation(tx, operationId)
      const committed = await findInvitationOperation(tx, operationId)
      if (committed !== null) return replay(tx, actor, input, committed)
    }
    return create(core, tx, actor, input)
  })
}

async function replay(
  tx: Tx,
  actor: Actor,
  input: DigestedInput,
  { operationId, requestFingerprint, invitationId }: InvitationOperation,
): Promise<InvitationIssued> {
  if (!digestEquals(requestFingerprint, fingerprint(actor, input))) {
    throw new Fault('PLATFORM_INVITATION_OPERATION_REUSED')
  }
  const invitation = await getInvitation(tx, invitationId)
  return { invitation, operationId, code: null, replayed: true }
}

async function create(
  core: IdentityCore,
  tx: Tx,
  actor: Actor,
  input: DigestedInput,
): Promise<InvitationIssued> {
  const { operationId, operatorName, role, scope, workload, requestId } = input
  if (workload !== null) await lockUnlinkedIdentity(tx, workload)
  const atMicros = core.system.nowMicros()
  const code = workload === null ? core.credentials.issueInvitationCode() : null
  const invitation = {
    invitationId: core.system.ids.make('opi'),
    kind: 'delegated' as const,
    codeDigest: code?.digest ?? null,
    workload,
    operatorName,
    role,
    scope,
    capabilities: capabilitiesOfRole(role),
    state: 'pending' as const,
    createdBy: actor.operatorId,
    createdAtMicros: atMicros,
    expiresAtMicros: atMicros + INVITATION_LIFETIME_MICROS,
  }
  const { invitationId } = invitation
  await insertInvitation(tx, invitation)
  if (operationId !== null) {
    await insertInvitationOperation(tx, {
      operationId,
      requestFingerprint: fingerprint(actor, input),
      scope,
      invitationId,
      createdBy: actor.operatorId,
      createdAtMicros: atMicros,
    })
  }
  const facts = { ...subject(actor, invitationId), atMicros, requestId, operationId }
  await recordAudit(tx, core.system, 'invitation.create', facts)
  return { invitation, operationId, code: code?.secret ?? null, replayed: false }
}

/** Fingerprint of the fields that an exact replay repeats, and of the creator. */
function fingerprint({ operatorId }: Actor, input: DigestedInput) {
  const { operatorName, role, scope, workload } = input
  const { kind, projectId, environmentId } = scope
  return sha256(
    canonicalJson({
      version: 1,
      createdBy: operatorId,
      operatorName,
      role,
      scope: { kind, projectId, environmentId },
      ...(workload !== null && { workload: canonicalIdentity(workload) }),
    }),
  )
}

function canonicalIdentity({ providerId, subjectDigest }: ExternalIdentity) {
  return { providerId, subjectDigest: encodeBase64Url(subjectDigest) }
}

export interface InvitationRevocation extends Origin {
  readonly invitationId: InvitationId
}

/**
 * Revokes an invitation. Idempotent. Throws PLATFORM_ACCESS_DENIED, PLATFORM_NOT_FOUND, and
 * PLATFORM_CONFLICT for a consumed invitation, whose operator already exists.
 */
export async function revokeInvitation(
  { database, system }: IdentityCore,
  actor: Actor,
  { invitationId, requestId }: InvitationRevocation,
): Promise<void> {
  requireCapabilitySomewhere(actor, 'operators:manage')
  await transaction(database, async (tx) => {
    const invitation = await lockInvitation(tx, invitationId)
    if (invitation === null) throw new Fault('PLATFORM_NOT_FOUND', { detail: 'unknown invitation' })
    requireCapability(actor, 'operators:manage', invitation.scope)
    if (invitation.state === 'revoked') return
    if (invitation.state === 'consumed') {
      throw new Fault('PLATFORM_CONFLICT', { detail: 'the invitation is consumed' })
    }
    const atMicros = system.nowMicros()
    await markInvitationRevoked(tx, invitationId, atMicros)
    const facts = { ...subject(actor, invitationId), atMicros, requestId }
    await recordAudit(tx, system, 'invitation.revoke', facts)
  })
}

function subject({ operatorId, sessionId, purpose }: Actor, invitationId: InvitationId) {
  return { actor: operatorId, sessionId, purpose, subject: invitationId, invitationId }
}
