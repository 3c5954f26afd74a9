/**
 * Grants of a trusted control plane: it owns its subset of an operator's grants and replaces it
 * whole, in the order of its own revisions. Grants of other origins are none of its business, but
 * for those from before there were origins (Document 1, Managed grant source).
 */
import type { Grant } from '../database/identity/grants.ts'
import { hasIdentity } from '../database/identity/identities.ts'
import {
  deleteLegacyGrants,
  ensureManagedSource,
  findManagedRevision,
  putManagedRevision,
  replaceManagedGrants,
} from '../database/identity/managed-sources.ts'
import {
  lockOperator,
  type Operator,
  raiseAuthorizationRevision,
} from '../database/identity/operators.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import { digestEquals, sha256 } from '../system/digests.ts'
import { canonicalJson } from '../value/canonical-json.ts'
import { capabilitiesOfRole, type Role } from '../value/capabilities.ts'
import type { OperatorId } from '../value/ids.ts'
import type { Scope } from '../value/scope.ts'
import type { Secret } from '../value/secret.ts'
import { recordAudit } from './audit.ts'
import type { IdentityCore, Origin } from './core.ts'

/** The control plane as it is configured. */
export interface ManagedSource {
  readonly enrollmentToken: Secret
  /** Canonical HTTPS origin that owns the revisions. */
  readonly authority: string
}

/** One revision of the grants of one operator, as the managed source states them. */
export interface ManagedGrants {
  /** 1 to 2^64 - 1. */
  readonly sourceRevision: bigint
  /** Inside of Projects; the complete set. */
  readonly grants: readonly {
    readonly scope: Exclude<Scope, { kind: 'installation' }>
    readonly role: Role
  }[]
}

export interface Reconciliation {
  readonly applied: boolean
  /** True if this revision, with equal grants, was applied before. */
  readonly replayed: boolean
  readonly sourceRevision: bigint
  readonly authorizationRevision: bigint
}

/** Neither blank nor comma, so two headers that were joined fail like a wrong one. */
const ENROLLMENT = /^Bearer ([\x21-\x2b\x2d-\x7e]{32,8192})$/

/**
 * `header` is `service-managed-enrollment`. Throws PLATFORM_AUTHENTICATION_FAILED unless it holds
 * the configured token.
 */
export function requireEnrollmentToken(
  source: ManagedSource | null,
  header: string | null,
): asserts source is ManagedSource {
  const presented = ENROLLMENT.exec(header ?? '')?.[1]
  // Digests have one length, so the comparison tells nothing about the token's.
  const right =
    source !== null &&
    presented !== undefined &&
    digestEquals(sha256(presented), sha256(source.enrollmentToken.reveal()))
  if (!right) {
    throw new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail: 'no managed enrollment token' })
  }
}

export interface ReconciliationInput extends Origin, ManagedGrants {
  readonly operatorId: OperatorId
}

/**
 * For a caller that has shown the source's token. Throws PLATFORM_NOT_FOUND,
 * PLATFORM_MANAGED_SOURCE_STALE and PLATFORM_MANAGED_SOURCE_CONFLICT.
 */
export async function reconcileGrants(
  core: IdentityCore,
  source: ManagedSource,
  input: ReconciliationInput,
): Promise<Reconciliation> {
  return transaction(core.database, async (tx) => {
    const operator = await lockOperator(tx, input.operatorId)
    if (operator === null) throw new Fault('PLATFORM_NOT_FOUND', { detail: 'unknown operator' })
    return reconcile(core, tx, { source, operator, ...input, atMicros: core.system.nowMicros() })
  })
}

/** In the transaction that has locked the operator, or made it. Throws like reconcileGrants. */
export async function reconcile(
  { system }: IdentityCore,
  tx: Tx,
  input: ManagedGrants &
    Origin & {
      readonly source: ManagedSource
      readonly operator: Operator
      readonly atMicros: bigint
    },
): Promise<Reconciliation> {
  const { operator, sourceRevision, atMicros, requestId } = input
  const { operatorId } = operator
  const { authority } = input.source
  const made = { sourceId: system.ids.make('mgs'), authority }
  const sourceId = await ensureManagedSource(tx, made, atMicros)
  const { grants, contentDigest } = normalize(input.grants)
  const last = await findManagedRevision(tx, sourceId, operatorId)
  if (last !== null && sourceRevision <= last.sourceRevision) {
    if (sourceRevision < last.sourceRevision) throw new Fault('PLATFORM_MANAGED_SOURCE_STALE')
    if (!digestEquals(contentDigest, last.contentDigest)) {
      throw new Fault('PLATFORM_MANAGED_SOURCE_CONFLICT')
    }
    const { authorizationRevision } = operator
    return { applied: false, replayed: true, sourceRevision, authorizationRevision }
  }
  const facts = { actor: null, subject: operatorId, atMicros, requestId }
  // Only what the provider vouches for: an operator of this server alone keeps its old grants.
  const adopted = (await hasIdentity(tx, operatorId)) ? await deleteLegacyGrants(tx, operatorId) : 0
  await replaceManagedGrants(tx, sourceId, operatorId, grants, atMicros)
  await putManagedRevision(tx, sourceId, operatorId, { sourceRevision, contentDigest }, atMicros)
  const authorizationRevision = await raiseAuthorizationRevision(tx, operatorId)
  if (adopted > 0) await recordAudit(tx, system, 'grants.adopt_legacy', facts)
  await recordAudit(tx, system, 'grants.reconcile', facts)
  return { applied: true, replayed: false, sourceRevision, authorizationRevision }
}

/** One grant for each scope, whatever the order and repetition that it was sent in. */
function normalize(sent: ManagedGrants['grants']): {
  readonly grants: readonly Omit<Grant, 'source'>[]
  readonly contentDigest: Uint8Array
} {
  const byScope = new Map<string, { scope: Scope; roles: Set<Role> }>()
  for (const { scope, role } of sent) {
    const key = `${scope.projectId}/${scope.environmentId ?? ''}`
    const entry = byScope.get(key) ?? { scope, roles: new Set() }
    byScope.set(key, entry)
    entry.roles.add(role)
  }
  const entries = [...byScope].sort(([a], [b]) => (a < b ? -1 : 1))
  const content = entries.map(([key, { roles }]) => [key, ...[...roles].sort()])
  const grants = entries.map(([, { scope, roles }]) => ({
    scope,
    capabilities: [...new Set([...roles].flatMap(capabilitiesOfRole))].sort(),
  }))
  return { grants, contentDigest: sha256(canonicalJson(content)) }
}
