/**
 * Settings of backups: who can open them, where they are kept, and for how long. Recipients alone
 * leave backups to operators who ask for one.
 */
import { absolutePath, isReadableByOthers, isRootPath } from '../system/files.ts'
import { isRecipient, RECIPIENTS_MAX } from '../value/backups/recipients.ts'
import { invalid, type ProcessEnvironment, readPlain, wholeNumber } from './sources.ts'
import { readS3, type S3Names, type S3Settings } from './storage.ts'
import type { VariableName } from './variables.ts'

export interface BackupSettings {
  /** Recipients of age. */
  readonly recipients: readonly string[]
  /** Null makes backups only where an operator asks for one. */
  readonly target: BackupTargetSettings | null
  /** Time from a base to the next one. */
  readonly baseIntervalMillis: number
  /** Days after which backups are removed. */
  readonly retentionDays: number
  /** Bases that are kept however old they are. */
  readonly retentionBases: number
  /** True if backups have the identity pepper, and `subjectPepper` of all providers. */
  readonly includesPepper: boolean
  /** The file of an identity with which restores are rehearsed; null rehearses none. */
  readonly rehearsalIdentityPath: string | null
}

export type BackupTargetSettings =
  | { readonly kind: 'directory'; readonly path: string }
  | {
      readonly kind: 's3'
      readonly s3: S3Settings
      /** Begins all names: empty, or it ends with `/`. */
      readonly prefix: string
    }

const RECIPIENTS = 'SERVICE_BACKUP_RECIPIENTS'
const DIRECTORY = 'SERVICE_BACKUP_DIRECTORY'
const PREFIX = 'SERVICE_BACKUP_S3_PREFIX'
const REHEARSAL = 'SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE'
const S3_NAMES: S3Names = {
  endpoint: 'SERVICE_BACKUP_S3_ENDPOINT',
  bucket: 'SERVICE_BACKUP_S3_BUCKET',
  region: 'SERVICE_BACKUP_S3_REGION',
  accessKeyId: 'SERVICE_BACKUP_S3_ACCESS_KEY_ID',
  secretAccessKey: 'SERVICE_BACKUP_S3_SECRET_ACCESS_KEY',
}
const DAYS = { min: 1, max: 3_650, unit: ' of days' }
const BASES = { min: 1, max: 1_000, unit: ' of bases' }
const INTERVAL = /^([1-9][0-9]{0,4})(m|h|d)$/
const UNIT_MILLIS: { readonly [unit: string]: number } = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const INTERVAL_MILLIS_MIN = 10 * 60_000
const INTERVAL_MILLIS_MAX = 31 * 86_400_000

/**
 * Returns null if no one is named who could open backups. `root` is the Product root, and `files`
 * the store of files. Throws SERVER_CONFIGURATION_INVALID and SERVER_SECRET_CONFIGURATION_CONFLICT.
 */
export function readBackups(
  environment: ProcessEnvironment,
  { root, files }: { readonly root: string; readonly files: S3Settings | null },
): BackupSettings | null {
  const recipients = readRecipients(environment)
  const target = readTarget(environment, root, files)
  const includesPepper = readPepper(environment)
  const rehearsalIdentityPath = readRehearsalIdentity(environment)
  const retention = {
    baseIntervalMillis: readInterval(environment),
    retentionDays: wholeNumber(environment, 'SERVICE_BACKUP_RETENTION_DAYS', DAYS),
    retentionBases: wholeNumber(environment, 'SERVICE_BACKUP_RETENTION_BASES', BASES),
  }
  if (recipients === null) {
    const rule = `only together with ${RECIPIENTS}, which says who can open the backups`
    const name = target?.kind === 'directory' ? DIRECTORY : S3_NAMES.endpoint
    if (target !== null) throw invalid(name, rule)
    if (includesPepper) throw invalid('SERVICE_BACKUP_PEPPER', rule)
    if (rehearsalIdentityPath !== null) throw invalid(REHEARSAL, rule)
    return null
  }
  if (target === null && rehearsalIdentityPath !== null) {
    throw invalid(REHEARSAL, `only together with ${DIRECTORY} or ${S3_NAMES.endpoint}`)
  }
  return { recipients, target, ...retention, includesPepper, rehearsalIdentityPath }
}

