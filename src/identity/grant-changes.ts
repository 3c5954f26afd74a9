/**
 * Changes of the grants of an operator by another one. A grant of a managed source is not changed
 * here: its source would give it again.
 */
import { lockOwners } from '../database/advisory-locks.ts'
import { type Grant, listGrants, replaceGrant } from '../database/identity/grants.ts'
import { hasOtherOwner, lockOperatorState } from '../database/identity/operator-records.ts'
import { raiseAuthorizationRevision } from '../database/identity/operators.ts'
import { transaction } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import { type Capability, capabilitiesOfRole, type Role } from '../value/capabilities.ts'
import type { OperatorId } from '../value/ids.ts'
import { INSTALLATION, type Scope, scopeEquals } from '../value/scope.ts'
import { type Actor, requireCapability } from './actor.ts'
import { recordAudit } from './audit.ts'
import type { IdentityCore, Origin } from './core.ts'
import { lockActor } from './sessions.ts'

export interface GrantChange extends Origin {
  readonly operatorId: OperatorId
  readonly scope: Scope
  /** The role whose capabilities the grant gets; null revokes it. */
  readonly role: Role | null
  /** The capabilities that the caller saw at the scope; null for no grant. */
  readonly expectedCapabilities: readonly Capability[] | null
}

export interface GrantChanged {
  /** False if the grant was as wanted already, as in a repeat. */
  readonly applied: boolean
  /** All grants of the operator after it. */
  readonly grants: readonly Grant[]
}

/**
 * Gives an operator a role at a scope in place of the grant that it has there, or revokes that
 * grant. The actor holds `operators:manage` at the installation, and every capability that it gives
 * at the scope. Throws PLATFORM_ACCESS_DENIED, PLATFORM_NOT_FOUND, PLATFORM_CONFLICT where the
 * grant is not the expected one and where no owner would remain, and PLATFORM_AUTHENTICATION_FAILED
 * where the actor's session ended meanwhile.
 */
export async function changeGrant(
  core: IdentityCore,
  actor: Actor,
  change: GrantChange,
): Promise<GrantChanged> {
  const { operatorId, scope, role, requestId } = change
  requireCapability(actor, 'operators:manage', INSTALLATION)
  return transaction(core.database, async (tx) => {
    await lockOwners(tx)
    // The change that this one waited for may have taken the actor's authority away.
    const current = await lockActor(core, tx, actor.sessionId)
    requireCapability(current, 'operators:manage', INSTALLATION)
    const wanted = role === null ? null : capabilitiesOfRole(role)
    for (const capability of wanted ?? []) requireCapability(current, capability, scope)
    if ((await lockOperatorState(tx, operatorId)) === null) {
      throw new Fault('PLATFORM_NOT_FOUND', { detail: 'unknown operator' })
    }
    const before = await listGrants(tx, operatorId)
    const held = capabilitiesAt(before, scope)
    if (areEqual(held, wanted)) return { applied: false, grants: before }
    if (!areEqual(held, change.expectedCapabilities)) {
      throw new Fault('PLATFORM_CONFLICT', { detail: 'the grant is not the expected one' })
    }
    const atMicros = core.system.nowMicros()
    await replaceGrant(tx, operatorId, scope, wanted, atMicros)
    const grants = await listGrants(tx, operatorId)
    if (!grants.some(isOwnership) && !(await hasOtherOwner(tx, operatorId))) {
      throw new Fault('PLATFORM_CONFLICT', { detail: 'the last owner' })
    }
    await raiseAuthorizationRevision(tx, operatorId)
    const { sessionId, purpose } = current
    const facts = { actor: current.operatorId, subject: operatorId, atMicros, requestId }
    const operation = wanted === null ? 'grants.revoke' : 'grants.change'
    await recordAudit(tx, core.system, operation, { ...facts, sessionId, purpose })
    return { applied: true, grants }
  })
}

/** An operator has at most one grant at a scope that no managed source gives. */
function capabilitiesAt(grants: readonly Grant[], scope: Scope): readonly Capability[] | null {
  const found = grants.find((each) => each.source !== 'managed' && scopeEquals(each.scope, scope))
  return found?.capabilities ?? null
}

function areEqual(a: readonly Capability[] | null, b: readonly Capability[] | null): boolean {
  if (a === null || b === null) return a === b
  const [some, others] = [new Set(a), new Set(b)]
  return some.size === others.size && [...some].every((each) => others.has(each))
}

function isOwnership({ scope, capabilities }: Grant): boolean {
  return scope.kind === 'installation' && capabilities.includes('operators:manage')
}
