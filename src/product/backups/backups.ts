/** Backups for operators: a new one, the list, and the files of one of them. */

import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import {
  deleteBackup,
  findBackup,
  insertBackup,
  listBackups,
  type StoredBackup,
} from '../../storage/control/backups.ts'
import type { ControlTx } from '../../storage/control/database.ts'
import { findHistory } from '../../storage/control/environment.ts'
import { readUpgrade } from '../../storage/upgrades.ts'
import { isRecipient } from '../../value/backups/recipients.ts'
import type { BackupId, OperationId, RequestId } from '../../value/ids.ts'
import { BACKUPS_MAX, type BackupField } from '../../wire/backups/backups.ts'
import { type Applied, applyOnce, isApplied } from '../idempotency/idempotency-records.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { notFound, stateConflict } from '../resource-faults.ts'

/** A backup that is recorded and to be made. */
export interface BackupOrder {
  readonly backupId: BackupId
  readonly recipients: readonly string[]
}

/** Makes backups, one at a time, and reads their files. */
export interface BackupMaker {
  /** The recipients of the settings; null if each request names its own. */
  readonly recipients: readonly string[] | null
  readonly location: StoredBackup['location']
  /** True while a backup is made. */
  readonly isBusy: boolean
  /** Starts a backup that is recorded as running, and records its end. Never throws. */
  start(order: BackupOrder): void
  /**
   * Yields the archive of the files of a complete backup. Raises UNAVAILABLE, and BACKUP_CORRUPT
   * for a file that is missing.
   */
  content(backup: StoredBackup): AsyncGenerator<Uint8Array>
}

interface BackupsPort {
  /** Null in `svc dev`, which makes none. */
  readonly backups: BackupMaker | null
}

export interface CreateInput {
  /** Undefined for those of the settings. */
  readonly recipients: readonly string[] | undefined
  readonly operationId: OperationId
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

/**
 * Starts a backup. Throws PRODUCT_INVALID where the recipients are named twice or not at all,
 * PRODUCT_STATE_CONFLICT while another backup is made and in `svc dev`,
 * PRODUCT_OPERATION_REUSED.
 */
export function createBackup(
  ports: ChangePorts & BackupsPort,
  actor: Actor,
  { recipients: named, operationId, changedAtMicros, requestId }: CreateInput,
): Applied<BackupField> {
  const { system, root } = ports
  const backups = requireMaker(ports)
  const repeats = isApplied(ports, operationId)
  const recipients = repeats ? [] : recipientsOf(backups, named)
  if (!repeats && backups.isBusy) throw busy()
  const backupId = system.ids.make('bkp')
  const applied = applyOnce<BackupField>(
    ports,
    actor,
    {
      operationId,
      kind: 'backup.create',
      request: { recipients: named === undefined ? null : [...named] },
      changedAtMicros,
      subject: backupId,
      requestId,
    },
    (tx) => {
      const historyId = findHistory(tx)!
      forgetOldest(tx, readUpgrade(root.path)?.backupId ?? null)
      insertBackup(tx, {
        backupId,
        historyId,
        reason: 'requested',
        location: backups.location,
        createdAtMicros: system.nowMicros(),
      })
      return { result: backupItem(findBackup(tx, backupId)!), revision: 0n }
    },
  )
  if (!applied.operation.replayed) backups.start({ backupId, recipients })
  return applied
}

/** Returns the newest backups, the newest first. */
export function listStoredBackups({ root }: RootPort): BackupField[] {
  return root.control.read((reader) => listBackups(reader, BACKUPS_MAX).map(backupItem))
}

/** Throws PRODUCT_NOT_FOUND. */
export function readStoredBackup(ports: RootPort, backupId: BackupId): BackupField {
  return backupItem(requireBackup(ports, backupId))
}

/**
 * Returns the archive of a backup, and records who reads it. Throws PRODUCT_NOT_FOUND, and
 * PRODUCT_STATE_CONFLICT for a backup that is not complete.
 */
export function openBackup(
  ports: ChangePorts & BackupsPort,
  actor: Actor,
  { backupId, requestId }: { readonly backupId: BackupId; readonly requestId: RequestId },
): AsyncGenerator<Uint8Array> {
  const { root, audit } = ports
  const backups = requireMaker(ports)
  const backup = requireBackup(ports, backupId)
  if (backup.state !== 'complete') {
    const detail = `${backupId} is ${backup.state}`
    throw stateConflict({ path: 'backupId', rule: 'a backup that is complete', detail })
  }
  root.control.transaction((tx) =>
    audit.append(tx, actor, { operation: 'product.backup.read', subject: backupId, requestId }),
  )
  audit.deliver()
  return backups.content(backup)
}

function requireMaker({ backups }: BackupsPort): BackupMaker {
  if (backups !== null) return backups
  const rule = 'made by svc-server: a development server makes none'
  throw stateConflict({ path: 'backup', rule, detail: 'svc dev makes no backups' })
}

function requireBackup({ root }: RootPort, backupId: BackupId): StoredBackup {
  const found = root.control.read((reader) => findBackup(reader, backupId))
  if (found !== null) return found
  throw notFound({ path: 'backupId', rule: 'a backup of this Environment', detail: backupId })
}

/**
 * The settings decide where they name recipients: otherwise each operator who may ask for a backup
 * could make one that only the operator can open, and take all secrets along.
 */
function recipientsOf(
  { recipients }: BackupMaker,
  named: readonly string[] | undefined,
): readonly string[] {
  const path = 'recipients'
  if (recipients !== null) {
    if (named === undefined) return recipients
    throw invalid(path, 'left out: the settings of the server name the recipients')
  }
  if (named === undefined || named.length === 0) {
    throw invalid(path, 'at least one: the settings of the server name none')
  }
  const wrong = named.findIndex((recipient) => !isRecipient(recipient))
  if (wrong !== -1) throw invalid(`${path}[${wrong}]`, 'a recipient of age without a typing error')
  if (new Set(named).size !== named.length) throw invalid(path, 'each once')
  return named
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}

function busy(): Fault {
  const rule = 'one at a time: another backup is being made'
  return stateConflict({ path: 'backup', rule, detail: 'a backup is being made' })
}

/**
 * Makes room for one more in the list. Its maker removes the files of those that it forgets. The
 * backup before the last upgrade stays.
 */
function forgetOldest(tx: ControlTx, kept: BackupId | null): void {
  const listed = listBackups(tx, BACKUPS_MAX)
  const others = listed.filter(({ backupId }) => backupId !== kept)
  const room = BACKUPS_MAX - 1 - (listed.length - others.length)
  for (const { backupId } of others.slice(room)) deleteBackup(tx, backupId)
}

function backupItem({ result, ...backup }: StoredBackup): BackupField {
  const { backupId, historyId, reason, location, state, failureCode } = backup
  const { createdAtMicros, finishedAtMicros } = backup
  const text = (value: number | null = null) => (value === null ? null : String(value))
  return {
    backupId,
    historyId,
    reason,
    location,
    state,
    createdAtMicros: String(createdAtMicros),
    finishedAtMicros: finishedAtMicros === null ? null : String(finishedAtMicros),
    sequence: text(result?.sequence),
    documents: text(result?.documents),
    bytes: text(result?.bytes),
    damaged: text(result?.damaged),
    failureCode,
  }
}
