/** Delegated invitations: issuance and revocation. */
import type { Identity } from '../../../identity/identity.ts'
import {
  type Invitation,
  issueInvitation,
  revokeInvitation,
} from '../../../identity/invitations.ts'
import type { OperationId } from '../../../value/ids.ts'
import type { InvitationIssued } from '../../../wire/identity/access.ts'
import { invitationOperations } from '../../../wire/operations/identity/invitations.ts'
import { bind, type Route } from '../route.ts'

export interface InvitationsApp {
  readonly identity: Identity
}

export const invitationRoutes: readonly Route<InvitationsApp>[] = bind(invitationOperations, {
  async issueInvitation({ app, actor, body, operationId, requestId }) {
    const input = { ...body, operationId, requestId }
    const { invitation, code, replayed } = await issueInvitation(app.identity, actor, input)
    const reply: InvitationIssued = {
      ...invitationField(invitation, operationId),
      secretShownOnce: code !== null,
      replayed,
      ...(code !== null && { code: code.reveal() }),
    }
    return { status: replayed ? 200 : 201, body: reply }
  },

  async revokeInvitation({ app, actor, params, requestId }) {
    await revokeInvitation(app.identity, actor, { ...params, requestId })
    return { status: 204 }
  },
})

/** Fields that the responses of issuance, replay and look-up share. */
export function invitationField(invitation: Invitation, operationId: OperationId | null) {
  return {
    version: 1 as const,
    operationId,
    invitationId: invitation.invitationId,
    // Every delegated invitation has a name, and no other kind is returned here.
    operatorName: invitation.operatorName!,
    role: invitation.role,
    scope: invitation.scope,
    capabilities: [...invitation.capabilities],
    createdAtMicros: String(invitation.createdAtMicros),
    expiresAtMicros: String(invitation.expiresAtMicros),
    ...(invitation.workload !== null && {
      workload: { providerId: invitation.workload.providerId },
    }),
  }
}
