/**
 * Makes a base of a stopped server of an earlier version before its databases are migrated. The
 * control and the identity database are read at their schema versions, so that the earlier version
 * can restore them; documents have the same form in the backups of all versions.
 */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type BaseResult, makeBase } from '../../backups/base/base-backup.ts'
import type { BackedUpPeppers } from '../../backups/base/base-records.ts'
import { guardedTarget } from '../../backups/service/guarded-target.ts'
import { DirectoryTarget } from '../../backups/targets/directory.ts'
import { makeDirectories } from '../../backups/targets/directory-files.ts'
import type { BackupTarget } from '../../backups/targets/targets.ts'
import type { Database } from '../../database/database.ts'
import { readUnmigratedPostgres } from '../../documents/postgres/unmigrated-documents.ts'
import { readUnmigratedSqlite } from '../../documents/sqlite/unmigrated-documents.ts'
import type { DocumentsSnapshot } from '../../documents/store.ts'
import type { BackupSettings } from '../../settings/backups.ts'
import type { ProductSettings } from '../../settings/settings.ts'
import { deleteBackup, insertBackup, markBackupComplete } from '../../storage/control/backups.ts'
import {
  ControlDatabase,
  type ControlReader,
  type ControlTx,
} from '../../storage/control/database.ts'
import { beginHistory, findHistory } from '../../storage/control/environment.ts'
import { MIGRATIONS as CONTROL } from '../../storage/migrations.generated.ts'
import {
  BACKUPS_DIRECTORY,
  CONTROL_FILE,
  DOCUMENTS_FILE,
  openUnmigratedRoot,
  type ProductRoot,
  UPGRADE_FILE,
} from '../../storage/root.ts'
import { readUpgrade } from '../../storage/upgrades.ts'
import { writeFileAtomic } from '../../system/files.ts'
import type { System } from '../../system/system.ts'
import type { BackupId, HistoryId } from '../../value/ids.ts'
import { formatUpgrade, type UpgradeBackup } from '../../wire/files/upgrades.ts'
import { openBackupTarget } from '../backups/targets.ts'
import { openBlobs } from '../blobs.ts'
import type { DatabaseSurvey } from './survey.ts'

export interface BackupBeforeOptions {
  readonly product: Pick<ProductSettings, 'root' | 'database' | 'storage'> & {
    readonly backups: BackupSettings
  }
  readonly identity: Database
  /** Null leaves it out. */
  readonly peppers: BackedUpPeppers | null
  readonly system: System
}

interface Unmigrated extends BackupBeforeOptions {
  readonly root: ProductRoot
  readonly historyId: HistoryId
  readonly backupId: BackupId
  readonly found: UpgradeBackup['found']
}

/** The control database records backups from this schema version on. */
const RECORDING = CONTROL.find(({ name }) => name === 'backups')!.version

/**
 * Returns the backup, or the one that was made before migrations that were begun and interrupted:
 * another one would have what these have changed. Null if the root has nothing yet. Throws
 * UNAVAILABLE and PRODUCT_CORRUPT, and the faults of a root that cannot be opened.
 */
export async function backUpBefore(
  surveys: readonly DatabaseSurvey[],
  options: BackupBeforeOptions,
): Promise<UpgradeBackup | null> {
  const { product, system } = options
  const versions = versionsOf(surveys)
  const { control } = versions.found
  if (control === 0) return null
  const root = openUnmigratedRoot(product.root, system, control)
  try {
    const earlier = readUpgrade(product.root)
    if (earlier !== null && isOf(earlier, versions)) return earlier
    const historyId = root.control.read(historyOf) ?? system.ids.make('hst')
    const backupId = system.ids.make('bkp')
    const { found } = versions
    const unmigrated = { ...options, root, historyId, backupId, found }
    const made = await makeBackup(unmigrated)
    record(unmigrated, made)
    const { toSequence: sequence, atMicros } = made.base
    const backup = { backupId, historyId, sequence, atMicros, ...versions }
    writeFileAtomic(join(product.root, UPGRADE_FILE), formatUpgrade(backup))
    if (earlier !== null && isReplaced(earlier, versions)) removeFromRoot(unmigrated, earlier)
    return backup
  } finally {
    root.close()
  }
}

type Versions = Pick<UpgradeBackup, 'found' | 'target'>

function versionsOf(surveys: readonly DatabaseSurvey[]): Versions {
  const of = (name: DatabaseSurvey['name'], field: 'found' | 'target') =>
    surveys.find((survey) => survey.name === name)?.[field] ?? 0
  const all = (field: 'found' | 'target') => ({
    identity: of('identity', field),
    control: of('control', field),
    documents: of('documents', field),
    logs: of('logs', field),
  })
  return { found: all('found'), target: all('target') }
}

const NAMES = ['identity', 'control', 'documents', 'logs'] as const

