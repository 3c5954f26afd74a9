/**
 * The policy of environment:default: which Releases serve it, and to which share of its callers.
 * They share the documents, so each must take what every other one writes.
 */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import {
  findDesiredPolicy,
  insertPolicy,
  type ServingMode,
  type WeightedRelease,
} from '../../storage/control/serving-policy.ts'
import { sha256 } from '../../system/digests.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { OperationId, ReleaseId, RequestId } from '../../value/ids.ts'
import { digestName } from '../../value/packages/workspace-package.ts'
import type { Json } from '../../value/strict-json.ts'
import { POLICY_RELEASES_MAX, WEIGHTS_TOTAL } from '../../value/targets.ts'
import { requireServable } from '../channels/promote.ts'
import { SchemaComparison } from '../compatibility/schema-compatibility.ts'
import { requireFitting } from '../compatibility/stored-documents.ts'
import { type Applied, applyOnce, isApplied } from '../idempotency/idempotency-records.ts'
import type { Product } from '../product.ts'
import type { LoadedRelease } from '../releases/release-cache.ts'
import type { ServedPolicy } from './serving.ts'

type App = Pick<
  Product,
  'system' | 'root' | 'audit' | 'releases' | 'engine' | 'validations' | 'serving'
>

/** Pairs that one refusal spells out. */
const CONFLICTS_SHOWN = 5

const NO_POLICY = { revision: 0n, mode: 'atomic', releases: [] } as const

/** As it is stored with an operation that is repeated: JSON, so numbers are decimal text. */
export type PolicyState = {
  desired: { revision: string; mode: ServingMode; releases: WeightedRelease[] }
  /** Revision 0 where environment:default serves nothing. */
  observed: { revision: string; convergedAtMicros: string | null }
}

export interface SetPolicyInput {
  readonly operationId: OperationId
  /** 0 for the first policy. */
  readonly expectedRevision: bigint
  readonly mode: ServingMode
  readonly releases: readonly WeightedRelease[]
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

export interface SchemaEvidence {
  readonly compatible: boolean
  /** Of the desired policy, sorted by Release. The hashes are `sha256:<hex>`. */
  readonly releases: readonly {
    readonly releaseId: ReleaseId
    readonly schemaHash: string
    readonly indexHash: string
    readonly cronHash: string
  }[]
}

/** Revision 0 without Releases where there never was a policy. */
export function readServingPolicy(app: Pick<Product, 'root' | 'serving'>): PolicyState {
  return stateOf(app, app.root.control.read(findDesiredPolicy) ?? NO_POLICY)
}

/**
 * Answers the state right after the commit; environment:default moves once every Release is ready.
 * Throws PRODUCT_CAS_CONFLICT for another revision than the expected one, PRODUCT_INVALID,
 * PRODUCT_OPERATION_REUSED, and what requireServable and requireFitting throw.
 */
export async function setServingPolicy(
  app: App,
  actor: Actor,
  input: SetPolicyInput,
): Promise<Applied<PolicyState>> {
  const { operationId, expectedRevision, mode, changedAtMicros, requestId } = input
  const releases = input.releases.map(({ releaseId, weight }) => ({ releaseId, weight }))
  requireWeights(mode, releases)
  if (!isApplied(app, operationId)) await requireCompatible(app, releases)
  const intent = {
    operationId,
    kind: 'serving_policy.set',
    request: { mode, releases, expectedRevision: String(expectedRevision) },
    changedAtMicros,
    subject: `${app.root.descriptor.environmentId}:${expectedRevision + 1n}`,
    requestId,
  } as const
  const applied = applyOnce(app, actor, intent, (tx) => {
    const current = findDesiredPolicy(tx)?.revision ?? 0n
    if (current !== expectedRevision) {
      throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `revision ${current}` })
    }
    for (const { releaseId } of releases) requireServable(tx, releaseId)
    const policy = {
      revision: current + 1n,
      mode,
      releases,
      changedAtMicros: app.system.nowMicros(),
    }
    insertPolicy(tx, policy)
    advanceRevision(tx)
    return { result: stateOf(app, policy), revision: policy.revision }
  })
  app.serving.followPolicy()
  return applied
}

/** Throws PRODUCT_CORRUPT and PRODUCT_UNAVAILABLE where an artifact cannot be read. */
export function readSchemaEvidence(
  app: Pick<Product, 'root' | 'releases' | 'schemaEvidence'>,
): Promise<SchemaEvidence> {
  const { revision, releases } = app.root.control.read(findDesiredPolicy) ?? NO_POLICY
  // Neither the policy of a revision nor a Release ever changes.
  return app.schemaEvidence.of(revision, () => makeEvidence(app, releases))
}

async function makeEvidence(
  app: Pick<Product, 'releases'>,
  releases: readonly WeightedRelease[],
): Promise<SchemaEvidence> {
  const loaded = await loadAll(app, releases)
  return {
    compatible: findConflicts(loaded).length === 0,
    releases: loaded.map(({ releaseId, manifest: { tables } }) => ({
      releaseId,
      schemaHash: hashOf(tables.map(({ name, fields }) => ({ name, fields }))),
      indexHash: hashOf(tables.map(({ name, indexes }) => ({ name, indexes }))),
      // A manifest of this version declares no Crons.
      cronHash: hashOf([]),
    })),
  }
}

/**
 * The Release of one caller. Those with the same key stay on one Release while the weights stand,
 * and few move when they change, since the order of the shares is that of the Releases.
 */
export function pickRelease({ releases }: ServedPolicy, key: string): LoadedRelease {
  const point = sha256(key).readUIntBE(0, 6) % WEIGHTS_TOTAL
  let sum = 0
  for (const { release, weight } of releases) {
    sum += weight
    if (point < sum) return release
  }
  return releases.at(-1)!.release
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

/** Before the transaction, since artifacts are read: what is in them never changes. */
async function requireCompatible(app: App, releases: readonly WeightedRelease[]): Promise<void> {
  app.root.control.read((reader) => {
    for (const { releaseId } of releases) requireServable(reader, releaseId)
  })
  const found = findConflicts(await loadAll(app, releases))
  if (found.length > 0) {
    const violations = found.map((rule) => ({ path: 'releases', rule }))
    throw new Fault('PRODUCT_INCOMPATIBLE', { violations })
  }
  for (const { releaseId } of releases) await requireFitting(app, releaseId)
}

function loadAll({ releases }: Pick<Product, 'releases'>, named: readonly WeightedRelease[]) {
  return Promise.all(named.map(({ releaseId }) => releases.load(releaseId)))
}

/** The first pairs that conflict, as many as a violation spells out, each with its first reason. */
function findConflicts(releases: readonly LoadedRelease[]): string[] {
  const comparison = new SchemaComparison()
  const found: string[] = []
  for (const a of releases) {
    for (const b of releases) {
      if (a === b) continue
      const reason = comparison.conflict(a.tables, b.tables)
      if (reason !== null) found.push(`${a.releaseId} beside ${b.releaseId}: ${reason}`)
      if (found.length === CONFLICTS_SHOWN) return found
    }
  }
  return found
}

function stateOf(
  { serving }: Pick<Product, 'serving'>,
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

function hashOf(part: readonly object[]): string {
  return digestName(sha256(canonicalJson(part as unknown as Json)))
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}
