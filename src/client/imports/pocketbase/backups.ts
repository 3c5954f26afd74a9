/** Backups of PocketBase, whose database SQLite reads in a copy: it may write beside it. */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ForeignDatabase } from '../../development/workspace-tools.ts'
import { withPath } from '../../files.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import type { ExportFiles } from '../archives/export-files.ts'
import type { Source } from '../source.ts'
import { openPocketBase } from './pocketbase.ts'

const DATABASE = 'data.db'
/** The log has commits that the database itself may not have yet. */
const LOG = 'data.db-wal'
const PRIVATE_FILE = 0o600

/**
 * Opens a backup. The database is copied, and the copy removed when the source is closed. Throws
 * CLIENT_EXPORT_INVALID.
 */
export async function openBackup(
  files: ExportFiles,
  openDatabase: (path: string) => Promise<ForeignDatabase>,
): Promise<Source> {
  if (!files.has(DATABASE)) {
    throw exportInvalid(`The export has no ${DATABASE}, as a backup of PocketBase has.`)
  }
  const directory = mkdtempSync(join(tmpdir(), 'svc-import-'))
  const remove = (): void => rmSync(directory, { recursive: true, force: true })
  try {
    for (const name of [DATABASE, LOG]) {
      if (files.has(name)) await copy(files, name, join(directory, name))
    }
    const database = await opened(join(directory, DATABASE), openDatabase)
    const source = openPocketBase(files, database)
    const close = (): void => {
      source.close()
      remove()
    }
    return { ...source, close }
  } catch (error) {
    remove()
    throw error
  }
}

async function opened(
  path: string,
  openDatabase: (path: string) => Promise<ForeignDatabase>,
): Promise<ForeignDatabase> {
  try {
    return await openDatabase(path)
  } catch (error) {
    throw exportInvalid(`${DATABASE} is no database of SQLite, or it is damaged.`, error)
  }
}

async function copy(files: ExportFiles, name: string, path: string): Promise<void> {
  const file = withPath(path, () => openSync(path, 'wx', PRIVATE_FILE))
  try {
    for await (const chunk of files.read(name)) {
      withPath(path, () => {
        for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at)
      })
    }
  } finally {
    closeSync(file)
  }
}
