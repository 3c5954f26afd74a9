/** Rows of operations: what was done under which Operation ID. */
import type { OperationId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'

export interface OperationRecord {
  readonly operationId: OperationId
  /** `<resource>.<verb>`. */
  readonly kind: string
  readonly fingerprint: Uint8Array
  /** The key of the keyring that the fingerprint was made with. */
  readonly keyId: string
  /** Canonical JSON; its form is product's. */
  readonly result: string
  /** That the resource has after it. */
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

export function findOperation(reader: ControlReader, id: OperationId): OperationRecord | null {
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

export function insertOperation(tx: ControlTx, record: OperationRecord): void {
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

export function deleteOperationsBefore(tx: ControlTx, atMicros: bigint): void {
  tx.run('delete from operations where created_at < ?', atMicros)
}
