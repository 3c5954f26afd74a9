/**
 * What a Product root demands of its files beyond what system checks: one owner, and no access of
 * others. All of them lie in a directory that only the owner writes, so a check by name holds.
 */
import { closeSync, constants, lstatSync, openSync, type Stats } from 'node:fs'
import * as promises from 'node:fs/promises'
import { Fault } from '../errors/fault.ts'
import { FileFailure, readSecretFile } from '../system/files.ts'

/** The asynchronous operations that artifacts need; tests stop after the nth of them. */
export type Files = Pick<typeof promises, 'mkdir' | 'open' | 'rename' | 'readdir' | 'unlink'>

export const realFiles: Files = promises

/** What others may do with a path: read it, or nothing. Nobody else may ever write. */
export type Access = 'shared' | 'private'

/** What a disk that is full or read-only, or the rights of this user, refuse. */
const REFUSED =
  /^(?:SQLITE_(?:FULL|READONLY|CANTOPEN|IOERR|PERM)|(?:ENOSPC|EDQUOT|EROFS|EACCES|EPERM|EIO)$)/

/**
 * SERVER_PRODUCT_ROOT_INVALID, or SERVER_PRODUCT_ROOT_UNAVAILABLE where `cause` tells nothing of
 * what is in the root. The detail ends with the code of the cause.
 */
export function invalidRoot(detail: string, cause?: unknown): Fault {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  if (code === undefined) return new Fault('SERVER_PRODUCT_ROOT_INVALID', { detail, cause })
  const refused = REFUSED.test(code)
  return new Fault(refused ? 'SERVER_PRODUCT_ROOT_UNAVAILABLE' : 'SERVER_PRODUCT_ROOT_INVALID', {
    detail: `${detail}: ${code}`,
    cause,
  })
}

/** Throws SERVER_PRODUCT_ROOT_INVALID unless it is a directory that only this user may write. */
export function checkOwnDirectory(path: string): void {
  const stats = statsOf(path)
  if (!stats.isDirectory()) throw invalidRoot(`${path} is not a directory`)
  checkOwner(path, stats, 'shared')
}

/** Throws SERVER_PRODUCT_ROOT_INVALID. */
export function readOwnFile(path: string, bytesMax: number, access: Access): Uint8Array {
  try {
    const bytes = readSecretFile(path, { bytesMax })
    checkOwner(path, statsOf(path), access)
    return bytes
  } catch (error) {
    if (error instanceof FileFailure) throw invalidRoot(`${path}: ${error.message}`, error.cause)
    throw error
  }
}

/** Makes an empty file with mode 0600 unless one is there; an existing one is only checked. */
export function ensureOwnFile(path: string): void {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
  try {
    closeSync(openSync(path, flags, 0o600))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw invalidRoot(`${path} cannot be made`, cause)
    }
    checkOwnFile(path)
  }
}

/** Throws SERVER_PRODUCT_ROOT_INVALID unless it is absent or a file that only this user may use. */
export function checkOwnFile(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return
  // By name: to open and close a locked file would drop every lock that this process has on it.
  const stats = statsOf(path)
  if (!stats.isFile()) throw invalidRoot(`${path} is not a regular file`)
  checkOwner(path, stats, 'private')
}

export function isAbsentOrEmpty(path: string): boolean {
  return (lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0
}

function statsOf(path: string): Stats {
  try {
    return lstatSync(path)
  } catch (cause) {
    throw invalidRoot(`${path} cannot be read`, cause)
  }
}

function checkOwner(path: string, stats: Stats, access: Access): void {
  const user = process.geteuid?.()
  // Where there are no user IDs there are no modes either.
  if (user === undefined) return
  if (stats.uid !== user) throw invalidRoot(`${path} has another owner`)
  if ((stats.mode & (access === 'private' ? 0o077 : 0o022)) !== 0) {
    const mode = (stats.mode & 0o777).toString(8)
    const mend = `chmod ${access === 'private' ? '600' : 'go-w'} ${path}`
    throw invalidRoot(`${path} is open to others: mode ${mode}; run \`${mend}\``)
  }
}
