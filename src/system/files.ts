/**
 * Safe access to files that have secrets or must survive a crash. Checks use the open descriptor,
 * since a path may name another file a moment later.
 */
import { randomBytes } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join, normalize, parse } from 'node:path'

/** Rules for files by failure reason. The texts have neither path nor content of a file. */
export const FILE_RULES = {
  not_absolute: 'an absolute path',
  missing: 'an existing file',
  symlink: 'a file that is not a symbolic link',
  not_regular: 'a regular file',
  not_directory: 'a directory',
  not_protected: 'a file that other users cannot write',
  replaceable: 'a file in directories that other users cannot write, or that have the sticky bit',
  not_private: 'a directory that only its owner, the user of this process, can write',
  too_large: 'a smaller file',
  denied: 'a file that this user may use',
  full: 'a file on a disk with free space',
  failed: 'a file that the operating system can read and write',
} as const
export type FileReason = keyof typeof FILE_RULES

export class FileFailure extends Error {
  readonly reason: FileReason

  /** `cause` is the error of the operating system, whose message has the path. */
  constructor(reason: FileReason, cause?: unknown) {
    super(FILE_RULES[reason], { cause })
    this.name = 'FileFailure'
    this.reason = reason
  }
}

/** Windows lacks these flags: there only lstat checks the file. */
const NOFOLLOW = constants.O_NOFOLLOW ?? 0
const NONBLOCK = constants.O_NONBLOCK ?? 0
const DIRECTORY = constants.O_DIRECTORY ?? 0
const WINDOWS = process.platform === 'win32'

/** Returns the path of an entry of the directory. */
export function pathBelow(directory: string, name: string): string {
  return join(directory, name)
}

/** Normalizes an absolute path, without a trailing separator. Null for a relative path or a NUL. */
export function absolutePath(path: string): string | null {
  if (!isAbsolute(path) || path.includes('\0')) return null
  const plain = normalize(path)
  return plain === parse(plain).root ? plain : plain.replace(/[/\\]$/, '')
}

export function isRootPath(path: string): boolean {
  return isAbsolute(path) && parse(path).root === path
}

/**
 * Reads a regular file that is not a symbolic link. Never blocks, even on a FIFO or a device.
 * Throws FileFailure.
 */
export function readSecretFile(path: string, { bytesMax }: { bytesMax: number }): Uint8Array {
  return readRegularFile(path, bytesMax, () => {})
}

/**
 * Reads as readSecretFile does, and rejects a file that users other than its owner and its group
 * could have written or replaced. Throws FileFailure.
 */
export function readProtectedFile(path: string, { bytesMax }: { bytesMax: number }): Uint8Array {
  return readRegularFile(path, bytesMax, ({ mode }) => {
    if (WINDOWS) return
    if ((mode & WRITE_BY_OTHERS) !== 0) throw new FileFailure('not_protected')
    requireLastingNames(dirname(path))
  })
}

const READ_BY_OTHERS = 0o004
const WRITE_BY_OTHERS = 0o002
const STICKY = 0o1000

/**
 * Rejects directories in which other users could replace the file: they can write the directory or
 * an ancestor, and no sticky bit restricts removal to owners.
 */
