/**
 * Prepares the migrations of a start: a base backup where the previous version cannot start after
 * them, and one warning.
 */
import { Database } from '../../database/database.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { ServerSettings } from '../../settings/settings.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { UpgradeBackup } from '../../wire/files/upgrades.ts'
import { type PepperSettings, peppersOf } from '../backups/peppers.ts'
import { type DatabaseName, type DatabaseSurvey, surveyDatabases } from './survey.ts'

export interface PreparationOptions {
  readonly configuration: PepperSettings & Pick<ServerSettings, 'identityDatabase' | 'product'>
  /** The identity database; null in a mode that does not migrate it. */
  readonly identity: Database | null
  /** The databases that the mode migrates; by default all. */
  readonly migrates?: readonly DatabaseName[]
  readonly system: System
  readonly log: Logger
}

/**
 * Returns at once if no migration is one way. A database that cannot be used is left to the
 * migration, which fails with its reason. Throws SERVER_UPGRADE_BACKUP_FAILED,
 * SERVER_PRODUCT_ROOT_LOCKED and the faults of a root that is not valid.
 */
export async function prepareMigrations(options: PreparationOptions): Promise<void> {
  const { configuration, identity, migrates, log } = options
  const surveys = await surveyDatabases(configuration, identity)
  const migrated = surveys.filter(({ name }) => migrates?.includes(name) ?? true)
  const isUsable = migrated.every(({ problem }) => problem === null)
  if (!isUsable || !migrated.some(({ oneWay }) => oneWay)) return
  warnOneWay(log, migrated, await backUp(options, surveys))
}

/** Writes one record, which says how to go back. `backup` is null if none was made. */
export function warnOneWay(
  log: Logger,
  surveys: readonly DatabaseSurvey[],
  backup: UpgradeBackup | null,
): void {
  const changed = surveys.filter(({ oneWay }) => oneWay)
  const steps = changed.map(({ name, found, target }) => `${name} from ${found} to ${target}`)
  const made =
    backup === null
      ? 'No backup was made before.'
      : `The backup ${backup.backupId} of ${restoreTime(backup)} was made before.`
  log.warn('database.migrates_one_way', {
    message:
      `Schema versions change so that the previous version cannot start afterwards: ` +
      `${steps.join(', ')}. ${made}`,
    databases: changed.map(({ name }) => name),
    ...(backup !== null && {
      backupId: backup.backupId,
      historyId: backup.historyId,
      sequence: backup.sequence,
      restoreTime: restoreTime(backup),
    }),
  })
}

/** The `--to-time` that restores what the backup has, and nothing of a later version. */
export function restoreTime({ atMicros }: Pick<UpgradeBackup, 'atMicros'>): string {
  const micros = BigInt(atMicros)
  const seconds = new Date(Number(micros / 1_000n)).toISOString().slice(0, 19)
  return `${seconds}.${String(micros % 1_000_000n).padStart(6, '0')}Z`
}

async function backUp(
  { configuration, identity, system }: PreparationOptions,
  surveys: readonly DatabaseSurvey[],
): Promise<UpgradeBackup | null> {
  const { product, identityDatabase } = configuration
  const backups = product?.backups ?? null
  if (product === null || backups === null) return null
  const opened = identity ?? new Database({ url: identityDatabase.url, connectionsMax: 1 })
  try {
    const { backUpBefore } = await import('./backup-before.ts')
    const all = identity === null ? await surveyDatabases(configuration, opened) : surveys
    return await backUpBefore(all, {
      product: { ...product, backups },
      identity: opened,
      peppers: backups.includesPepper ? peppersOf(configuration) : null,
      system,
    })
  } catch (cause) {
    if (isFault(cause) && cause.code.startsWith('SERVER_')) throw cause
    const reason = isFault(cause) ? `${cause.code}: ${cause.detail ?? cause.message}` : 'see above'
    throw new Fault('SERVER_UPGRADE_BACKUP_FAILED', { detail: reason, cause })
  } finally {
    if (identity === null) await opened.close()
  }
}
