/** Look-up of an issuance whose response was lost. 404 proves that it was not committed. */
import { readInvitationOperation } from '../../../identity/invitation-operations.ts'
import type { InvitationOperation } from '../../../wire/identity/access.ts'
import { invitationOperationOperations } from '../../../wire/operations/identity/invitation-operations.ts'
import { bind, type Route } from '../route.ts'
import { type InvitationsApp, invitationField } from './invitations.ts'

export const invitationOperationRoutes: readonly Route<InvitationsApp>[] = bind(
  invitationOperationOperations,
  {
    async readInvitationOperation({ app, actor, params }) {
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
  },
)
