/** Writes the files of a build. A failure names the file. */
import { Fault } from '../../errors/fault.ts'
import { FileFailure, type WriteOptions, writeFileAtomic } from '../../system/files.ts'

/** Writes a file atomically. The directory must exist. Throws CLIENT_FILE_FAILED. */
export function writeFile(path: string, content: string | Uint8Array, options: WriteOptions): void {
  try {
    writeFileAtomic(path, content, options)
  } catch (error) {
    throw fileFault(path, error)
  }
}

/** Returns a CLIENT_FILE_FAILED that says why a file cannot be written. */
export function fileFault(path: string, cause: unknown): Fault {
  const reason = cause instanceof FileFailure ? `is not ${cause.message}` : 'cannot be written'
  return new Fault('CLIENT_FILE_FAILED', { detail: `${path} ${reason}.`, cause })
}
