/** Look-up of an issuance whose response was lost. 404 proves that it was not committed. */
import { InvitationOperation } from '../../identity/access.ts'
import { operatorOperation } from '../operation.ts'

export const readInvitationOperation = operatorOperation({
  method: 'GET',
  path: '/v1/access/invitation-operations/:operationId',
  name: 'readInvitationOperation',
  summary: 'Returns the outcome of an issuance. 404 proves that it was not committed.',
  capability: 'operators:manage',
  replies: { 200: InvitationOperation },
  errors: ['PLATFORM_NOT_FOUND'],
})

export const invitationOperationOperations = { readInvitationOperation }
