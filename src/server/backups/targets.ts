/** Opens the target of backups that the settings name. */
import { DirectoryTarget } from '../../backups/targets/directory.ts'
import type { BackupTarget } from '../../backups/targets/targets.ts'
import type { BackupTargetSettings } from '../../settings/backups.ts'
import { revealAddress } from '../blobs.ts'

export async function openBackupTarget(settings: BackupTargetSettings): Promise<BackupTarget> {
  if (settings.kind === 'directory') return new DirectoryTarget(settings.path)
  const { S3Target } = await import('../../backups/targets/s3.ts')
  return new S3Target({ address: revealAddress(settings.s3), prefix: settings.prefix })
}
