/** Opens an export, which is a ZIP archive, a directory, or one file of JSON. */
import { realpathSync, statSync } from 'node:fs'
import { withPath } from '../../files.ts'
import { openDirectory, openSingleFile } from './directories.ts'
import { exportInvalid } from './export-fault.ts'
import type { ExportFiles } from './export-files.ts'
import { openZip } from './zip-archives.ts'

/**
 * Opens an export. The path itself may be a symbolic link, what is inside may not. Throws
 * CLIENT_FILE_FAILED and CLIENT_EXPORT_INVALID.
 */
export async function openExport(path: string): Promise<ExportFiles> {
  const found = withPath(path, () => realpathSync(path))
  const entry = withPath(path, () => statSync(found))
  if (entry.isDirectory()) return openDirectory(found)
  if (!entry.isFile()) throw exportInvalid(`${path} is neither a file nor a directory.`)
  return found.endsWith('.json') ? openSingleFile(found) : openZip(found)
}
