/** Rows of operations: the idempotency record of each Operation ID. */
import type { OperationId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'

export interface IdempotencyRecord {
  readonly operationId: OperationId
  /** `<resource>.<verb>`. */
  readonly kind: string
  readonly fingerprint: Uint8Array
  /** ID of the keyring's key that the fingerprint was made with. */
  readonly keyId: string
  /** JSON text, whose form product defines. */
  readonly result: string
  /** Revision of the resource after the change. */
  readonly revision: bigint
  readonly createdAtMicros: bigint
}

interface Row {
  operation_id: OperationId
  kind: string
  fingerprint: Uint8Array
  key_id: string
  result: string
  revision: number
  created_at: number
}

export function findIdempotencyRecord(
  reader: ControlReader,
  id: OperationId,
): IdempotencyRecord | null {
  const row = reader.get<Row>(
    `select operation_id, kind, fingerprint, key_id, result, revision, created_at
       from operations where operation_id = ?`,
    id,
  )
  if (row === null) return null
  return {
    operationId: row.operation_id,
    kind: row.kind,
    fingerprint: row.fingerprint,
    keyId: row.key_id,
    result: row.result,
    revision: BigInt(row.revision),
    createdAtMicros: BigInt(row.created_at),
  }
}

export function insertIdempotencyRecord(tx: ControlTx, record: IdempotencyRecord): void {
  tx.run(
    `insert into operations (operation_id, kind, fingerprint, key_id, result, revision,
            created_at)
     values (?, ?, ?, ?, ?, ?, ?)`,
    record.operationId,
    record.kind,
    record.fingerprint,
    record.keyId,
    record.result,
    record.revision,
    record.createdAtMicros,
  )
}

export function deleteIdempotencyRecordsBefore(tx: ControlTx, atMicros: bigint): void {
  tx.run('delete from operations where created_at < ?', atMicros)
}
