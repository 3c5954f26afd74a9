/** Backups of an Environment (contract/wire.md, Backups). */
import { RECIPIENTS_MAX } from '../../value/backups/recipients.ts'
import { idField, listUpTo, Micros, text, textUpTo, U64 } from '../fields.ts'
import { OperationField } from '../idempotency-records.ts'
import { type Infer, schema } from '../schema.ts'

/** @limit Backups: backups that a list has; earlier ones are forgotten */
export const BACKUPS_MAX = 100

/** The server checks the checksum too. */
const Recipient = text(/^age1[a-z0-9]{1,2044}$/, 'a recipient of age, which begins with age1')

export const BackupRequest = schema({
  /**
   * The public keys of those who can open it. Left out if the settings of the server name them,
   * which no request can replace.
   */
  'recipients?': listUpTo(Recipient, RECIPIENTS_MAX),
  changedAtMicros: Micros,
})

const BACKUP = {
  backupId: idField('bkp'),
  historyId: idField('hst'),
  reason: "'requested' | 'scheduled'",
  /** The Product root, or the target of continuous backups. */
  location: "'root' | 'target'",
  state: "'running' | 'complete' | 'failed'",
  createdAtMicros: Micros,
  finishedAtMicros: [Micros, '|', 'null'],
  /** The newest commit that it has. Null before it is complete, as the fields below. */
  sequence: [U64, '|', 'null'],
  documents: [U64, '|', 'null'],
  /** Bytes that were written for it: files that the target had already are not counted. */
  bytes: [U64, '|', 'null'],
  /** Files and artifacts that it lacks, because their bytes were missing or damaged. */
  damaged: [U64, '|', 'null'],
  /** Code of the failure; null in every other state. */
  failureCode: [textUpTo(128), '|', 'null'],
} as const

const BackupField = schema(BACKUP)
export type BackupField = Infer<typeof BackupField>

export const BackupState = schema({ ...BACKUP, version: '1' } as const)
export type BackupState = Infer<typeof BackupState>

export const BackupCreated = schema({ ...BACKUP, version: '1', operation: OperationField } as const)
export type BackupCreated = Infer<typeof BackupCreated>

export const BackupList = schema({
  version: '1',
  /** The newest first. */
  items: listUpTo(BackupField, BACKUPS_MAX),
})
export type BackupList = Infer<typeof BackupList>
