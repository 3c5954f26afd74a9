/** Rows of audit_outbox: audit records that were committed with a change and await delivery. */
import type { AuditId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'

export interface PendingAudit {
  readonly auditId: AuditId
  /** JSON text, whose form product defines. */
  readonly record: string
}

export function insertPendingAudit(tx: ControlTx, pending: PendingAudit): void {
  tx.run(
    'insert into audit_outbox (audit_id, record) values (?, ?)',
    pending.auditId,
    pending.record,
  )
}

/** Returns the oldest records, at most `limit`. */
export function listPendingAudit(reader: ControlReader, limit: number): PendingAudit[] {
  return reader
    .all<{ audit_id: AuditId; record: string }>(
      'select audit_id, record from audit_outbox order by audit_id limit ?',
      limit,
    )
    .map((row) => ({ auditId: row.audit_id, record: row.record }))
}

export function deletePendingAudit(tx: ControlTx, id: AuditId): void {
  tx.run('delete from audit_outbox where audit_id = ?', id)
}
