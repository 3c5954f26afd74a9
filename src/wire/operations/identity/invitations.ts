/** Delegated invitations: issuance and revocation. */
import { InvitationIssued, InvitationRequest } from '../../identity/access.ts'
import { CHANGE_ERRORS, operatorOperation } from '../operation.ts'

export const issueInvitation = operatorOperation({
  method: 'POST',
  path: '/v1/access/invitations',
  name: 'issueInvitation',
  summary: 'Invites an operator by a code that only the first response contains, or a workload.',
  capability: 'operators:manage',
  // Without an Operation ID, the request can be neither replayed nor looked up.
  operationId: 'optional',
  body: { schema: InvitationRequest },
  replay: 'unsafe',
  replies: { 200: InvitationIssued, 201: InvitationIssued },
  errors: ['PLATFORM_CONFLICT', 'PLATFORM_INVITATION_OPERATION_REUSED', ...CHANGE_ERRORS],
  cache: 'no-store, max-age=0',
})

export const revokeInvitation = operatorOperation({
  method: 'DELETE',
  path: '/v1/access/invitations/:invitationId',
  name: 'revokeInvitation',
  summary: 'Revokes an invitation that was not used.',
  capability: 'operators:manage',
  replay: 'safe',
  replies: { 204: null },
  errors: ['PLATFORM_CONFLICT', 'PLATFORM_NOT_FOUND', ...CHANGE_ERRORS],
})

export const invitationOperations = { issueInvitation, revokeInvitation }
