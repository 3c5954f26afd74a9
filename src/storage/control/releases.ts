/** Rows of releases. Callers decide what a state allows. */
import { canonicalJson } from '../../value/canonical-json.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { Provenance } from '../../value/packages/provenance.ts'
import type { ControlReader, ControlTx } from './database.ts'
import { parseProvenance } from './workspaces.ts'

export type ReleaseState = 'published' | 'validated' | 'rejected' | 'retired'

/** A finding of a validation. `detail` names the parts of the Workspace that it concerns. */
export type ReleaseCheck = {
  name: string
  outcome: 'passed' | 'failed'
  detail: string
}

export interface ReleaseRecord {
  readonly releaseId: ReleaseId
  readonly workspace: string
  readonly state: ReleaseState
  readonly packageDigest: string
  readonly manifest: StoredBytes
  readonly artifact: StoredBytes
  readonly createdAtMicros: bigint
  readonly validatedAtMicros: bigint | null
  /** The checks that decided the state; empty while published. */
  readonly checks: readonly ReleaseCheck[]
}

export interface StoredBytes {
  /** `sha256:<hex>`. */
  readonly digest: string
  readonly bytes: number
}

interface Row {
  release_id: ReleaseId
  workspace: string
  state: ReleaseState
  package_digest: string
  manifest_digest: string
  manifest_bytes: number
  artifact_digest: string
  artifact_bytes: number
  created_at: number
  validated_at: number | null
  checks: string | null
}

const COLUMNS = `release_id, workspace, state, package_digest, manifest_digest, manifest_bytes,
  artifact_digest, artifact_bytes, created_at, validated_at, checks`

export function findRelease(reader: ControlReader, id: ReleaseId): ReleaseRecord | null {
  const row = reader.get<Row>(`select ${COLUMNS} from releases where release_id = ?`, id)
  return row === null ? null : toRelease(row)
}

export function isRetired(reader: ControlReader, id: ReleaseId): boolean {
  const sql = `select 1 from releases where release_id = ? and state = 'retired'`
  return reader.get(sql, id) !== null
}

/** Returns whether a Release was ever published: rows of Releases are never deleted. */
export function hasReleases(reader: ControlReader): boolean {
  return reader.get('select 1 from releases limit 1') !== null
}

/** A Release with what its publisher declared. */
export interface ListedRelease extends ReleaseRecord {
  readonly provenance: Provenance | null
}

/** Returns the newest `limit` and all that a Channel, a policy or a Workspace HEAD references. */
export function listReleases(reader: ControlReader, limit: number): ListedRelease[] {
  return reader
    .all<Row & { provenance: string | null }>(
      `select ${COLUMNS},
              (select provenance from workspace_revisions published
                where published.release_id = releases.release_id) as provenance
         from releases
        where release_id in (select release_id from releases order by release_id desc limit ?)
           or release_id in (select release_id from channels)
           or release_id in (select release_id from serving_policy_releases)
           or release_id in (select r.release_id from workspaces w
                               join workspace_revisions r on r.revision_id = w.revision_id)
        order by release_id desc`,
      limit,
    )
    .map((row) => ({ ...toRelease(row), provenance: parseProvenance(row.provenance) }))
}

/**
 * Selects the Releases in use. Every kind of reference that keeps a Release from retirement needs
 * its select here.
 */
const USES = `select release_id, 'bound to the Channel ' || name as use from channels
   union select release_id, 'in a serving policy that is desired or served'
     from serving_policy_releases
   union select r.release_id, 'the target of the mount ' || m.name
     from http_mounts m join releases r on m.target = 'release:' || r.release_id`

/** Returns up to `limit` uses in words, such as `bound to the Channel production`. */
export function listReleaseUses(reader: ControlReader, id: ReleaseId, limit: number): string[] {
  return reader
    .all<{ use: string }>(
      `select use from (${USES}) where release_id = ? order by use limit ?`,
      id,
      limit,
    )
    .map((row) => row.use)
}