/** Returns whether migrations that this backup was made for have begun. */
function isOf(backup: Versions, { found, target }: Versions): boolean {
  return (
    NAMES.every((name) => backup.target[name] === target[name]) &&
    NAMES.every((name) => found[name] >= backup.found[name]) &&
    NAMES.some((name) => found[name] > backup.found[name])
  )
}

/** Returns whether the backup was made for the same migrations, none of which began. */
function isReplaced(backup: Versions, { found, target }: Versions): boolean {
  return NAMES.every(
    (name) => backup.found[name] === found[name] && backup.target[name] === target[name],
  )
}

/** Null where the control database is older than histories. */
function historyOf(reader: ControlReader): HistoryId | null {
  const column = `select 1 from pragma_table_info('environment') where name = 'history_id'`
  return reader.get(column) === null ? null : findHistory(reader)
}

/** A base, and the bytes that were written for it. */
interface MadeBackup extends BaseResult {
  readonly bytes: number
}

async function makeBackup(unmigrated: Unmigrated): Promise<MadeBackup> {
  const { product, root, identity, peppers, system, historyId, backupId } = unmigrated
  const { environmentId } = root.descriptor
  const blobs = await openBlobs({
    rootPath: root.path,
    environmentId,
    storage: product.storage,
  })
  let bytes = 0
  const target = await openTarget(unmigrated, (written) => {
    bytes += written
  })
  const made = await readDocuments(unmigrated, (documents) =>
    makeBase({
      server: {
        system,
        store: documents,
        holdSnapshot: () => ({ sequence: documents.latestSequence, release: () => undefined }),
        holdFiles: () => () => undefined,
        root,
        blobs,
        identity,
        peppers,
      },
      target,
      recipients: product.backups.recipients,
      historyId,
      backupId,
    }),
  )
  return { ...made, bytes }
}

async function openTarget(
  { product, backupId }: Unmigrated,
  onWritten: (bytes: number) => void,
): Promise<BackupTarget> {
  const { backups, root, storage } = product
  if (backups.target !== null) {
    return guardedTarget(await openBackupTarget(backups.target), onWritten, null)
  }
  await makeDirectories(root, `${BACKUPS_DIRECTORY}/${backupId}`)
  const space = { directory: root, floorBytes: storage.freeFloorBytes }
  const target = new DirectoryTarget(join(root, BACKUPS_DIRECTORY, backupId))
  return guardedTarget(target, onWritten, space)
}

const EMPTY: DocumentsSnapshot = {
  latestSequence: 0,
  versions: () => ({ rows: [], after: null }),
  operations: () => ({ rows: [], after: null }),
  schema: () => ({ indexes: [], shapes: new Map(), names: new Map() }),
}

function readDocuments<T>(
  { product: { database }, root, found }: Unmigrated,
  read: (documents: DocumentsSnapshot) => Promise<T>,
): Promise<T> {
  if (found.documents === 0) return read(EMPTY)
  if (database === null) return readUnmigratedSqlite(join(root.path, DOCUMENTS_FILE), read)
  const { environmentId } = root.descriptor
  return readUnmigratedPostgres({ url: database.url, environmentId }, read)
}

/** Lists the backup among those of the root, and lets the root continue its history. */
function record(unmigrated: Unmigrated, made: MadeBackup): void {
  const { product, historyId, backupId, system } = unmigrated
  changeControl(unmigrated, (tx) => {
    if (findHistory(tx) === null) beginHistory(tx, historyId)
    const location = product.backups.target === null ? 'root' : 'target'
    const createdAtMicros = BigInt(made.base.atMicros)
    insertBackup(tx, { backupId, historyId, reason: 'scheduled', location, createdAtMicros })
    const result = {
      firstSegment: made.base.first,
      lastSegment: made.base.number,
      sequence: made.base.toSequence,
      documents: made.counts.document ?? 0,
      bytes: made.bytes,
      damaged: made.damaged.length,
    }
    markBackupComplete(tx, backupId, result, system.nowMicros())
  })
}

/**
 * Removes a backup that another one replaces: starts that fail before their migrations would fill
 * the disk. One in a target is left to its retention.
 */
function removeFromRoot({ root, found, system }: Unmigrated, { backupId }: UpgradeBackup): void {
  const directory = join(root.path, BACKUPS_DIRECTORY, backupId)
  if (!existsSync(directory)) return
  changeControl({ root, found, system }, (tx) => deleteBackup(tx, backupId))
  rmSync(directory, { recursive: true, force: true })
}

/** Changes the control database at the schema version that it has, or at the first with backups. */
function changeControl(
  { root, found, system }: Pick<Unmigrated, 'root' | 'found' | 'system'>,
  change: (tx: ControlTx) => void,
): void {
  const version = Math.max(found.control, RECORDING)
  const path = join(root.path, CONTROL_FILE)
  const control = ControlDatabase.open(path, system.nowMicros(), { version })
  try {
    control.transaction(change)
  } finally {
    control.close()
  }
}
