/**
 * Files of the client. system/files.ts reads and replaces files safely; this file turns its
 * failures into Faults that name the path, and creates files without overwriting any.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Fault } from '../errors/fault.ts'
import { FileFailure, readSecretFile } from '../system/files.ts'

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
}

/** Runs `work`. A failure of the file system becomes a CLIENT_FILE_FAILED that names `path`. */
export function withPath<T>(path: string, work: () => T): T {
  const failed = (detail: string, cause: unknown) =>
    new Fault('CLIENT_FILE_FAILED', { detail, cause })
  try {
    return work()
  } catch (error) {
    const reason = errorCode(error instanceof FileFailure ? error.cause : error)
    if (isMissing(error) || reason === 'ENOTDIR') throw failed(missing(path), error)
    if (error instanceof FileFailure) throw failed(`${path} is not ${error.message}.`, error)
    if (reason === undefined) throw error
    throw failed(`${path}: ${reason}.`, error)
  }
}

/** Names the directory if that is missing, since a file was to be created in it. */
function missing(path: string): string {
  const directory = dirname(path)
  const exists = statSync(directory, { throwIfNoEntry: false })?.isDirectory() ?? false
  return exists ? `${path} does not exist.` : `There is no directory ${directory}.`
}

function isMissing(error: unknown): boolean {
  return error instanceof FileFailure ? error.reason === 'missing' : errorCode(error) === 'ENOENT'
}

/** Reads a file; returns null if there is none. Follows no symbolic link and never blocks. */
export function readIfPresent(path: string, bytesMax: number): Uint8Array | null {
  return withPath(path, () => {
    try {
      return readSecretFile(path, { bytesMax })
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  })
}

/** Creates a file atomically; returns false if the path exists already. */
export function createFile(path: string, content: string | Uint8Array, mode: number): boolean {
  const name = `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`
  const temporary = join(dirname(path), name)
  return withPath(path, () => {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
    const file = openSync(temporary, flags, mode)
    try {
      try {
        const bytes = typeof content === 'string' ? Buffer.from(content) : content
        for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
      // Unlike a rename, a link never replaces a file.
      linkOrCreate(temporary, path, content, mode)
      return true
    } catch (error) {
      if (errorCode(error) === 'EEXIST') return false
      throw error
    } finally {
      rmSync(temporary, { force: true })
    }
  })
}

const WITHOUT_LINKS: readonly (string | undefined)[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

/** Falls back where there are no hard links; readers may then see a partial file. */
function linkOrCreate(
  temporary: string,
  path: string,
  content: string | Uint8Array,
  mode: number,
): void {
  try {
    linkSync(temporary, path)
  } catch (error) {
    if (!WITHOUT_LINKS.includes(errorCode(error))) throw error
    writeFileSync(path, content, { flag: 'wx', mode, flush: true })
  }
}

const TEMPORARY = /^\.(.+)\.[0-9a-f]{12}\.tmp$/

/** Removes temporary files of killed writers of `path`. The caller excludes running ones. */
export function sweepTemporaries(path: string): void {
  for (const name of withPath(dirname(path), () => readdirSync(dirname(path)))) {
    if (TEMPORARY.exec(name)?.[1] !== basename(path)) continue
    rmSync(join(dirname(path), name), { force: true })
  }
}
