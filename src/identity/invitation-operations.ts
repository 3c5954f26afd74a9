/** Outcome of an issuance, for a caller that lost the response. It never contains the code. */
import { findInvitationOperation } from '../database/identity/invitation-operations.ts'
import { getInvitation, type Invitation } from '../database/identity/invitations.ts'
import { Fault } from '../errors/fault.ts'
import type { OperationId } from '../value/ids.ts'
import { type Actor, requireCapability, requireCapabilitySomewhere } from './actor.ts'
import type { IdentityCore } from './core.ts'

export type InvitationState = 'pending' | 'consumed' | 'revoked' | 'expired'

export interface CommittedInvitation {
  readonly invitation: Invitation
  readonly operationId: OperationId
  readonly state: InvitationState
}

/**
 * Finds the issuance of an Operation ID. Throws PLATFORM_ACCESS_DENIED without `operators:manage`
 * at the stored scope, and PLATFORM_NOT_FOUND where no issuance with this ID is committed yet.
 */
export async function readInvitationOperation(
  { database, system }: IdentityCore,
  actor: Actor,
  operationId: OperationId,
): Promise<CommittedInvitation> {
  requireCapabilitySomewhere(actor, 'operators:manage')
  const operation = await findInvitationOperation(database, operationId)
  if (operation === null) throw new Fault('PLATFORM_NOT_FOUND', { detail: 'unknown Operation ID' })
  requireCapability(actor, 'operators:manage', operation.scope)
  const invitation = await getInvitation(database, operation.invitationId)
  const expired = invitation.state === 'pending' && invitation.expiresAtMicros <= system.nowMicros()
  return { invitation, operationId, state: expired ? 'expired' : invitation.state }
}
