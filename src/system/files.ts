/**
 * Careful access to the few files that hold secrets or must survive a crash. Whatever is checked is
 * checked on the open descriptor, since a path may name another file a moment later.
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
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join, normalize, parse } from 'node:path'

/** What is wrong with a file, in words that hold neither its path nor its content. */
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
  failed: 'a file that the operating system can read and write',
} as const
export type FileReason = keyof typeof FILE_RULES

export class FileFailure extends Error {
  readonly reason: FileReason

  /** The cause is the operating system's error; its message names the path. */
  constructor(reason: FileReason, cause?: unknown) {
    super(FILE_RULES[reason], { cause })
    this.name = 'FileFailure'
    this.reason = reason
  }
}

/** Windows has neither flag; there the check is by lstat alone. */
const NOFOLLOW = constants.O_NOFOLLOW ?? 0
const NONBLOCK = constants.O_NONBLOCK ?? 0
const DIRECTORY = constants.O_DIRECTORY ?? 0
const WINDOWS = process.platform === 'win32'

/** Without `.`, `..`, doubled or trailing separators; null for a relative path or a NUL. */
export function absolutePath(path: string): string | null {
  if (!isAbsolute(path) || path.includes('\0')) return null
  const plain = normalize(path)
  return plain === parse(plain).root ? plain : plain.replace(/[/\\]$/, '')
}

export function isRootPath(path: string): boolean {
  return isAbsolute(path) && parse(path).root === path
}

/**
 * The bytes of a regular file that is no symbolic link. Never blocks, not on a FIFO or a device
 * either. Throws FileFailure.
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

/** Who can write a directory can replace what is in it, unless only owners may remove there. */
function requireLastingNames(directory: string): void {
  for (let at = realpathSync(directory); ; at = dirname(at)) {
    const { mode } = statSync(at)
    if ((mode & WRITE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) {
      throw new FileFailure('replaceable')
    }
    if (isRootPath(at)) return
  }
}

/** Whether every user of the machine can read the file; false where it cannot be told. */
export function isReadableByOthers(path: string): boolean {
  const stats = WINDOWS ? undefined : lstatSync(path, { throwIfNoEntry: false })
  return stats !== undefined && (stats.mode & READ_BY_OTHERS) !== 0
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
/** Bits of a mode that let anybody but the owner use a file. */
const NOT_OWNER = 0o077

/** The mode of a file before and after `restrictToOwner`. */
export interface RestrictedMode {
  readonly before: number
  /** Still open where the file system keeps no modes. */
  readonly after: number
}

/**
 * Takes a regular file of this user away from everybody else; null where nobody else could use it,
 * or where it is of another user. Throws FileFailure.
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

/** Reads one byte more than allowed, because a file may grow after its size was looked at. */
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

/**
 * After it returns the file holds `bytes` and survives a power cut; whenever it stops before, the
 * file is the old one or the new one, whole. A symbolic link at `path` is replaced, not followed.
 * Throws FileFailure; the directory must exist.
 */
export function writeFileAtomic(
  path: string,
  bytes: Uint8Array | string,
  { mode = 0o600 }: { mode?: number } = {},
): void {
  requireAbsolute(path)
  const content = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes
  const suffix = randomBytes(6).toString('hex')
  const temporary = join(dirname(path), `.${basename(path)}.${suffix}.tmp`)
  attempt(() => {
    // The flags of O_EXCL: nobody can have prepared this name, as a link or otherwise.
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NOFOLLOW
    const file = openSync(temporary, flags, mode)
    try {
      try {
        fchmodSync(file, mode)
        for (let at = 0; at < content.length; ) at += writeSync(file, content, at)
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
      renameSync(temporary, path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
    syncDirectory(dirname(path))
  })
}

/** Whether there was a file; after it returns there is none, also after a power cut. */
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
 * Creates the directory (0700, parents too) where it is missing. Throws FileFailure unless it is a
 * real directory, owned by the user of this process, that nobody else can write.
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
 * Throws FileFailure where `ensurePrivateDirectory` would, as far as that can be told without
 * creating anything.
 */
export function checkPrivateDirectory(path: string): void {
  requireAbsolute(path)
  attempt(() => {
    if (isThere(path)) return requirePrivateDirectory(path)
    let ancestor = dirname(path)
    while (!isThere(ancestor)) ancestor = dirname(ancestor)
    accessSync(ancestor, constants.W_OK | constants.X_OK)
  })
}

function isThere(path: string): boolean {
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
  // Without the check by name an ENOTDIR would not tell a link from a file.
  if (lstatSync(path).isSymbolicLink()) throw new FileFailure('symlink')
  const directory = openSync(path, constants.O_RDONLY | DIRECTORY | NOFOLLOW | NONBLOCK)
  try {
    return fstatSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** Without it a rename, a creation or a removal may be undone by a power cut. */
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
}

function attempt<T>(work: () => T): T {
  try {
    return work()
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
