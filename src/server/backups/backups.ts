/** Opens the backups of an Environment: those that operators ask for, and the continuous ones. */
import { join } from 'node:path'
import type { ContinuousBackup } from '../../backups/increments/continuous-backup.ts'
import type { FollowedServer } from '../../backups/increments/continuous-options.ts'
import { Rehearsals } from '../../backups/rehearsal/rehearsals.ts'
import { Backups, type BackupsOptions } from '../../backups/service/backups.ts'
import type { BackupSettings, BackupTargetSettings } from '../../settings/backups.ts'
import { findHistory } from '../../storage/control/environment.ts'
import { REHEARSAL_DIRECTORY, REHEARSAL_FILE } from '../../storage/root.ts'
import type { MemoryPlan } from '../../system/memory/memory-plan.ts'
import { revealAddress } from '../blobs.ts'
import { identitiesIn } from '../restore/sources.ts'
import { rehearseInChild } from './rehearsal-child.ts'
import { openBackupTarget } from './targets.ts'

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
  const target = await openBackupTarget(settings.target)
  const { retentionDays: days, retentionBases: bases, baseIntervalMillis } = settings
  const { server } = options
  const identities = readIdentities(settings.rehearsalIdentityPath)
  return new Backups({
    ...options,
    recipients,
    openContinuous: (listeners) => {
      const backup = new ContinuousBackup({
        server,
        target,
        recipients: settings.recipients,
        historyId: server.root.control.read(findHistory)!,
        baseIntervalMillis,
        retention: { days, bases },
        bufferBytesMax: memory.backupBytes,
        catchUpBytesMax: memory.backupBytes,
        ...listeners,
      })
      const rehearsing = { ...options, settings: settings.target!, identities, backup }
      return { target, backup, rehearsals: identities === null ? null : openRehearsals(rehearsing) }
    },
  })
}

/** Reads the identity that the operator gave to the server. Throws SERVER_CONFIGURATION_INVALID. */
function readIdentities(path: string | null): readonly string[] | null {
  return path === null ? null : identitiesIn([path], 'SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE')
}

interface RehearsalOptions extends Pick<OpenOptions, 'log' | 'metrics' | 'server'> {
  readonly settings: BackupTargetSettings
  readonly identities: readonly string[] | null
  readonly freeFloorBytes: number
  readonly backup: Pick<ContinuousBackup, 'state'>
}

function openRehearsals(options: RehearsalOptions): Rehearsals {
  const { server, log, metrics, settings, identities, freeFloorBytes, backup } = options
  const { path, descriptor } = server.root
  const target =
    settings.kind === 'directory'
      ? settings
      : { ...settings, address: revealAddress(settings.s3), s3: undefined }
  return new Rehearsals({
    system: server.system,
    log,
    metrics,
    path: join(path, REHEARSAL_FILE),
    backedUpHistory: () => backup.state().lastBase?.historyId ?? null,
    rehearse: (historyId, signal) => {
      const address = { environmentId: descriptor.environmentId, historyId }
      const directory = join(path, REHEARSAL_DIRECTORY)
      const request = { target, address, identities: identities!, directory, freeFloorBytes }
      return rehearseInChild(request, signal)
    },
  })
}
