/**
 * The policy of environment:default: the Releases that serve it and the share of callers of each.
 * They share the documents, so each Release must read what every other one writes.
 */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import {
  findDesiredPolicy,
  insertPolicy,
  type ServingMode,
  type WeightedRelease,
} from '../../storage/control/serving-policy.ts'
import type { OperationId, RequestId } from '../../value/ids.ts'
import { POLICY_RELEASES_MAX, WEIGHTS_TOTAL } from '../../value/targets.ts'
import type { ServingPolicy } from '../../wire/serving-policy.ts'
import {
  type RequiredMigrationsPorts,
  requireMigrated,
} from '../compatibility/required-migrations.ts'
import { requireMutuallyCompatible } from '../compatibility/schema-evidence.ts'
import {
  requireStoredDocumentsFit,
  type StoredDocumentsPorts,
} from '../compatibility/stored-documents.ts'
import { type Applied, applyOnce, isApplied } from '../idempotency/idempotency-records.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { requireServable } from '../releases/servable.ts'
import type { Serving } from './serving.ts'

interface ObservedPolicyPort {
  readonly serving: Pick<Serving, 'observedPolicy'>
}

export interface PolicyPorts extends ChangePorts, StoredDocumentsPorts {
  readonly engine: StoredDocumentsPorts['engine'] & RequiredMigrationsPorts['engine']
  readonly serving: Pick<Serving, 'observedPolicy' | 'followPolicy'>
}

const NO_POLICY = { revision: 0n, mode: 'atomic', releases: [] } as const

/** Stored as JSON with its idempotency record, so revisions and times are decimal text. */
export type PolicyState = Omit<ServingPolicy, 'version'>

export interface SetPolicyInput {
  readonly operationId: OperationId
  /** 0 for the first policy. */
  readonly expectedRevision: bigint
  readonly mode: ServingMode
  readonly releases: readonly WeightedRelease[]
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

/** Returns the policy; revision 0 without Releases if no policy was ever set. */
export function readServingPolicy(ports: RootPort & ObservedPolicyPort): PolicyState {
  return stateOf(ports, ports.root.control.read(findDesiredPolicy) ?? NO_POLICY)
}

/**
 * Returns the state right after the commit; environment:default switches once every Release is
 * ready. Throws PRODUCT_CAS_CONFLICT for another revision than the expected one, PRODUCT_INVALID,
 * PRODUCT_OPERATION_REUSED, and what requireServable, requireMutuallyCompatible and
 * requireStoredDocumentsFit throw.
 */
export async function setServingPolicy(
  ports: PolicyPorts,
  actor: Actor,
  input: SetPolicyInput,
): Promise<Applied<PolicyState>> {
  const { operationId, expectedRevision, mode, changedAtMicros, requestId } = input
  const releases = input.releases.map(({ releaseId, weight }) => ({ releaseId, weight }))
  requireWeights(mode, releases)
  if (!isApplied(ports, operationId)) await requireCompatible(ports, releases)
  const intent = {
    operationId,
    kind: 'serving_policy.set',
    request: { mode, releases, expectedRevision: String(expectedRevision) },
    changedAtMicros,
    subject: `${ports.root.descriptor.environmentId}:${expectedRevision + 1n}`,
    requestId,
  } as const
  const applied = applyOnce(ports, actor, intent, (tx) => {
    const current = findDesiredPolicy(tx)?.revision ?? 0n
    if (current !== expectedRevision) {
      throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `revision ${current}` })
    }
    requireAllServable(tx, releases)
    const policy = {
      revision: current + 1n,
      mode,
      releases,
      changedAtMicros: ports.system.nowMicros(),
    }
    insertPolicy(tx, policy)
    advanceRevision(tx)
    return { result: stateOf(ports, policy), revision: policy.revision }
  })
  ports.serving.followPolicy()
  return applied
}

function requireWeights(mode: ServingMode, releases: readonly WeightedRelease[]): void {
  if (releases.length === 0 || releases.length > POLICY_RELEASES_MAX) {
    throw invalid('releases', `1 to ${POLICY_RELEASES_MAX} Releases`)
  }
  if (mode === 'atomic' && releases.length !== 1) {
    throw invalid('releases', 'one Release in the mode atomic')
  }
  if (releases.some(({ releaseId }, i) => i > 0 && releases[i - 1]!.releaseId >= releaseId)) {
    throw invalid('releases', 'sorted by releaseId, each once')
  }
  const total = releases.reduce((sum, { weight }) => sum + weight, 0)
  if (total !== WEIGHTS_TOTAL || releases.some(({ weight }) => weight < 1)) {
    throw invalid('releases', `weights from 1 that are ${WEIGHTS_TOTAL} together`)
  }
}

function requireAllServable(reader: ControlReader, releases: readonly WeightedRelease[]): void {
  for (const [i, { releaseId }] of releases.entries()) {
    requireServable(reader, releaseId, `releases[${i}].releaseId`)
  }
}

/**
 * Checks the Releases before the transaction, because the checks read artifacts. Their content
 * never changes, so the result stays valid.
 */
async function requireCompatible(
  ports: PolicyPorts,
  releases: readonly WeightedRelease[],
): Promise<void> {
  ports.root.control.read((reader) => requireAllServable(reader, releases))
  for (const { releaseId } of releases) await requireMigrated(ports, releaseId)
  await requireMutuallyCompatible(ports, releases)
  for (const { releaseId } of releases) await requireStoredDocumentsFit(ports, releaseId)
}

function stateOf(
  { serving }: ObservedPolicyPort,
  {
    revision,
    mode,
    releases,
  }: {
    readonly revision: bigint
    readonly mode: ServingMode
    readonly releases: readonly WeightedRelease[]
  },
): PolicyState {
  const observed = serving.observedPolicy
  return {
    desired: { revision: String(revision), mode, releases: [...releases] },
    observed: {
      revision: String(observed?.revision ?? 0n),
      convergedAtMicros: observed === null ? null : String(observed.convergedAtMicros),
    },
  }
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}
