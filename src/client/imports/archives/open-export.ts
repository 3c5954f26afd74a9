/** Opens an export, which is a ZIP archive or a directory. */
import { lstatSync } from 'node:fs'
import { withPath } from '../../files.ts'
import { openDirectory } from './directories.ts'
import type { ExportFiles } from './export-files.ts'
import { openZip } from './zip-archives.ts'

/** Opens an export. Throws CLIENT_FILE_FAILED and CLIENT_EXPORT_INVALID. */
export async function openExport(path: string): Promise<ExportFiles> {
  const isDirectory = withPath(path, () => lstatSync(path).isDirectory())
  return isDirectory ? openDirectory(path) : openZip(path)
}
