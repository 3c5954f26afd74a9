/** The backups that commands on this machine read: a directory, a tar file, or a bucket. */
import type { ClientEnvironment } from '../../environment.ts'
import { resolvePath } from '../../roots/roots.ts'

/** The settings of a server by which `s3://bucket/prefix` is read. */
const S3_VARIABLES = [
  'SERVICE_BACKUP_S3_ENDPOINT',
  'SERVICE_BACKUP_S3_REGION',
  'SERVICE_BACKUP_S3_ACCESS_KEY_ID',
  'SERVICE_BACKUP_S3_ACCESS_KEY_ID_FILE',
  'SERVICE_BACKUP_S3_SECRET_ACCESS_KEY',
  'SERVICE_BACKUP_S3_SECRET_ACCESS_KEY_FILE',
] as const

/** Returns an absolute path, or the address of a bucket as it is. */
export function backupPath(environment: ClientEnvironment, from: string): string {
  return from.startsWith('s3://') ? from : resolvePath(environment, from)
}

export function backupVariables(environment: ClientEnvironment): Readonly<Record<string, string>> {
  const values = S3_VARIABLES.map((name) => [name, environment.variable(name)] as const)
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as {
    [name: string]: string
  }
}
