/** Rows of service_operator_operations: the outcome of each change of an operator. */
import type { OperationId, OperatorId } from '../../value/ids.ts'
import type { Reader } from '../database.ts'
import { readBytes, readCount, readId, readMember, readNullable } from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'

const KINDS = ['operator.disable', 'operator.enable'] as const
export type OperatorOperationKind = (typeof KINDS)[number]

export interface OperatorOperation {
  readonly operationId: OperationId
  readonly kind: OperatorOperationKind
  /** SHA-256 of the canonical request. */
  readonly requestFingerprint: Uint8Array
  readonly operatorId: OperatorId
  readonly disabledAtMicros: bigint | null
  readonly authorizationRevision: bigint
  readonly createdAtMicros: bigint
}

export async function findOperatorOperation(
  reader: Reader,
  operationId: OperationId,
): Promise<OperatorOperation | null> {
  const rows = await reader.rows(
    `select operation_id, kind, request_fingerprint, operator_id, disabled_at_micros,
            authorization_revision, created_at_micros
       from service_operator_operations
      where operation_id = $1`,
    [operationId],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    operationId: readId(row, 'operation_id', 'opn'),
    kind: readMember(row, 'kind', KINDS),
    requestFingerprint: readBytes(row, 'request_fingerprint'),
    operatorId: readId(row, 'operator_id', 'opr'),
    disabledAtMicros: readNullable(row, 'disabled_at_micros', readCount),
    authorizationRevision: readCount(row, 'authorization_revision'),
    createdAtMicros: readCount(row, 'created_at_micros'),
  }
}

/** Inserts a row. The caller has the lock of the operation and has found no row. */
export async function insertOperatorOperation(tx: Tx, operation: OperatorOperation): Promise<void> {
  const inserted = await tx.execute(
    `insert into service_operator_operations
       (operation_id, kind, request_fingerprint, operator_id, disabled_at_micros,
        authorization_revision, created_at_micros)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [
      operation.operationId,
      operation.kind,
      operation.requestFingerprint,
      operation.operatorId,
      operation.disabledAtMicros,
      operation.authorizationRevision,
      operation.createdAtMicros,
    ],
  )
  expectOneRow(inserted, 'an operator operation was not inserted')
}
