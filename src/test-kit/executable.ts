/** The executable that hosts the environments, and the Workspace that it builds. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const VARIABLE = 'SVC_EXECUTABLE'

/** Returns the name or the path of `svc`. */
export function executable(): string {
  return process.env[VARIABLE] || 'svc'
}

/** Returns the message for an executable that could not be started. */
export function notStarted(program: string, { code, message }: NodeJS.ErrnoException): string {
  const reason = code === 'ENOENT' ? 'was not found' : `could not be started (${message})`
  return `${program} ${reason}. Put svc on the PATH, or set ${VARIABLE} to its path.`
}

/** Returns the directory that has `_generated`; the working directory for a copied package. */
export function ownWorkspace(): string {
  const directory = dirname(dirname(fileURLToPath(import.meta.url)))
  return existsSync(join(directory, 'schema.ts')) ? directory : process.cwd()
}
