/**
 * Calls of the page that give an operator rights. The server lets a session give only what it
 * holds, so each of these calls has a session of its own, which ends with it.
 */
import { isFault } from '../../errors/fault.ts'
import { isRole, type Role } from '../../value/capabilities.ts'
import { INSTALLATION, type Scope } from '../../value/scope.ts'
import { isJsonObject, type Json } from '../../value/strict-json.ts'
import { issueInvitation } from '../../wire/operations/identity/invitations.ts'
import { changeGrant } from '../../wire/operations/identity/operators.ts'
import type { ManagementOperation } from '../../wire/operations/operation.ts'
import { explained } from '../explanations.ts'
import type { AnyInput } from '../requests/operation-requests.ts'

export interface Delegation {
  readonly role: Role
  /** The scope of the session that may give the role. */
  readonly scope: Scope
}

/** Returns what a call gives; null if it gives nothing. The server checks the scope. */
export function delegationOf(
  { name }: ManagementOperation,
  body: Json | undefined,
): Delegation | null {
  if (body === undefined || !isJsonObject(body)) return null
  const { role, scope } = body
  if (typeof role !== 'string' || !isRole(role)) return null
  if (name === issueInvitation.name && scope !== undefined && isJsonObject(scope)) {
    return { role, scope: scope as unknown as Scope }
  }
  // It also needs operators:manage at the installation.
  return name === changeGrant.name ? { role, scope: INSTALLATION } : null
}

/** Names the way to an invitation whose response was lost, and its code with it. */
export async function withLookUp<T>(
  { name }: ManagementOperation,
  { operationId }: AnyInput,
  sending: Promise<T>,
): Promise<T> {
  try {
    return await sending
  } catch (error) {
    const isLost = isFault(
      error,
      'CLIENT_RESULT_UNCERTAIN',
      'CLIENT_RESPONSE_INVALID',
      'PLATFORM_IDENTITY_RESULT_UNCERTAIN',
    )
    if (!isLost || name !== issueInvitation.name || operationId === undefined) throw error
    const next =
      `Look it up with \`svc invitations show ${operationId}\`. If it exists, its code is lost: ` +
      'revoke it, then invite again.'
    throw explained(error, { next })
  }
}
