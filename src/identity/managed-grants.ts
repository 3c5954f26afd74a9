/**
 * Grants of a trusted control plane. It owns a subset of an operator's grants and replaces the
 * whole subset, in the order of its own revisions. It does not change grants of other origins,
 * except legacy grants without an origin (contract/management.md, Managed grant sources).
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

/** A revision of the grants of one operator, as the managed source states them. */
export interface ManagedGrants {
  /** 1 to 2^64 - 1. */
  readonly sourceRevision: bigint
  /** The complete set, within Projects. */
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

/** Contains neither blank nor comma, so two joined headers do not match. */
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
  // Digests have a fixed length, so the comparison does not reveal the length of the token.
  const isValid =
    source !== null &&
    presented !== undefined &&
    digestEquals(sha256(presented), sha256(source.enrollmentToken.reveal()))
  if (!isValid) {
    throw new Fault('PLATFORM_AUTHENTICATION_FAILED', {
      detail: 'the managed enrollment token is missing or wrong',
    })
  }
}

export interface ReconciliationInput extends Origin, ManagedGrants {
  readonly operatorId: OperatorId
}

/**
 * Applies a revision of the source. The caller has checked the token of the source. Throws
 * PLATFORM_NOT_FOUND, PLATFORM_MANAGED_SOURCE_STALE and PLATFORM_MANAGED_SOURCE_CONFLICT.
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

/** Applies a revision in the transaction that locked or created the operator. */
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
  // Only for operators with an external identity; the others keep their legacy grants.
  const adopted = (await hasIdentity(tx, operatorId)) ? await deleteLegacyGrants(tx, operatorId) : 0
  await replaceManagedGrants(tx, sourceId, operatorId, grants, atMicros)
  await putManagedRevision(tx, sourceId, operatorId, { sourceRevision, contentDigest }, atMicros)
  const authorizationRevision = await raiseAuthorizationRevision(tx, operatorId)
  if (adopted > 0) await recordAudit(tx, system, 'grants.adopt_legacy', facts)
  await recordAudit(tx, system, 'grants.reconcile', facts)
  return { applied: true, replayed: false, sourceRevision, authorizationRevision }
}

/** Merges the grants to one for each scope, independent of their order and repetition. */
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
