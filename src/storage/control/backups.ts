/** Rows of backups. Callers apply the rules. */
import type { BackupId, HistoryId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'

export interface BackupResult {
  /** Numbers of its first segment and of its last one. */
  readonly firstSegment: number
  readonly lastSegment: number
  /** The snapshot of its documents. */
  readonly sequence: number
  /**
   * Null for a base that another process made and did not record, as the fields below: the target
   * has the figures in encrypted segments alone.
   */
  readonly documents: number | null
  /** Bytes that were written for it. */
  readonly bytes: number | null
  /** Number of files and artifacts that were left out. */
  readonly damaged: number | null
}

export interface StoredBackup {
  readonly backupId: BackupId
  readonly historyId: HistoryId
  readonly reason: 'requested' | 'scheduled'
  readonly location: 'root' | 'target'
  readonly state: 'running' | 'complete' | 'failed'
  readonly createdAtMicros: bigint
  readonly finishedAtMicros: bigint | null
  /** Null in every state but complete. */
  readonly result: BackupResult | null
  /** Null in every state but failed. */
  readonly failureCode: string | null
}

interface Row {
  backup_id: BackupId
  history_id: HistoryId
  reason: 'requested' | 'scheduled'
  location: 'root' | 'target'
  state: 'running' | 'complete' | 'failed'
  created_at: number
  finished_at: number | null
  first_segment: number | null
  last_segment: number | null
  sequence: number | null
  documents: number | null
  bytes: number | null
  damaged: number | null
  failure_code: string | null
}

const SELECT = `select backup_id, history_id, reason, location, state, created_at, finished_at,
        first_segment, last_segment, sequence, documents, bytes, damaged, failure_code
   from backups`

export function findBackup(reader: ControlReader, backupId: BackupId): StoredBackup | null {
  const row = reader.get<Row>(`${SELECT} where backup_id = ?`, backupId)
  return row === null ? null : toBackup(row)
}

/** Returns the newest backups, the newest first. Those of earlier histories are kept too. */
export function listBackups(reader: ControlReader, limit: number): StoredBackup[] {
  return reader.all<Row>(`${SELECT} order by backup_id desc limit ?`, limit).map(toBackup)
}

/** Inserts a backup that runs. */
export function insertBackup(
  tx: ControlTx,
  backup: Pick<StoredBackup, 'backupId' | 'historyId' | 'reason' | 'location' | 'createdAtMicros'>,
): void {
  tx.run(
    `insert into backups (backup_id, history_id, reason, location, state, created_at)
     values (?, ?, ?, ?, 'running', ?)`,
    backup.backupId,
    backup.historyId,
    backup.reason,
    backup.location,
    backup.createdAtMicros,
  )
}

/** Completes a backup that runs. */
export function markBackupComplete(
  tx: ControlTx,
  backupId: BackupId,
  result: BackupResult,
  finishedAtMicros: bigint,
): void {
  tx.run(
    `update backups set state = 'complete', finished_at = ?, first_segment = ?, last_segment = ?,
            sequence = ?, documents = ?, bytes = ?, damaged = ?
      where backup_id = ? and state = 'running'`,
    finishedAtMicros,
    result.firstSegment,
    result.lastSegment,
    result.sequence,
    result.documents,
    result.bytes,
    result.damaged,
    backupId,
  )
}

/** Marks a backup that runs as failed. Without an ID, all that run. */
export function markBackupFailed(
  tx: ControlTx,
  { backupId, code }: { readonly backupId: BackupId | null; readonly code: string },
  finishedAtMicros: bigint,
): void {
  tx.run(
    `update backups set state = 'failed', finished_at = ?1, failure_code = ?2
      where state = 'running' and (?3 is null or backup_id = ?3)`,
    finishedAtMicros,
    code,
    backupId,
  )
}

export function deleteBackup(tx: ControlTx, backupId: BackupId): void {
  tx.run('delete from backups where backup_id = ?', backupId)
}

/** Forgets all backups, of which a root that was restored from one of them has no files. */
export function deleteAllBackups(tx: ControlTx): void {
  tx.run('delete from backups')
}

function toBackup(row: Row): StoredBackup {
  const { state } = row
  return {
    backupId: row.backup_id,
    historyId: row.history_id,
    reason: row.reason,
    location: row.location,
    state,
    createdAtMicros: BigInt(row.created_at),
    finishedAtMicros: row.finished_at === null ? null : BigInt(row.finished_at),
    result:
      state !== 'complete'
        ? null
        : {
            firstSegment: row.first_segment!,
            lastSegment: row.last_segment!,
            sequence: row.sequence!,
            documents: row.documents,
            bytes: row.bytes,
            damaged: row.damaged,
          },
    failureCode: row.failure_code,
  }
}
