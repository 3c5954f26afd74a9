/**
 * Checks of the files of a Product root beyond those of system: one owner and no access of others.
 * All files are in a directory that only the owner can write, so a check by name stays valid.
 */
import { closeSync, constants, lstatSync, openSync, type Stats } from 'node:fs'
import * as promises from 'node:fs/promises'
import { Fault } from '../errors/fault.ts'
import { FileFailure, readSecretFile } from '../system/files.ts'

/** The asynchronous file operations of artifacts; tests replace them to fail at the nth one. */
export type Files = Pick<typeof promises, 'mkdir' | 'open' | 'rename' | 'readdir' | 'unlink'>

export const realFiles: Files = promises

/** Access of other users to a path: read only (`shared`) or none (`private`). */
export type Access = 'shared' | 'private'

/** Codes of a full or read-only disk and of missing permissions. */
const DISK_OR_PERMISSION =
  /^(?:SQLITE_(?:FULL|READONLY|CANTOPEN|IOERR|PERM)|(?:ENOSPC|EDQUOT|EROFS|EACCES|EPERM|EIO)$)/

/**
 * Makes SERVER_PRODUCT_ROOT_INVALID, or SERVER_PRODUCT_ROOT_UNAVAILABLE where the code of `cause`
 * is one of the disk or of permissions. The detail ends with that code.
 */
export function invalidRoot(detail: string, cause?: unknown): Fault {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  if (code === undefined) return new Fault('SERVER_PRODUCT_ROOT_INVALID', { detail, cause })
  const isUnavailable = DISK_OR_PERMISSION.test(code)
  return new Fault(
    isUnavailable ? 'SERVER_PRODUCT_ROOT_UNAVAILABLE' : 'SERVER_PRODUCT_ROOT_INVALID',
    {
      detail: `${detail}: ${code}`,
      cause,
    },
  )
}

/** Throws SERVER_PRODUCT_ROOT_INVALID for all but a directory that only this user can write. */
export function checkOwnDirectory(path: string): void {
  const stats = readStats(path)
  if (!stats.isDirectory()) throw invalidRoot(`${path} is not a directory`)
  checkOwner(path, stats, 'shared')
}

/** Reads a file of this user. Throws SERVER_PRODUCT_ROOT_INVALID or _UNAVAILABLE. */
export function readOwnFile(path: string, bytesMax: number, access: Access): Uint8Array {
  try {
    const bytes = readSecretFile(path, { bytesMax })
    checkOwner(path, readStats(path), access)
    return bytes
  } catch (error) {
    if (error instanceof FileFailure) throw invalidRoot(`${path}: ${error.message}`, error.cause)
    throw error
  }
}

/** Creates an empty file with mode 0600; an existing file is only checked. */
export function ensureOwnFile(path: string): void {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
  try {
    closeSync(openSync(path, flags, 0o600))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw invalidRoot(`${path} cannot be created`, cause)
    }
    checkOwnFile(path)
  }
}

/** Throws SERVER_PRODUCT_ROOT_INVALID unless `path` is absent or a file only this user may use. */
export function checkOwnFile(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return
  // Checked by name: opening and closing a locked file would drop this process's locks on it.
  const stats = readStats(path)
  if (!stats.isFile()) throw invalidRoot(`${path} is not a regular file`)
  checkOwner(path, stats, 'private')
}

export function isAbsentOrEmpty(path: string): boolean {
  return (lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0
}

function readStats(path: string): Stats {
  try {
    return lstatSync(path)
  } catch (cause) {
    throw invalidRoot(`${path} cannot be read`, cause)
  }
}

function checkOwner(path: string, stats: Stats, access: Access): void {
  const user = process.geteuid?.()
  // A platform without user IDs has no file modes either.
  if (user === undefined) return
  if (stats.uid !== user) throw invalidRoot(`${path} has another owner`)
  if ((stats.mode & (access === 'private' ? 0o077 : 0o022)) !== 0) {
    const mode = (stats.mode & 0o777).toString(8)
    const fix = `chmod ${access === 'private' ? '600' : 'go-w'} ${path}`
    throw invalidRoot(`${path} is open to other users, mode ${mode}: run \`${fix}\``)
  }
}
