/**
 * The file that hands an owner's code to the operator of the server: `initial-owner.code`, or
 * `owner-recovery.code`, in `bootstrap` of the state directory, 0600 in a directory 0700. A new
 * code is first written to a second file, which takes that name once the code's digest is
 * committed.
 */
import { Fault } from '../errors/fault.ts'
import {
  checkPrivateDirectory,
  ensurePrivateDirectory,
  FileFailure,
  readSecretFile,
  removeFileDurably,
  writeFileAtomic,
} from '../system/files.ts'
import { Secret } from '../value/secret.ts'

/** The file for the operator, or the file of a code whose commit is not confirmed yet. */
export type BootstrapFile = 'current' | 'next'

/** The two files of a code. Writes are durable when they return. */
export interface BootstrapFiles {
  /** Absolute path of the current file. */
  readonly path: string
  /** Creates the directories, or rejects unsafe ones. */
  prepare(): void
  /** Returns null if the file does not exist. */
  read(file: BootstrapFile): Secret | null
  write(file: BootstrapFile, code: Secret): void
  remove(file: BootstrapFile): void
}

/** Far more than a code has: a longer file has other content, and is not read. */
const FILE_BYTES_MAX = 4_096

/**
 * Opens the files. Failures are SERVER_STATE_DIRECTORY_UNAVAILABLE where they may end by
 * themselves, and otherwise SERVER_STATE_DIRECTORY_INVALID. `stateDirectory` is absolute.
 */
export function openBootstrapFiles(
  stateDirectory: string,
  purpose: 'initial-owner' | 'owner-recovery' = 'initial-owner',
): BootstrapFiles {
  const directory = bootstrapDirectory(stateDirectory)
  const path = `${directory}/${purpose}.code`
  const paths = { current: path, next: `${path}.next` }
  return {
    path,
    prepare: () =>
      guarded('directory', () => {
        ensurePrivateDirectory(stateDirectory)
        ensurePrivateDirectory(directory)
      }),
    read: (file) => guarded(file, () => readCode(paths[file])),
    write: (file, code) =>
      guarded(file, () => writeFileAtomic(paths[file], `${code.reveal()}\n`, { mode: 0o600 })),
    remove: (file) =>
      guarded(file, () => {
        removeFileDurably(paths[file])
      }),
  }
}

/**
 * Throws SERVER_STATE_DIRECTORY_* where `prepare` would, as far as this can be checked
 * without creating a directory.
 */
export function checkStateDirectory(stateDirectory: string): void {
  guarded('directory', () => {
    checkPrivateDirectory(stateDirectory)
    checkPrivateDirectory(bootstrapDirectory(stateDirectory))
  })
}

function bootstrapDirectory(stateDirectory: string): string {
  return `${stateDirectory}/bootstrap`
}

function readCode(path: string): Secret | null {
  try {
    const bytes = readSecretFile(path, { bytesMax: FILE_BYTES_MAX })
    return new Secret(new TextDecoder().decode(bytes).trimEnd())
  } catch (error) {
    if (error instanceof FileFailure && error.reason === 'missing') return null
    throw error
  }
}

function guarded<T>(what: BootstrapFile | 'directory', work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof FileFailure)) throw error
    const detail = `bootstrap ${what}: expected ${error.message}`
    const isTransient = error.reason === 'full' || error.reason === 'failed'
    const code = isTransient
      ? 'SERVER_STATE_DIRECTORY_UNAVAILABLE'
      : 'SERVER_STATE_DIRECTORY_INVALID'
    throw new Fault(code, { detail, cause: error.cause })
  }
}
