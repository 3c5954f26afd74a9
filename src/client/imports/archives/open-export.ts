/** Opens an export, which is a ZIP archive, a directory, or one file of JSON. */
import { realpathSync, statSync } from 'node:fs'
import { Fault } from '../../../errors/fault.ts'
import { explanation } from '../../explanations.ts'
import { errorCode, withPath } from '../../files.ts'
import { openDirectory, openSingleFile } from './directories.ts'
import { exportInvalid } from './export-fault.ts'
import type { ExportFiles } from './export-files.ts'
import { openZip } from './zip-archives.ts'

/**
 * Opens an export. The path itself may be a symbolic link, what is inside may not. Throws
 * CLIENT_FILE_FAILED and CLIENT_EXPORT_INVALID.
 */
export async function openExport(path: string): Promise<ExportFiles> {
  const found = realPath(path)
  const entry = withPath(path, () => statSync(found))
  if (entry.isDirectory()) return openDirectory(found)
  if (!entry.isFile()) throw exportInvalid(`${path} is neither a file nor a directory.`)
  return found.endsWith('.json') ? openSingleFile(found) : openZip(found)
}

function realPath(path: string): string {
  const found = withPath(path, () => {
    try {
      return realpathSync(path)
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null
      throw error
    }
  })
  if (found !== null) return found
  throw new Fault('CLIENT_FILE_FAILED', {
    detail: `There is no file or directory ${path}.`,
    cause: explanation({ next: 'Name the export; a relative path begins at this directory.' }),
  })
}
