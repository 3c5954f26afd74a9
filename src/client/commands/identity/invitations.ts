/** `svc invitations`: shows and revokes invitations. invite.ts issues them. */
import { isFault } from '../../../errors/fault.ts'
import { type InvitationId, isId } from '../../../value/ids.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import { readInvitationOperation } from '../../../wire/operations/identity/invitation-operations.ts'
import { revokeInvitation } from '../../../wire/operations/identity/invitations.ts'
import { type CommandSpec, command } from '../../contexts.ts'
import { explained } from '../../explanations.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { usage } from '../../usage.ts'
import { printable } from '../../visible-text.ts'
import { scopeText } from './scopes.ts'

const show: CommandSpec = command({
  name: 'invitations show',
  summary: 'Show the invitation that an operation issued',
  details: [
    'Ends with 7 if the server has committed nothing under this Operation ID. The code is never',
    'shown again: if it did not arrive, revoke the invitation and issue a new one.',
  ],
  positionals: [{ name: 'OPERATION', description: 'The opn_ identifier', required: true }],
  options: {},
  examples: ['svc invitations show opn_...'],
  async run(context, _, [operationId]) {
    if (!isId('opn', operationId)) throw usage('OPERATION needs an opn_ identifier.', show)
    const session = await OperatorSession.open(context)
    const request = session.call(readInvitationOperation, { params: { operationId } })
    const found = await context.output
      .progress('reading the invitation', request)
      .catch((error) => {
        if (!isFault(error, 'PLATFORM_NOT_FOUND')) throw error
        throw explained(error, {
          detail: 'No invitation was issued under this Operation ID.',
          next: 'Check the identifier, or run `svc invite` with it.',
        })
      })
    await context.output.result(found, [
      `${found.invitationId}  ${context.output.bold(found.state)}`,
      `${printable(found.operatorName)} as ${found.role} at ${scopeText(found.scope)}`,
      ...(found.workload ? [`For a workload of ${printable(found.workload.providerId)}.`] : []),
      `Issued ${formatTimestamp(BigInt(found.createdAtMicros))}, ` +
        `expires ${formatTimestamp(BigInt(found.expiresAtMicros))}.`,
    ])
  },
})

const revoke: CommandSpec = command({
  name: 'invitations revoke',
  summary: 'Revoke an invitation that was not used',
  details: ['The command may be repeated. A used invitation cannot be revoked.'],
  positionals: [{ name: 'INVITATION', description: 'The opi_ identifier', required: true }],
  options: {},
  examples: ['svc invitations revoke opi_...'],
  async run(context, _, [invitationId]) {
    if (!isId('opi', invitationId)) throw usage('INVITATION needs an opi_ identifier.', revoke)
    const request = revokeUnused(await OperatorSession.open(context), invitationId)
    await context.output.progress('revoking the invitation', request)
    await context.output.result({ version: 1, invitationId, revoked: true }, [
      `Revoked ${invitationId}.`,
    ])
  },
})

async function revokeUnused(session: OperatorSession, invitationId: InvitationId): Promise<void> {
  try {
    await session.call(revokeInvitation, { params: { invitationId } })
  } catch (error) {
    if (!isFault(error, 'PLATFORM_CONFLICT')) throw error
    throw explained(error, {
      detail: 'The invitation was used.',
      next: 'Revoke the session of the new operator with `svc sessions revoke` instead.',
    })
  }
}

export const invitationCommands: readonly CommandSpec[] = [show, revoke]
