/** A new private file for a credential that is shown only once. */
import { rmSync } from 'node:fs'
import { Fault } from '../errors/fault.ts'
import { writeFileAtomic } from '../system/files.ts'
import { createFile, withPath } from './files.ts'

const PRIVATE_FILE = 0o600

/**
 * The file is there before the credential is: one that could not be kept would be lost. Without a
 * credential there is no file afterwards. Faults: CLIENT_FILE_FAILED where the file exists.
 */
export async function withSecretFile<T>(
  file: string | null,
  request: () => Promise<T>,
  secretOf: (answer: T) => string | null,
): Promise<T> {
  if (file === null) return request()
  if (!createFile(file, '', PRIVATE_FILE)) {
    throw new Fault('CLIENT_FILE_FAILED', { detail: `${file} exists already.` })
  }
  try {
    const answer = await request()
    const secret = secretOf(answer)
    if (secret === null) rmSync(file, { force: true })
    else withPath(file, () => writeFileAtomic(file, `${secret}\n`, { mode: PRIVATE_FILE }))
    return answer
  } catch (error) {
    rmSync(file, { force: true })
    throw error
  }
}
