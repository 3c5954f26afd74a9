/** Invitations of workloads, which contain an identity instead of a code. */
import { lockSubject } from '../database/advisory-locks.ts'
import { type ExternalIdentity, lockLinkedOperator } from '../database/identity/identities.ts'
import type { Tx } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import { externalIdentity } from './oidc/subjects.ts'
import type { TokenVerifier } from './oidc/tokens.ts'

/** A subject of a workload provider, as an operator writes it. */
export interface WorkloadSubject {
  readonly providerId: string
  /** `sub` of its tokens. */
  readonly subject: string
}

export interface WorkloadCore {
  /** Verifiers of the configured workload providers. */
  readonly workloads: readonly TokenVerifier[]
}

/** Throws PLATFORM_REQUEST_INVALID for a provider that is not configured. */
export function workloadIdentity(
  { workloads }: WorkloadCore,
  { providerId, subject }: WorkloadSubject,
): ExternalIdentity {
  const verifier = workloads.find(({ provider }) => provider.providerId === providerId)
  if (verifier !== undefined) return externalIdentity(verifier.provider, subject)
  const violation = { path: 'workload.providerId', rule: 'a configured workload provider' }
  throw new Fault('PLATFORM_REQUEST_INVALID', { violations: [violation] })
}

/**
 * Locks the identity until the end of the transaction. Throws PLATFORM_CONFLICT where it belongs to
 * an operator: its next login would not consume an invitation.
 */
export async function lockUnlinkedIdentity(tx: Tx, identity: ExternalIdentity): Promise<void> {
  await lockSubject(tx, identity.subjectDigest)
  if ((await lockLinkedOperator(tx, identity)) === null) return
  throw new Fault('PLATFORM_CONFLICT', { detail: 'the workload is linked already' })
}
