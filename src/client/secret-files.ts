/** A new private file for a credential that the server shows only once. */
import { rmSync } from 'node:fs'
import { Fault } from '../errors/fault.ts'
import { writeFileAtomic } from '../system/files.ts'
import { explanation } from './explanations.ts'
import { createFile, withPath } from './files.ts'

const PRIVATE_FILE = 0o600

/**
 * Creates the file before the request, since a credential that cannot be stored would be lost, and
 * removes it if there is no credential. Throws CLIENT_FILE_FAILED if the file exists.
 */
export async function withSecretFile<T>(
  file: string | null,
  request: () => Promise<T>,
  secretOf: (response: T) => string | null,
): Promise<T> {
  if (file === null) return request()
  if (!createFile(file, '', PRIVATE_FILE)) {
    throw new Fault('CLIENT_FILE_FAILED', {
      detail: `${file} exists already, and svc does not overwrite it.`,
      cause: explanation({ next: 'Name another file.' }),
    })
  }
  try {
    const response = await request()
    const secret = secretOf(response)
    if (secret === null) rmSync(file, { force: true })
    else withPath(file, () => writeFileAtomic(file, `${secret}\n`, { mode: PRIVATE_FILE }))
    return response
  } catch (error) {
    rmSync(file, { force: true })
    throw error
  }
}
