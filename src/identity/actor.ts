/** The operator of a management request, with the grants loaded for this request. */
import type { Grant } from '../database/identity/grants.ts'
import type { Operator } from '../database/identity/operators.ts'
import type { Derivation, Session } from '../database/identity/sessions.ts'
import { Fault } from '../errors/fault.ts'
import type { Capability, SessionPurpose } from '../value/capabilities.ts'
import type { CredentialId, OperatorId, SessionId } from '../value/ids.ts'
import { type Scope, scopeContains, scopeIntersection } from '../value/scope.ts'

export type { Grant }

export interface Actor {
  readonly operatorId: OperatorId
  readonly operatorName: string
  readonly sessionId: SessionId
  /** The purpose of a derived session; null for the session of a login. */
  readonly purpose: SessionPurpose | null
  readonly operator: Operator
  readonly session: Session
  /** Those of the operator, within the bounds of a derived session. */
  readonly grants: readonly Grant[]
}

/** The identity that the audit record of a change names. */
export type RecordedActor = Pick<Actor, 'operatorId' | 'sessionId' | 'purpose'>

/** An application credential that changes a Workspace with its development key. */
export interface RecordedCredential {
  readonly credentialId: CredentialId
}

/** The operator or the application credential that the audit record of a change names. */
export type RecordedAuthor = RecordedActor | RecordedCredential

/** Returns the part of the operator's grants that a derived session has. */
export function grantsWithin(
  grants: readonly Grant[],
  { scope, capabilities }: Pick<Derivation, 'scope' | 'capabilities'>,
): Grant[] {
  return grants.flatMap((grant) => {
    const within = scopeIntersection(grant.scope, scope)
    const held = grant.capabilities.filter((each) => capabilities.includes(each))
    return within === null || held.length === 0
      ? []
      : [{ ...grant, scope: within, capabilities: held }]
  })
}

export function holds(actor: Actor, capability: Capability, scope: Scope): boolean {
  return actor.grants.some(
    (grant) => grant.capabilities.includes(capability) && scopeContains(grant.scope, scope),
  )
}

/**
 * Throws PLATFORM_ACCESS_DENIED unless the actor holds the capability at some scope. An actor that
 * holds it at no scope must not learn from another error which records exist.
 */
export function requireCapabilitySomewhere(actor: Actor, capability: Capability): void {
  if (!actor.grants.some((grant) => grant.capabilities.includes(capability))) {
    throw denied(capability, 'at any scope')
  }
}

/** Throws PLATFORM_ACCESS_DENIED unless the actor holds the capability at the scope. */
export function requireCapability(actor: Actor, capability: Capability, scope: Scope): void {
  if (!holds(actor, capability, scope)) {
    throw denied(capability, SCOPES[scope.kind])
  }
}

const SCOPES: Readonly<Record<Scope['kind'], string>> = {
  installation: 'at the installation',
  project: 'at the Project',
  environment: 'at the Environment',
}

/**
 * Names the missing capability, which is public (contract/management.md, Roles and capabilities),
 * and the kind of the scope only.
 */
function denied(capability: Capability, where: string): Fault {
  return new Fault('PLATFORM_ACCESS_DENIED', {
    detail: `lacks ${capability} ${where}`,
    violations: [{ path: 'capability', rule: `${capability} ${where}` }],
  })
}
