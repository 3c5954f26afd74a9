/** Rows of service_operator_invitation_operations: the invitation of each Operation ID. */
import type { InvitationId, OperationId, OperatorId } from '../../value/ids.ts'
import type { Scope } from '../../value/scope.ts'
import type { Reader } from '../database.ts'
import { readBytes, readCount, readId, readScope } from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'

export interface InvitationOperation {
  readonly operationId: OperationId
  /** SHA-256 of the canonical request. */
  readonly requestFingerprint: Uint8Array
  readonly scope: Scope
  readonly invitationId: InvitationId
  readonly createdBy: OperatorId
  readonly createdAtMicros: bigint
}

export async function findInvitationOperation(
  reader: Reader,
  operationId: OperationId,
): Promise<InvitationOperation | null> {
  const rows = await reader.rows(
    `select operation_id, request_fingerprint, scope_kind, project_id, environment_id,
            invitation_id, created_by, created_at_micros
       from service_operator_invitation_operations
      where operation_id = $1`,
    [operationId],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    operationId: readId(row, 'operation_id', 'opn'),
    requestFingerprint: readBytes(row, 'request_fingerprint'),
    scope: readScope(row),
    invitationId: readId(row, 'invitation_id', 'opi'),
    createdBy: readId(row, 'created_by', 'opr'),
    createdAtMicros: readCount(row, 'created_at_micros'),
  }
}

/** Inserts a row. The caller has the lock of the operation and has found no row. */
export async function insertInvitationOperation(
  tx: Tx,
  operation: InvitationOperation,
): Promise<void> {
  const { scope } = operation
  const inserted = await tx.execute(
    `insert into service_operator_invitation_operations
       (operation_id, request_fingerprint, scope_kind, project_id, environment_id, invitation_id,
        created_by, created_at_micros)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      operation.operationId,
      operation.requestFingerprint,
      scope.kind,
      scope.projectId,
      scope.environmentId,
      operation.invitationId,
      operation.createdBy,
      operation.createdAtMicros,
    ],
  )
  expectOneRow(inserted, 'an invitation operation was not inserted')
}
