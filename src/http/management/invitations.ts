/** Delegated invitations: issuance, once with the code, and revocation. */
import type { Identity } from '../../identity/identity.ts'
import { type Invitation, issueInvitation, revokeInvitation } from '../../identity/invitations.ts'
import { type OperationId, parseId } from '../../value/ids.ts'
import { type InvitationIssued, InvitationRequest } from '../../wire/access.ts'
import { operatorRoute, type Route } from '../route.ts'

export interface InvitationsApp {
  readonly identity: Identity
}

export const invitationRoutes: readonly Route<InvitationsApp>[] = [
  operatorRoute({
    method: 'POST',
    path: '/v1/access/invitations',
    capability: 'operators:manage',
    // Without one the request is one-shot: it can be neither replayed nor looked up.
    operationId: 'optional',
    body: { schema: InvitationRequest },
    cache: 'no-store, max-age=0',
    async handle({ app, actor, body, operationId, requestId }) {
      const input = { ...body, operationId, requestId }
      const { invitation, code } = await issueInvitation(app.identity, actor, input)
      const reply: InvitationIssued = {
        ...invitationField(invitation, operationId),
        secretShownOnce: code !== null,
        replayed: code === null,
        ...(code !== null && { code: code.reveal() }),
      }
      return { status: code === null ? 200 : 201, body: reply }
    },
  }),

  operatorRoute({
    method: 'DELETE',
    path: '/v1/access/invitations/:invitationId',
    capability: 'operators:manage',
    async handle({ app, actor, params, requestId }) {
      const invitationId = parseId('opi', params.invitationId)
      await revokeInvitation(app.identity, actor, { invitationId, requestId })
      return { status: 204 }
    },
  }),
]

/** What issuance, replay and look-up have in common. */
export function invitationField(invitation: Invitation, operationId: OperationId | null) {
  return {
    version: 1 as const,
    operationId,
    invitationId: invitation.invitationId,
    // Every delegated invitation has one; only those can be seen here.
    operatorName: invitation.operatorName!,
    role: invitation.role,
    scope: invitation.scope,
    capabilities: [...invitation.capabilities],
    createdAtMicros: String(invitation.createdAtMicros),
    expiresAtMicros: String(invitation.expiresAtMicros),
  }
}
