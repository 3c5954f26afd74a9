/**
 * Rows of audit_outbox: audit records that were committed with a change and await delivery, and
 * held ones, whose change in the document store is not known to be committed.
 */
import type { AuditId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'

export interface PendingAudit {
  readonly auditId: AuditId
  /** JSON text, whose form product defines. */
  readonly record: string
}

export function insertPendingAudit(
  tx: ControlTx,
  { auditId, record, isHeld }: PendingAudit & { readonly isHeld: boolean },
): void {
  const sql = 'insert into audit_outbox (audit_id, record, held) values (?, ?, ?)'
  tx.run(sql, auditId, record, isHeld ? 1 : 0)
}

/** Returns the oldest records that are not held, at most `limit`. */
export function listPendingAudit(reader: ControlReader, limit: number): PendingAudit[] {
  return reader
    .all<{ audit_id: AuditId; record: string }>(
      'select audit_id, record from audit_outbox where held = 0 order by audit_id limit ?',
      limit,
    )
    .map((row) => ({ auditId: row.audit_id, record: row.record }))
}

/** Returns all held records, the oldest first. */
export function listHeldAudit(reader: ControlReader): PendingAudit[] {
  return reader
    .all<{ audit_id: AuditId; record: string }>(
      'select audit_id, record from audit_outbox where held = 1 order by audit_id',
    )
    .map((row) => ({ auditId: row.audit_id, record: row.record }))
}

/** Lets a held record be delivered. */
export function releaseHeldAudit(tx: ControlTx, id: AuditId): void {
  tx.run('update audit_outbox set held = 0 where audit_id = ?', id)
}

export function deletePendingAudit(tx: ControlTx, id: AuditId): void {
  tx.run('delete from audit_outbox where audit_id = ?', id)
}
