/** Downloads the archive of a backup into a file, which appears under its name once it is whole. */
import { closeSync, constants, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { Fault } from '../../../errors/fault.ts'
import type { BackupId } from '../../../value/ids.ts'
import { readBackupContent } from '../../../wire/operations/backups.ts'
import type { Context } from '../../contexts.ts'
import { withPath } from '../../files.ts'
import type { Remote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { formatBytes } from '../../sizes.ts'
import { exists, moveNew } from '../files/downloads.ts'

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
/** Two empty blocks end an archive: one that was cut off has none. */
const END_BYTES = 1_024

interface Wanted {
  readonly backupId: BackupId
  readonly file: string
}

/** Throws CLIENT_FILE_FAILED if the file exists, CLIENT_RESPONSE_INVALID, and as requests do. */
export async function downloadArchive(
  context: Context,
  remote: Remote,
  { backupId, file }: Wanted,
): Promise<void> {
  const target = resolvePath(context.environment, file)
  const part = `${target}.part`
  const opened = withPath(part, () => openSync(part, FLAGS, 0o600))
  let length = 0
  let end: Uint8Array = new Uint8Array()
  const take = (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length; ) at += withPath(part, () => writeSync(opened, bytes, at))
    length += bytes.length
    end = Buffer.concat([end, bytes.subarray(-END_BYTES)]).subarray(-END_BYTES)
  }
  try {
    const reading = remote.bytes(readBackupContent, take, { params: { backupId } })
    await context.output.progress('reading the backup', reading)
    if (length < END_BYTES || end.some((byte) => byte !== 0)) {
      throw new Fault('CLIENT_RESPONSE_INVALID', { detail: 'The archive has no end.' })
    }
    withPath(part, () => fsyncSync(opened))
    if (!withPath(target, () => moveNew(part, target))) throw exists(target)
  } finally {
    closeSync(opened)
    rmSync(part, { force: true })
  }
  await context.output.result({ version: 1, backupId, file: target, bytes: length }, [
    `Wrote ${target}: ${formatBytes(length)}.`,
  ])
}
