/** Opens the backup that a command names, and the identities that decrypt it. */
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { AgeFailure, Opener } from '../../backups/format/age-files.ts'
import {
  type HistoryAddress,
  listBases,
  listEnvironments,
  listHistories,
} from '../../backups/format/chain.ts'
import { DirectoryTarget } from '../../backups/targets/directory.ts'
import { S3Target } from '../../backups/targets/s3.ts'
import { TarTarget } from '../../backups/targets/tar.ts'
import type { BackupFiles } from '../../backups/targets/targets.ts'
import { Fault } from '../../errors/fault.ts'
import { readBackupS3 } from '../../settings/backups.ts'
import { invalid, type ProcessEnvironment } from '../../settings/sources.ts'
import { FILE_RULES, FileFailure, readSecretFile } from '../../system/files.ts'
import { isId } from '../../value/ids.ts'
import { revealAddress } from '../blobs.ts'

const IDENTITY_BYTES_MAX = 64 * 1024

const S3 = /^s3:\/\/([^/]+)(?:\/(.*))?$/s

/**
 * `from` is a directory, a tar file or `s3://bucket/prefix`, whose keys are those of the setting of
 * backups. Throws SERVER_CONFIGURATION_INVALID, BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function openTarget(
  from: string,
  environment: ProcessEnvironment,
): Promise<BackupFiles> {
  const [, bucket, prefix = ''] = S3.exec(from) ?? []
  if (bucket !== undefined) {
    const s3 = readBackupS3({ ...environment, SERVICE_BACKUP_S3_BUCKET: bucket })!
    const whole = prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`
    return new S3Target({ address: revealAddress(s3), prefix: whole })
  }
  const path = resolve(from)
  if (!existsSync(path)) throw invalid('--from', 'a directory or a tar file that exists')
  return statSync(path).isDirectory() ? new DirectoryTarget(path) : TarTarget.open(path)
}

/** Opens identities as `age-keygen` writes them. Throws SERVER_CONFIGURATION_INVALID. */
export function openIdentities(files: readonly string[], source = '--identity'): Opener {
  return openerOf(linesOf(files, source), source)
}

/** Returns the identities that files have. Throws SERVER_CONFIGURATION_INVALID. */
export function identitiesIn(files: readonly string[], source: string): readonly string[] {
  const identities = linesOf(files, source)
  openerOf(identities, source)
  return identities
}

function linesOf(files: readonly string[], source: string): readonly string[] {
  const lines = files.flatMap((file) => readIdentity(file, source).split(/\r?\n/))
  return lines.filter((line) => line !== '' && !line.startsWith('#'))
}

function openerOf(identities: readonly string[], source: string): Opener {
  try {
    return new Opener(identities)
  } catch (error) {
    if (!(error instanceof AgeFailure)) throw error
    throw invalid(source, `a file with ${error.message}`)
  }
}

function readIdentity(file: string, source: string): string {
  try {
    const bytes = readSecretFile(resolve(file), { bytesMax: IDENTITY_BYTES_MAX })
    return Buffer.from(bytes).toString('utf8')
  } catch (error) {
    if (!(error instanceof FileFailure)) throw error
    const { reason } = error
    throw invalid(source, reason === 'too_large' ? 'a file of 64 KiB' : FILE_RULES[reason])
  }
}

/**
 * Returns the history to restore: by default the newest one with a whole backup, since a restored
 * server that is lost again may have begun one without. Throws RESTORE_POINT_NOT_FOUND,
 * BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function findHistory(
  target: BackupFiles,
  chosen: { readonly environmentId: string | null; readonly historyId: string | null },
): Promise<HistoryAddress> {
  const environments = await listEnvironments(target)
  const environmentId = chosen.environmentId ?? only(environments)
  if (environmentId === null || !isId('env', environmentId)) {
    throw notFound(environmentId === null ? choose(environments) : '--environment: no such ID')
  }
  const histories = await listHistories(target, environmentId)
  const historyId = chosen.historyId ?? (await newestWhole(target, environmentId, histories))
  if (historyId === undefined || !histories.some((known) => known === historyId)) {
    throw notFound(`${environmentId} has the histories ${histories.join(', ') || 'of no backup'}`)
  }
  return { environmentId, historyId: historyId as HistoryAddress['historyId'] }
}

/** Returns the newest history without a whole backup where none has one. */
async function newestWhole(
  target: BackupFiles,
  environmentId: HistoryAddress['environmentId'],
  histories: readonly HistoryAddress['historyId'][],
): Promise<string | undefined> {
  for (const historyId of histories.toReversed()) {
    for await (const _ of listBases(target, { environmentId, historyId })) return historyId
  }
  return histories.at(-1)
}

function only(ids: readonly string[]): string | null {
  return ids.length === 1 ? ids[0]! : null
}

function choose(environments: readonly string[]): string {
  if (environments.length === 0) return 'there is no directory of an Environment'
  return `choose with --environment: ${environments.join(', ')}`
}

function notFound(detail: string): Fault {
  return new Fault('RESTORE_POINT_NOT_FOUND', { detail })
}
