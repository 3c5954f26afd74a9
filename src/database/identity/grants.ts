/** Rows of service_operator_grants. */
import type { Capability } from '../../value/capabilities.ts'
import type { OperatorId } from '../../value/ids.ts'
import type { Scope } from '../../value/scope.ts'
import type { RawRow } from '../connection.ts'
import type { Reader } from '../database.ts'
import { readCapabilities, readMember, readScope } from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'

export const GRANT_SOURCES = ['bootstrap', 'invitation', 'managed', 'legacy'] as const

export interface Grant {
  readonly scope: Scope
  /** Sorted, without duplicates. */
  readonly capabilities: readonly Capability[]
  readonly source: (typeof GRANT_SOURCES)[number]
}

/** Inserts a grant of an invitation. Those of managed sources are written with their revision. */
export async function insertGrant(
  tx: Tx,
  operatorId: OperatorId,
  grant: Grant & { readonly source: 'bootstrap' | 'invitation' },
  atMicros: bigint,
): Promise<void> {
  const { scope, capabilities, source } = grant
  const inserted = await tx.execute(
    `insert into service_operator_grants
       (operator_id, scope_kind, project_id, environment_id, capabilities, source,
        created_at_micros)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [operatorId, scope.kind, scope.projectId, scope.environmentId, capabilities, source, atMicros],
  )
  expectOneRow(inserted, 'a grant was not inserted')
}

/**
 * Replaces the grant at a scope that no managed source gives; null removes it. The caller has the
 * lock of the operator.
 */
export async function replaceGrant(
  tx: Tx,
  operatorId: OperatorId,
  scope: Scope,
  capabilities: readonly Capability[] | null,
  atMicros: bigint,
): Promise<void> {
  await tx.execute(
    `delete from service_operator_grants
      where operator_id = $1 and source_id is null and scope_kind = $2
        and project_id is not distinct from $3 and environment_id is not distinct from $4`,
    [operatorId, scope.kind, scope.projectId, scope.environmentId],
  )
  if (capabilities === null) return
  await insertGrant(tx, operatorId, { scope, capabilities, source: 'invitation' }, atMicros)
}

/** Lists grants, oldest first. */
export async function listGrants(reader: Reader, operatorId: OperatorId): Promise<Grant[]> {
  const rows = await reader.rows(
    `select scope_kind, project_id, environment_id, capabilities, source
       from service_operator_grants
      where operator_id = $1
      order by grant_id`,
    [operatorId],
  )
  return rows.map(toGrant)
}

export function toGrant(row: RawRow): Grant {
  return {
    scope: readScope(row),
    capabilities: readCapabilities(row, 'capabilities'),
    source: readMember(row, 'source', GRANT_SOURCES),
  }
}