/** Returns unused Releases beyond the newest `kept`, without those of a HEAD and retired ones. */
export function listUnusedReleases(reader: ControlReader, kept: number): ReleaseId[] {
  return reader
    .all<{ release_id: ReleaseId }>(
      `select release_id from releases
        where state <> 'retired'
          and release_id not in (select release_id from releases where state <> 'retired'
                                  order by release_id desc limit ?)
          and release_id not in (select release_id from (${USES}))
          and release_id not in (select r.release_id from workspaces w
                                   join workspace_revisions r on r.revision_id = w.revision_id)
        order by release_id`,
      kept,
    )
    .map((row) => row.release_id)
}

/** Returns the Releases of all Channels, of the desired and the served policy, and of mounts. */
export function listBoundReleases(reader: ControlReader): ReleaseId[] {
  return reader
    .all<{ release_id: ReleaseId }>(
      `select distinct release_id from (${USES})
        where release_id in (select release_id from releases where state = 'validated')`,
    )
    .map((row) => row.release_id)
}

/** Returns all Releases that are not retired: each can be called now or once validated. */
export function listLiveReleases(reader: ControlReader): ReleaseRecord[] {
  return reader
    .all<Row>(`select ${COLUMNS} from releases where state <> 'retired' order by release_id`)
    .map(toRelease)
}

/** Selects the digests that Releases reference which are not retired. */
const REFERENCED = `select manifest_digest as digest from releases where state <> 'retired'
   union select artifact_digest from releases where state <> 'retired'`

export function listReferencedArtifacts(reader: ControlReader): string[] {
  return reader.all<{ digest: string }>(REFERENCED).map((row) => row.digest)
}

export function isArtifactReferenced(reader: ControlReader, digest: string): boolean {
  return reader.get(`select 1 from (${REFERENCED}) where digest = ?`, digest) !== null
}

export function insertRelease(
  tx: ControlTx,
  release: Omit<ReleaseRecord, 'state' | 'validatedAtMicros' | 'checks'>,
): void {
  tx.run(
    `insert into releases (release_id, workspace, state, package_digest, manifest_digest,
            manifest_bytes, artifact_digest, artifact_bytes, created_at)
     values (?, ?, 'published', ?, ?, ?, ?, ?, ?)`,
    release.releaseId,
    release.workspace,
    release.packageDigest,
    release.manifest.digest,
    release.manifest.bytes,
    release.artifact.digest,
    release.artifact.bytes,
    release.createdAtMicros,
  )
}

/** Returns false if the Release is no longer `published`. */
export function markReleaseDecided(
  tx: ControlTx,
  id: ReleaseId,
  decision: {
    readonly state: 'validated' | 'rejected'
    readonly checks: readonly ReleaseCheck[]
    readonly atMicros: bigint
  },
): boolean {
  const changed = tx.run(
    `update releases set state = ?, checks = ?, validated_at = ?
      where release_id = ? and state = 'published'`,
    decision.state,
    canonicalJson([...decision.checks]),
    decision.atMicros,
    id,
  )
  return changed === 1
}

/** Returns false if the Release is retired already. Fills the checks of an undecided one. */
export function markReleaseRetired(tx: ControlTx, id: ReleaseId, atMicros: bigint): boolean {
  const changed = tx.run(
    `update releases
        set state = 'retired', checks = coalesce(checks, '[]'),
            validated_at = coalesce(validated_at, ?)
      where release_id = ? and state <> 'retired'`,
    atMicros,
    id,
  )
  return changed === 1
}

function toRelease(row: Row): ReleaseRecord {
  return {
    releaseId: row.release_id,
    workspace: row.workspace,
    state: row.state,
    packageDigest: row.package_digest,
    manifest: { digest: row.manifest_digest, bytes: row.manifest_bytes },
    artifact: { digest: row.artifact_digest, bytes: row.artifact_bytes },
    createdAtMicros: BigInt(row.created_at),
    validatedAtMicros: row.validated_at === null ? null : BigInt(row.validated_at),
    checks: row.checks === null ? [] : (JSON.parse(row.checks) as ReleaseCheck[]),
  }
}
