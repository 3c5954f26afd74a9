/** Rows of workspaces and workspace_revisions: the HEAD and the history of each Workspace. */
import { canonicalJson } from '../../value/canonical-json.ts'
import type { CredentialId, OperatorId, ReleaseId, WorkspaceRevisionId } from '../../value/ids.ts'
import type { Provenance } from '../../value/packages/provenance.ts'
import type { Json } from '../../value/strict-json.ts'
import type { ControlReader, ControlTx } from './database.ts'

export type ExpectedHead = 'empty' | WorkspaceRevisionId

export interface WorkspaceHead {
  readonly name: string
  readonly revisionId: WorkspaceRevisionId
  readonly releaseId: ReleaseId
}

export interface WorkspaceRevision {
  readonly revisionId: WorkspaceRevisionId
  readonly workspace: string
  readonly expectedHead: ExpectedHead
  readonly packageDigest: string
  readonly releaseId: ReleaseId
  readonly publisherId: OperatorId | CredentialId
  readonly createdAtMicros: bigint
  readonly provenance: Provenance | null
}

interface HeadRow {
  name: string
  revision_id: WorkspaceRevisionId
  release_id: ReleaseId
}

const HEAD = `select w.name, w.revision_id, r.release_id from workspaces w
  join workspace_revisions r on r.revision_id = w.revision_id`

export function findWorkspaceHead(reader: ControlReader, name: string): WorkspaceHead | null {
  const row = reader.get<HeadRow>(`${HEAD} where w.name = ?`, name)
  return row === null ? null : toHead(row)
}

export function listWorkspaceHeads(reader: ControlReader): WorkspaceHead[] {
  return reader.all<HeadRow>(`${HEAD} order by w.name`).map(toHead)
}

/** Returns the only publication that met this precondition, even if later ones followed it. */
export function findRevisionAfter(
  reader: ControlReader,
  workspace: string,
  expectedHead: ExpectedHead,
): Pick<WorkspaceRevision, 'revisionId' | 'releaseId' | 'packageDigest'> | null {
  const row = reader.get<{
    revision_id: WorkspaceRevisionId
    release_id: ReleaseId
    package_digest: string
  }>(
    `select revision_id, release_id, package_digest from workspace_revisions
      where workspace = ? and expected_head = ?`,
    workspace,
    expectedHead,
  )
  if (row === null) return null
  return {
    revisionId: row.revision_id,
    releaseId: row.release_id,
    packageDigest: row.package_digest,
  }
}

/** Returns the Release of a revision of the Workspace, also of an earlier one; null for none. */
export function findRevisionRelease(
  reader: ControlReader,
  workspace: string,
  revisionId: WorkspaceRevisionId,
): ReleaseId | null {
  const row = reader.get<{ release_id: ReleaseId }>(
    'select release_id from workspace_revisions where revision_id = ? and workspace = ?',
    revisionId,
    workspace,
  )
  return row?.release_id ?? null
}

/** Returns the declared origin of the revision, or of that of the Release; null without one. */
export function findProvenance(
  reader: ControlReader,
  id: WorkspaceRevisionId | ReleaseId,
): Provenance | null {
  const row = reader.get<{ provenance: string | null }>(
    'select provenance from workspace_revisions where revision_id = ?1 or release_id = ?1',
    id,
  )
  return parseProvenance(row?.provenance ?? null)
}

export function parseProvenance(text: string | null): Provenance | null {
  return text === null ? null : (JSON.parse(text) as Provenance)
}

/** Appends the revision and makes it the HEAD. */
export function insertRevision(tx: ControlTx, revision: WorkspaceRevision): void {
  tx.run(
    `insert into workspace_revisions (revision_id, workspace, expected_head, package_digest,
            release_id, publisher_id, created_at, provenance)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
    revision.revisionId,
    revision.workspace,
    revision.expectedHead,
    revision.packageDigest,
    revision.releaseId,
    revision.publisherId,
    revision.createdAtMicros,
    revision.provenance === null ? null : canonicalJson(revision.provenance as unknown as Json),
  )
  tx.run(
    `insert into workspaces (name, revision_id) values (?, ?)
     on conflict (name) do update set revision_id = excluded.revision_id`,
    revision.workspace,
    revision.revisionId,
  )
}

function toHead(row: HeadRow): WorkspaceHead {
  return { name: row.name, revisionId: row.revision_id, releaseId: row.release_id }
}
