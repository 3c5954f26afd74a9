/** Reads the settings of a test process: the executable, the Workspace and the seed. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const VARIABLE = 'SVC_EXECUTABLE'
const SEED = 1

/** Returns the name or the path of `svc`. */
export function executable(): string {
  return process.env[VARIABLE] || 'svc'
}

/** Returns the seed of this run of the tests; NaN for a variable that is not a number. */
export function seedOfRun(): number {
  const { SVC_SEED: text = '' } = process.env
  return text === '' ? SEED : Number(text)
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
