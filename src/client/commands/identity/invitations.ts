/** `svc invitations`: shows and revokes invitations. invite.ts issues them. */
import { readInvitationOperation } from '../../../wire/operations/identity/invitation-operations.ts'
import { revokeInvitation } from '../../../wire/operations/identity/invitations.ts'
import { argument, type CommandSpec } from '../../contexts.ts'
import { requestCommand } from '../../request-commands.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { timeText } from '../../timestamps.ts'
import { requireId } from '../../usage.ts'
import { printable } from '../../visible-text.ts'
import { scopeText } from './scopes.ts'

const show: CommandSpec = requestCommand({
  name: 'invitations show',
  summary: 'Show the invitation that an operation issued',
  details: [
    'Ends with 7 if the server has committed nothing under this Operation ID. The code is never',
    'shown again: if it did not arrive, revoke the invitation and issue a new one.',
  ],
  positionals: [argument('OPERATION', 'The opn_ identifier')],
  options: {},
  examples: ['svc invitations show opn_...'],
  input: (_, [operation]) => ({ operationId: requireId('opn', operation, 'OPERATION', show) }),
  open: OperatorSession.open,
  progress: 'reading the invitation',
  request: (session, params) => session.call(readInvitationOperation, { params }),
  explains: {
    PLATFORM_NOT_FOUND: {
      detail: 'No invitation was issued under this Operation ID.',
      next: 'Check the identifier, or run `svc invite` with it.',
    },
  },
  lines: (found, { output }) => [
    `${found.invitationId}  ${output.bold(found.state)}`,
    `${printable(found.operatorName)} as ${found.role} at ${scopeText(found.scope)}`,
    ...(found.workload ? [`For a workload of ${printable(found.workload.providerId)}.`] : []),
    `Issued ${timeText(found.createdAtMicros)}, expires ${timeText(found.expiresAtMicros)}.`,
  ],
})

const revoke: CommandSpec = requestCommand({
  name: 'invitations revoke',
  summary: 'Revoke an invitation that was not used',
  details: ['The command may be repeated. A used invitation cannot be revoked.'],
  positionals: [argument('INVITATION', 'The opi_ identifier')],
  options: {},
  examples: ['svc invitations revoke opi_...'],
  input: (_, [given]) => ({ invitationId: requireId('opi', given, 'INVITATION', revoke) }),
  open: OperatorSession.open,
  progress: 'revoking the invitation',
  async request(session, params) {
    await session.call(revokeInvitation, { params })
    return { version: 1, ...params, revoked: true }
  },
  explains: {
    PLATFORM_CONFLICT: {
      detail: 'The invitation was used.',
      next: 'Revoke the session of the new operator with `svc sessions revoke` instead.',
    },
  },
  lines: ({ invitationId }) => [`Revoked ${invitationId}.`],
})

export const invitationCommands: readonly CommandSpec[] = [show, revoke]
