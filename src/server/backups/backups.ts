/** Opens the backups of an Environment: those that operators ask for, and the continuous ones. */
import type { FollowedServer } from '../../backups/increments/continuous-backup.ts'
import { Backups, type BackupsOptions } from '../../backups/service/backups.ts'
import { DirectoryTarget } from '../../backups/targets/directory.ts'
import type { BackupTarget } from '../../backups/targets/targets.ts'
import type { BackupSettings, BackupTargetSettings } from '../../settings/backups.ts'
import { findHistory } from '../../storage/control/environment.ts'
import type { MemoryPlan } from '../../system/memory/memory-plan.ts'
import { revealAddress } from '../blobs.ts'

interface OpenOptions extends Pick<BackupsOptions, 'log' | 'metrics' | 'freeFloorBytes'> {
  readonly server: FollowedServer
  /** Null if backups are only made for the recipients of a request. */
  readonly settings: BackupSettings | null
  readonly memory: Pick<MemoryPlan, 'backupBytes'>
}

/** Follows commits from now on if the settings name a target. Call it before the first call. */
export async function openBackups({ settings, memory, ...options }: OpenOptions): Promise<Backups> {
  const recipients = settings?.recipients ?? null
  if (settings === null || settings.target === null) return new Backups({ ...options, recipients })
  const { ContinuousBackup } = await import('../../backups/increments/continuous-backup.ts')
  const target = await targetOf(settings.target)
  const { retentionDays: days, retentionBases: bases, baseIntervalMillis } = settings
  const { server } = options
  return new Backups({
    ...options,
    recipients,
    openContinuous: (listeners) => ({
      target,
      backup: new ContinuousBackup({
        server,
        target,
        recipients: settings.recipients,
        historyId: server.root.control.read(findHistory)!,
        baseIntervalMillis,
        retention: { days, bases },
        bufferBytesMax: memory.backupBytes,
        catchUpBytesMax: memory.backupBytes,
        ...listeners,
      }),
    }),
  })
}

async function targetOf(settings: BackupTargetSettings): Promise<BackupTarget> {
  if (settings.kind === 'directory') return new DirectoryTarget(settings.path)
  const { S3Target } = await import('../../backups/targets/s3.ts')
  return new S3Target({ address: revealAddress(settings.s3), prefix: settings.prefix })
}
