/** Delegated invitations: issuance and revocation. */
import type { Identity } from '../../../identity/identity.ts'
import {
  type Invitation,
  issueInvitation,
  revokeInvitation,
} from '../../../identity/invitations.ts'
import type { OperationId } from '../../../value/ids.ts'
import { InvitationIssued, InvitationRequest } from '../../../wire/access.ts'
import { CHANGE_ERRORS, operatorRoute, type Route } from '../route.ts'

export interface InvitationsApp {
  readonly identity: Identity
}

export const invitationRoutes: readonly Route<InvitationsApp>[] = [
  operatorRoute({
    method: 'POST',
    path: '/v1/access/invitations',
    name: 'issueInvitation',
    summary: 'Invites an operator by a code that only the first response contains, or a workload.',
    capability: 'operators:manage',
    // Without an Operation ID, the request can be neither replayed nor looked up.
    operationId: 'optional',
    body: { schema: InvitationRequest },
    replies: { 200: InvitationIssued, 201: InvitationIssued },
    errors: ['PLATFORM_CONFLICT', 'PLATFORM_INVITATION_OPERATION_REUSED', ...CHANGE_ERRORS],
    cache: 'no-store, max-age=0',
    async handle({ app, actor, body, operationId, requestId }) {
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
  }),

  operatorRoute({
    method: 'DELETE',
    path: '/v1/access/invitations/:invitationId',
    name: 'revokeInvitation',
    summary: 'Revokes an invitation that was not used.',
    capability: 'operators:manage',
    replies: { 204: null },
    errors: ['PLATFORM_CONFLICT', 'PLATFORM_NOT_FOUND', ...CHANGE_ERRORS],
    async handle({ app, actor, params, requestId }) {
      await revokeInvitation(app.identity, actor, { ...params, requestId })
      return { status: 204 }
    },
  }),
]

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