function requireLastingNames(directory: string): void {
  for (let at = realpathSync(directory); ; at = dirname(at)) {
    const { mode } = statSync(at)
    if ((mode & WRITE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) {
      throw new FileFailure('replaceable')
    }
    if (isRootPath(at)) return
  }
}

/**
 * Returns whether every user of the machine can read the file, or the file that a link leads to;
 * false if that is unknown.
 */
export function isReadableByOthers(path: string): boolean {
  if (WINDOWS) return false
  try {
    return (statSync(path).mode & READ_BY_OTHERS) !== 0
  } catch {
    return false
  }
}

function readRegularFile(
  path: string,
  bytesMax: number,
  check: (stats: Stats) => void,
): Uint8Array {
  requireAbsolute(path)
  const file = attempt(() => {
    if (NOFOLLOW === 0 && lstatSync(path).isSymbolicLink()) throw new FileFailure('symlink')
    return openSync(path, constants.O_RDONLY | NOFOLLOW | NONBLOCK)
  })
  try {
    return attempt(() => {
      const stats = fstatSync(file)
      if (!stats.isFile()) throw new FileFailure('not_regular')
      check(stats)
      if (stats.size > bytesMax) throw new FileFailure('too_large')
      return readBounded(file, bytesMax)
    })
  } finally {
    closeSync(file)
  }
}

const PRIVATE_FILE = 0o600
/** Permission bits of group and others. */
const NOT_OWNER = 0o077

/** The mode of a file before and after `restrictToOwner`. */
export interface RestrictedMode {
  readonly before: number
  /** Unchanged where the file system has no modes. */
  readonly after: number
}

/**
 * Removes the permissions of group and others from a file of this user. Returns null if they had
 * none or the file belongs to another user. Throws FileFailure.
 */
export function restrictToOwner(path: string): RestrictedMode | null {
  requireAbsolute(path)
  const owner = process.geteuid?.()
  if (owner === undefined) return null
  return attempt(() => {
    const file = openSync(path, constants.O_RDONLY | NOFOLLOW | NONBLOCK)
    try {
      const { mode, uid } = fstatSync(file)
      if (uid !== owner || (mode & NOT_OWNER) === 0) return null
      fchmodSync(file, PRIVATE_FILE)
      return { before: mode & 0o777, after: fstatSync(file).mode & 0o777 }
    } finally {
      closeSync(file)
    }
  })
}

/** Reads up to one byte more than allowed, since a file may grow after its size was checked. */
function readBounded(file: number, bytesMax: number): Uint8Array {
  const bytes = new Uint8Array(bytesMax + 1)
  let length = 0
  while (length < bytes.length) {
    const read = readSync(file, bytes, length, bytes.length - length, null)
    if (read === 0) break
    length += read
  }
  if (length > bytesMax) throw new FileFailure('too_large')
  return bytes.slice(0, length)
}

export interface WriteOptions {
  /** 0600 where absent. */
  readonly mode?: number
  /** False for content that is made again where a power failure has lost it. */
  readonly isDurable?: boolean
}

/**
 * Writes a file atomically and durably: after a crash at any moment it is the complete old or new
 * one. A symbolic link at `path` is replaced, not followed. The directory must exist. Throws
 * FileFailure.
 */
export function writeFileAtomic(
  path: string,
  bytes: Uint8Array | string,
  { mode = 0o600, isDurable = true }: WriteOptions = {},
): void {
  requireAbsolute(path)
  const content = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes
  const suffix = randomBytes(6).toString('hex')
  const temporary = join(dirname(path), `.${basename(path)}.${suffix}.tmp`)
  attempt(() => {
    // O_EXCL fails where the name exists, so no other user can have prepared it as a link.
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NOFOLLOW
    const file = openSync(temporary, flags, mode)
    try {
      try {
        fchmodSync(file, mode)
        for (let at = 0; at < content.length; ) at += writeSync(file, content, at)
        if (isDurable) fsyncSync(file)
      } finally {
        closeSync(file)
      }
      renameSync(temporary, path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
    if (isDurable) syncDirectory(dirname(path))
  })
}

/** Removes a file durably. Returns whether there was one. */
export function removeFileDurably(path: string): boolean {
  requireAbsolute(path)
  return attempt(() => {
    try {
      unlinkSync(path)
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return false
      throw error
    }
    syncDirectory(dirname(path))
    return true
  })
}

/**
 * Creates the directory and its parents with mode 0700 if they are missing. Throws FileFailure
 * unless it is a real directory that belongs to this user and that no other user can write.
 */
export function ensurePrivateDirectory(path: string): void {
  requireAbsolute(path)
  attempt(() => {
    const first = mkdirSync(path, { recursive: true, mode: 0o700 })
    if (first !== undefined) {
      for (let made = path; made.length >= first.length; made = dirname(made)) {
        syncDirectory(dirname(made))
      }
    }
    requirePrivateDirectory(path)
  })
}

/**
 * Throws FileFailure where `ensurePrivateDirectory` would, as far as that can be predicted without
 * creating anything.
 */
export function checkPrivateDirectory(path: string): void {
  requireAbsolute(path)
  attempt(() => {
    if (exists(path)) return requirePrivateDirectory(path)
    let ancestor = dirname(path)
    while (!exists(ancestor)) ancestor = dirname(ancestor)
    accessSync(ancestor, constants.W_OK | constants.X_OK)
    const reason = KERNEL_FILE_SYSTEMS.get(statfsSync(ancestor).type)
    if (reason !== undefined) throw new FileFailure(reason)
  })
}

/**
 * The failures of a new directory in /proc and in /sys, where the superuser has every right. The
 * keys are the types of these file systems.
 */
const KERNEL_FILE_SYSTEMS: ReadonlyMap<number, FileReason> = new Map([
  [0x9fa0, 'missing'],
  [0x62656572, 'denied'],
])

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function requirePrivateDirectory(path: string): void {
  const stats = directoryStats(path)
  if (!stats.isDirectory()) throw new FileFailure('not_directory')
  const owner = process.geteuid?.()
  if (owner !== undefined && (stats.uid !== owner || (stats.mode & 0o022) !== 0)) {
    throw new FileFailure('not_private')
  }
}

function directoryStats(path: string): Stats {
  if (WINDOWS) return lstatSync(path)
  // Checked by name too, since ENOTDIR does not distinguish a link from a file.
  if (lstatSync(path).isSymbolicLink()) throw new FileFailure('symlink')
  const directory = openSync(path, constants.O_RDONLY | DIRECTORY | NOFOLLOW | NONBLOCK)
  try {
    return fstatSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** Makes changes of names in the directory durable: a power loss may undo them otherwise. */
function syncDirectory(path: string): void {
  if (WINDOWS) return
  const directory = openSync(path, constants.O_RDONLY | DIRECTORY)
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

function requireAbsolute(path: string): void {
  if (absolutePath(path) === null) throw new FileFailure('not_absolute')
}

const REASONS: Readonly<Record<string, FileReason>> = {
  ENOENT: 'missing',
  ELOOP: 'symlink',
  EMLINK: 'symlink',
  EISDIR: 'not_regular',
  ENXIO: 'not_regular',
  EEXIST: 'not_directory',
  ENOTDIR: 'not_directory',
  EACCES: 'denied',
  EPERM: 'denied',
  ENOSPC: 'full',
  EDQUOT: 'full',
}

/** Converts errors of the operating system into FileFailure. */
function attempt<T>(operation: () => T): T {
  try {
    return operation()
  } catch (error) {
    if (error instanceof FileFailure) throw error
    throw new FileFailure(REASONS[systemCode(error) ?? ''] ?? 'failed', error)
  }
}

function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}
