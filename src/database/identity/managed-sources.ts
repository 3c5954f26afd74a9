/**
 * Rows of managed sources: the sources, the last revision that each applied to an operator, and the
 * grants that they own. The caller has the lock of the operator.
 */
import type { Id, OperatorId } from '../../value/ids.ts'
import { readBytes, readCount, readId } from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'
import type { Grant } from './grants.ts'

export type ManagedSourceId = Id<'mgs'>

export interface ManagedRevision {
  /** 1 to 2^64 - 1. */
  readonly sourceRevision: bigint
  /** Digest of the normalized grants. */
  readonly contentDigest: Uint8Array
}

/** Returns the source of the authority, which is created with `sourceId` if it is new. */
export async function ensureManagedSource(
  tx: Tx,
  source: { readonly sourceId: ManagedSourceId; readonly authority: string },
  atMicros: bigint,
): Promise<ManagedSourceId> {
  await tx.execute(
    `insert into service_operator_managed_sources (source_id, authority, created_at_micros)
     values ($1, $2, $3)
     on conflict (authority) do nothing`,
    [source.sourceId, source.authority, atMicros],
  )
  const rows = await tx.rows(
    `select source_id from service_operator_managed_sources where authority = $1`,
    [source.authority],
  )
  return readId(rows[0] ?? {}, 'source_id', 'mgs')
}

export async function findManagedRevision(
  tx: Tx,
  sourceId: ManagedSourceId,
  operatorId: OperatorId,
): Promise<ManagedRevision | null> {
  const rows = await tx.rows(
    `select source_revision, content_digest
       from service_operator_managed_revisions
      where source_id = $1 and operator_id = $2`,
    [sourceId, operatorId],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    sourceRevision: readCount(row, 'source_revision'),
    contentDigest: readBytes(row, 'content_digest'),
  }
}

export async function putManagedRevision(
  tx: Tx,
  sourceId: ManagedSourceId,
  operatorId: OperatorId,
  { sourceRevision, contentDigest }: ManagedRevision,
  atMicros: bigint,
): Promise<void> {
  const changed = await tx.execute(
    `insert into service_operator_managed_revisions
       (source_id, operator_id, source_revision, content_digest, applied_at_micros)
     values ($1, $2, $3, $4, $5)
     on conflict (source_id, operator_id) do update
       set source_revision = excluded.source_revision,
           content_digest = excluded.content_digest,
           applied_at_micros = excluded.applied_at_micros
     where service_operator_managed_revisions.source_revision < excluded.source_revision`,
    [sourceId, operatorId, sourceRevision, contentDigest, atMicros],
  )
  expectOneRow(changed, 'a managed revision did not grow under the lock of its operator')
}

/** Replaces the grants of the operator that the source owns. Grants of others are not changed. */
export async function replaceManagedGrants(
  tx: Tx,
  sourceId: ManagedSourceId,
  operatorId: OperatorId,
  grants: readonly Omit<Grant, 'source'>[],
  atMicros: bigint,
): Promise<void> {
  await tx.execute(
    `delete from service_operator_grants where operator_id = $1 and source_id = $2`,
    [operatorId, sourceId],
  )
  for (const { scope, capabilities } of grants) {
    const inserted = await tx.execute(
      `insert into service_operator_grants
         (operator_id, scope_kind, project_id, environment_id, capabilities, source, source_id,
          created_at_micros)
       values ($1, $2, $3, $4, $5, 'managed', $6, $7)`,
      [
        operatorId,
        scope.kind,
        scope.projectId,
        scope.environmentId,
        capabilities,
        sourceId,
        atMicros,
      ],
    )
    expectOneRow(inserted, 'a managed grant was not inserted')
  }
}

/** Deletes grants from before there were sources. Returns their number. */
export async function deleteLegacyGrants(tx: Tx, operatorId: OperatorId): Promise<number> {
  return tx.execute(
    `delete from service_operator_grants where operator_id = $1 and source = 'legacy'`,
    [operatorId],
  )
}
