/** `svc invitations`: the look-up of an issuance, and revocation. Issuing is invite.ts. */
import { Fault, isFault } from '../../../errors/fault.ts'
import { type InvitationId, isId, type OperationId } from '../../../value/ids.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import { InvitationOperation } from '../../../wire/access.ts'
import { usage } from '../../arguments.ts'
import { type CommandSpec, command } from '../../contexts.ts'
import { OperatorSession } from '../../sessions.ts'
import { printable } from '../../visible-text.ts'
import { scopeText } from './scopes.ts'

const show: CommandSpec = command({
  name: 'invitations show',
  summary: 'Look up what became of an issuance',
  details: [
    'Ends with 7 where the server has committed nothing under this Operation ID. The code is never',
    'shown again: where it did not arrive, revoke the invitation and issue a new one.',
  ],
  positionals: [{ name: 'OPERATION', description: 'The opn_ identifier', required: true }],
  options: {},
  examples: ['svc invitations show opn_...'],
  async run(context, _, [operationId]) {
    if (!isId('opn', operationId)) throw usage('OPERATION is an opn_ identifier.', show)
    const request = readInvitation(await OperatorSession.open(context), operationId)
    const found = await context.output.progress('reading the invitation', request)
    await context.output.result(found, [
      `${found.invitationId}  ${context.output.bold(found.state)}`,
      `${printable(found.operatorName)} as ${found.role} at ${scopeText(found.scope)}`,
      ...(found.workload ? [`For a workload of ${printable(found.workload.providerId)}.`] : []),
      `Issued ${formatTimestamp(BigInt(found.createdAtMicros))}, ` +
        `until ${formatTimestamp(BigInt(found.expiresAtMicros))}.`,
    ])
  },
})

export function readInvitation(
  session: OperatorSession,
  operationId: OperationId,
): Promise<InvitationOperation> {
  return session.management({
    method: 'GET',
    path: `/v1/access/invitation-operations/${operationId}`,
    reply: InvitationOperation,
    replay: 'safe',
  })
}

const revoke: CommandSpec = command({
  name: 'invitations revoke',
  summary: 'Make an unused invitation worthless',
  details: ['May be repeated. An invitation that was used cannot be revoked.'],
  positionals: [{ name: 'INVITATION', description: 'The opi_ identifier', required: true }],
  options: {},
  examples: ['svc invitations revoke opi_...'],
  async run(context, _, [invitationId]) {
    if (!isId('opi', invitationId)) throw usage('INVITATION is an opi_ identifier.', revoke)
    const request = revokeInvitation(await OperatorSession.open(context), invitationId)
    await context.output.progress('revoking the invitation', request)
    await context.output.result({ version: 1, invitationId, revoked: true }, [
      `Revoked ${invitationId}.`,
    ])
  },
})

async function revokeInvitation(
  session: OperatorSession,
  invitationId: InvitationId,
): Promise<void> {
  try {
    await session.management({
      method: 'DELETE',
      path: `/v1/access/invitations/${invitationId}`,
      reply: null,
      replay: 'safe',
    })
  } catch (error) {
    if (!isFault(error, 'PLATFORM_CONFLICT')) throw error
    throw new Fault('PLATFORM_CONFLICT', {
      detail: 'The invitation was used; revoke the session or the grants of the new operator.',
      cause: error.cause,
    })
  }
}

export const invitationCommands: readonly CommandSpec[] = [show, revoke]
