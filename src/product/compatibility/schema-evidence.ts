/** Compatibility of the Releases of one serving policy, and the evidence of it for operators. */
import { Fault } from '../../errors/fault.ts'
import { findDesiredPolicy } from '../../storage/control/serving-policy.ts'
import type { SingleFlight } from '../../system/concurrency.ts'
import { sha256 } from '../../system/digests.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { digestName } from '../../value/packages/workspace-package.ts'
import type { Json } from '../../value/strict-json.ts'
import type { LoadedRelease, ReleasesPort, RootPort } from '../ports.ts'
import { refusalText } from './comparison/refusals.ts'
import { SchemaComparison } from './comparison/schema-comparison.ts'

export interface SchemaEvidence {
  readonly compatible: boolean
  /** The Releases of the desired policy, sorted by ID. The hashes are `sha256:<hex>`. */
  readonly releases: readonly {
    readonly releaseId: ReleaseId
    readonly schemaHash: string
    readonly indexHash: string
    readonly cronHash: string
  }[]
}

export interface SchemaEvidencePorts extends RootPort, ReleasesPort {
  /** The evidence by the revision of the desired policy. */
  readonly schemaEvidence: Pick<SingleFlight<bigint, SchemaEvidence>, 'get'>
}

interface PolicyRelease {
  readonly releaseId: ReleaseId
}

/** Maximum number of changes that one PRODUCT_INCOMPATIBLE lists. */
const CONFLICTS_SHOWN = 5

/**
 * Reads the evidence for the desired policy. Throws PRODUCT_CORRUPT and PRODUCT_UNAVAILABLE if an
 * artifact cannot be read.
 */
export function readSchemaEvidence(ports: SchemaEvidencePorts): Promise<SchemaEvidence> {
  const policy = ports.root.control.read(findDesiredPolicy)
  // Neither the policy of a revision nor a Release ever changes.
  return ports.schemaEvidence.get(policy?.revision ?? 0n, () =>
    collectEvidence(ports, policy?.releases ?? []),
  )
}

/**
 * Throws PRODUCT_INCOMPATIBLE unless each Release reads what every other one writes, and what
 * ReleaseCache.load throws.
 */
export async function requireMutuallyCompatible(
  ports: ReleasesPort,
  releases: readonly PolicyRelease[],
): Promise<void> {
  const conflicts = findConflicts(await loadAll(ports, releases))
  if (conflicts.length === 0) return
  const violations = conflicts.map((rule) => ({ path: 'releases', rule }))
  throw new Fault('PRODUCT_INCOMPATIBLE', { violations })
}

async function collectEvidence(
  ports: ReleasesPort,
  releases: readonly PolicyRelease[],
): Promise<SchemaEvidence> {
  const loaded = await loadAll(ports, releases)
  return {
    compatible: findConflicts(loaded).length === 0,
    releases: loaded.map(({ releaseId, manifest: { tables, crons = [] } }) => ({
      releaseId,
      schemaHash: hashOf(tables.map(({ name, fields }) => ({ name, fields }))),
      indexHash: hashOf(tables.map(({ name, indexes }) => ({ name, indexes }))),
      cronHash: hashOf(crons),
    })),
  }
}

function loadAll(
  { releases }: ReleasesPort,
  named: readonly PolicyRelease[],
): Promise<LoadedRelease[]> {
  return Promise.all(named.map(({ releaseId }) => releases.load(releaseId)))
}

/**
 * Returns up to CONFLICTS_SHOWN changes that keep one Release from writing beside another. The IDs
 * of Releases are in the order of their publication.
 */
function findConflicts(releases: readonly LoadedRelease[]): string[] {
  const comparison = new SchemaComparison()
  const conflicts: string[] = []
  for (const reader of releases) {
    for (const writer of releases) {
      if (reader === writer) continue
      const newer = reader.releaseId > writer.releaseId ? 'reader' : 'writer'
      const pair = { reader: reader.tables, writer: writer.tables, newer } as const
      for (const refusal of comparison.conflicts(pair)) {
        const pairText = `${writer.releaseId} writes what ${reader.releaseId} rejects`
        conflicts.push(`${pairText}: ${refusalText(refusal)}`)
        if (conflicts.length === CONFLICTS_SHOWN) return conflicts
      }
    }
  }
  return conflicts
}

function hashOf(part: readonly object[]): string {
  return digestName(sha256(canonicalJson(part as unknown as Json)))
}