/** Returns a setting without a default that is set; null if none is. */
export function backupSettingIn(environment: ProcessEnvironment): string | null {
  const names: readonly VariableName[] = [
    RECIPIENTS,
    DIRECTORY,
    PREFIX,
    'SERVICE_BACKUP_PEPPER',
    REHEARSAL,
    S3_NAMES.endpoint,
    S3_NAMES.bucket,
    S3_NAMES.accessKeyId,
    S3_NAMES.secretAccessKey,
  ]
  const sources = [...names, `${S3_NAMES.accessKeyId}_FILE`, `${S3_NAMES.secretAccessKey}_FILE`]
  return sources.find((name) => environment[name] !== undefined) ?? null
}

/**
 * Returns the S3-compatible store of backups; null if none is set. A restore reads its own address
 * and takes the keys from here. Throws as `readBackups` does.
 */
export function readBackupS3(environment: ProcessEnvironment): S3Settings | null {
  return readS3(environment, S3_NAMES)
}

function readRecipients(environment: ProcessEnvironment): readonly string[] | null {
  const value = readPlain(environment, RECIPIENTS)
  if (value === null) return null
  const recipients = value.split(',')
  if (recipients.length > RECIPIENTS_MAX) {
    throw invalid(RECIPIENTS, `at most ${RECIPIENTS_MAX} recipients`)
  }
  const wrong = recipients.findIndex((recipient) => !isRecipient(recipient))
  if (wrong !== -1) {
    const rule =
      'a recipient of age as `svc backup keygen` prints it, age1 and 58 characters, without ' +
      'blanks between'
    throw invalid(RECIPIENTS, `entry ${wrong + 1} to be ${rule}`)
  }
  if (new Set(recipients).size !== recipients.length) throw invalid(RECIPIENTS, 'each once')
  return recipients
}

function readTarget(
  environment: ProcessEnvironment,
  root: string,
  files: S3Settings | null,
): BackupTargetSettings | null {
  const path = readDirectory(environment, root)
  const s3 = readBackupS3(environment)
  const prefix = readPlain(environment, PREFIX)
  if (s3 === null) {
    if (prefix !== null) throw invalid(PREFIX, `only together with ${S3_NAMES.endpoint}`)
    return path === null ? null : { kind: 'directory', path }
  }
  if (path !== null)
    throw invalid(DIRECTORY, `unset, or ${S3_NAMES.endpoint}: backups have one target`)
  if (files?.endpoint === s3.endpoint && files.bucket === s3.bucket) {
    const rule = 'another bucket than SERVICE_STORAGE_S3_BUCKET: what damages one spares the other'
    throw invalid(S3_NAMES.bucket, rule)
  }
  if (prefix !== null && !/^(?:[A-Za-z0-9._-]{1,64}\/){1,8}$/.test(prefix)) {
    throw invalid(PREFIX, 'names that each end with a slash, such as backups/')
  }
  return { kind: 's3', s3, prefix: prefix ?? '' }
}

function readDirectory(environment: ProcessEnvironment, root: string): string | null {
  const value = readPlain(environment, DIRECTORY)
  if (value === null) return null
  const path = absolutePath(value)
  if (path === null || isRootPath(path)) throw invalid(DIRECTORY, 'an absolute path other than /')
  if (path === root || path.startsWith(`${root}/`)) {
    throw invalid(DIRECTORY, 'outside of SERVICE_PRODUCT_ROOT: they must not be lost together')
  }
  return path
}

function readInterval(environment: ProcessEnvironment): number {
  const name = 'SERVICE_BACKUP_BASE_INTERVAL'
  const [, count, unit] = INTERVAL.exec(readPlain(environment, name)!) ?? []
  const millis = unit === undefined ? 0 : Number(count) * UNIT_MILLIS[unit]!
  if (millis < INTERVAL_MILLIS_MIN || millis > INTERVAL_MILLIS_MAX) {
    throw invalid(name, 'a whole number and m, h or d, from 10m to 31d, such as 24h')
  }
  return millis
}

function readPepper(environment: ProcessEnvironment): boolean {
  const name = 'SERVICE_BACKUP_PEPPER'
  const value = readPlain(environment, name)
  if (value !== null && value !== 'include') throw invalid(name, 'exactly include, or unset')
  return value !== null
}

function readRehearsalIdentity(environment: ProcessEnvironment): string | null {
  const value = readPlain(environment, REHEARSAL)
  if (value === null) return null
  const path = absolutePath(value)
  if (path === null) throw invalid(REHEARSAL, 'an absolute path')
  // Who reads it opens every backup.
  if (isReadableByOthers(path)) throw invalid(REHEARSAL, 'a file that not every user can read')
  return path
}
