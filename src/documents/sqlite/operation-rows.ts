/** Rows of operations. */
import type { OperationRecord } from '../store.ts'
import { readResult } from './operation-results.ts'

export interface OperationRow {
  readonly fingerprint: Uint8Array
  readonly commit_sequence: number | null
  readonly release_id: string
  readonly function: string
  readonly result: string | Uint8Array
  readonly attempts: number
  readonly created_at_micros: number
}

export function toOperation(operationId: string, row: OperationRow): OperationRecord {
  return {
    operationId,
    fingerprint: row.fingerprint,
    commitSequence: row.commit_sequence,
    releaseId: row.release_id,
    function: row.function,
    result: readResult(row.result),
    attempts: row.attempts,
    createdAtMicros: BigInt(row.created_at_micros),
  }
}
