/**
 * Exchanges a single-use code for an operator, a grant and a first session, in one transaction. If
 * it fails, the code remains valid.
 */
import { insertGrant } from '../database/identity/grants.ts'
import {
  type Invitation,
  lockInvitationByDigest,
  markInvitationConsumed,
} from '../database/identity/invitations.ts'
import { lockIfEnabled } from '../database/identity/operator-records.ts'
import { anyOperatorExists, insertOperator } from '../database/identity/operators.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import { recordAudit } from './audit.ts'
import type { IdentityCore, Origin } from './core.ts'
import { isOwnerRecovery } from './owner-recovery.ts'
import { type Login, openSession } from './sessions.ts'

export interface ExchangeInput extends Origin {
  readonly code: string
  readonly deviceName: string | null
  /** Only with a bootstrap code; null for the default. */
  readonly operatorName: string | null
}

const FIRST_OPERATOR_NAME = 'owner'

/** Throws PLATFORM_AUTHENTICATION_FAILED for a wrong, expired, revoked or consumed code. */
export async function exchange(core: IdentityCore, input: ExchangeInput): Promise<Login> {
  const digest = digestCode(core, input.code)
  return transaction(core.database, async (tx) => {
    const atMicros = core.system.nowMicros()
    const invitation = await lockUsableInvitation(tx, digest, atMicros)
    return consumeInvitation(core, tx, invitation, input, atMicros)
  })
}

/** Throws PLATFORM_AUTHENTICATION_FAILED for a text that does not have the form of a code. */
export function digestCode({ credentials }: IdentityCore, code: string): Uint8Array {
  const digest = credentials.digestInvitationCode(code)
  if (digest === null) throw rejection('not the form of a code')
  return digest
}

/** Locks the invitation of a valid code. Throws PLATFORM_AUTHENTICATION_FAILED for others. */
export async function lockUsableInvitation(
  tx: Tx,
  digest: Uint8Array,
  atMicros: bigint,
): Promise<Invitation> {
  const invitation = await lockInvitationByDigest(tx, digest)
  if (invitation === null) throw rejection('unknown code')
  if (invitation.state !== 'pending') throw rejection(`code is ${invitation.state}`)
  if (invitation.expiresAtMicros <= atMicros) throw rejection('code is expired')
  // An operator exists already, so this code must not create a second first owner.
  if (invitation.kind === 'bootstrap' && (await anyOperatorExists(tx))) {
    if (!(await isOwnerRecovery(tx, invitation))) {
      throw rejection('bootstrap after an operator exists')
    }
  }
  return invitation
}

/**
 * Creates the operator of a locked invitation, with its grant and a first session. Throws
 * PLATFORM_AUTHENTICATION_FAILED where the creator of the invitation is disabled.
 */
export async function consumeInvitation(
  core: IdentityCore,
  tx: Tx,
  invitation: Invitation,
  given: Omit<ExchangeInput, 'code'> & { readonly isRenewable?: boolean },
  atMicros: bigint,
): Promise<Login> {
  const { invitationId, kind, createdBy } = invitation
  const { deviceName, operatorName, requestId, isRenewable = true } = given
  if (kind === 'delegated' && operatorName !== null) {
    const violation = { path: 'operatorName', rule: 'only with a bootstrap code' }
    throw new Fault('PLATFORM_REQUEST_INVALID', { violations: [violation] })
  }
  // A disabled operator must not return under another name.
  if (createdBy !== null && !(await lockIfEnabled(tx, createdBy))) {
    throw rejection('the creator of the invitation is disabled')
  }
  const operator = await insertOperator(tx, {
    operatorId: core.system.ids.make('opr'),
    operatorName: invitation.operatorName ?? operatorName ?? FIRST_OPERATOR_NAME,
    createdAtMicros: atMicros,
  })
  const grant = {
    scope: invitation.scope,
    capabilities: invitation.capabilities,
    source: kind === 'bootstrap' ? ('bootstrap' as const) : ('invitation' as const),
  }
  await insertGrant(tx, operator.operatorId, grant, atMicros)
  await markInvitationConsumed(tx, invitationId, operator.operatorId, atMicros)
  const opened = { operator, grants: [grant], deviceName, atMicros, isRenewable }
  const login = await openSession(core, tx, opened)
  const facts = { actor: operator.operatorId, atMicros, requestId, invitationId }
  const sessionId = login.session.sessionId
  const consumed = kind === 'bootstrap' ? 'bootstrap.consume' : 'invitation.consume'
  await recordAudit(tx, core.system, consumed, { ...facts, subject: invitationId, sessionId })
  await recordAudit(tx, core.system, 'session.create', { ...facts, subject: sessionId, sessionId })
  return login
}

function rejection(detail: string): Fault {
  return new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail })
}
