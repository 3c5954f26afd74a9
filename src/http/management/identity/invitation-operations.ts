/** Look-up of an issuance whose response was lost. 404 proves that it was not committed. */
import { readInvitationOperation } from '../../../identity/invitation-operations.ts'
import { InvitationOperation } from '../../../wire/access.ts'
import { operatorRoute, type Route } from '../route.ts'
import { type InvitationsApp, invitationField } from './invitations.ts'

export const invitationOperationRoutes: readonly Route<InvitationsApp>[] = [
  operatorRoute({
    method: 'GET',
    path: '/v1/access/invitation-operations/:operationId',
    name: 'readInvitationOperation',
    summary: 'Returns the outcome of an issuance. 404 proves that it was not committed.',
    capability: 'operators:manage',
    replies: { 200: InvitationOperation },
    errors: ['PLATFORM_NOT_FOUND'],
    async handle({ app, actor, params }) {
      const { operationId } = params
      const found = await readInvitationOperation(app.identity, actor, operationId)
      const body: InvitationOperation = {
        ...invitationField(found.invitation, operationId),
        secretShownOnce: false,
        replayed: true,
        state: found.state,
      }
      return { status: 200, body }
    },
  }),
]
