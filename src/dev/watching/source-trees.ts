/** Reads the directories and files of a Workspace, so that changes are found by comparison. */
import { type BigIntStats, type Dirent, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Bound of the directories that are read: a larger Workspace is most likely a wrong path. */
export const DIRECTORIES_MAX = 4_096

export interface SourceTree {
  /** Absolute paths with their identities, the Workspace first. */
  readonly directories: ReadonlyMap<string, string>
  /** Text that changes when any file is written, created, renamed or removed. */
  readonly signature: string
  /** True if directories were left out because of the bound. */
  readonly truncated: boolean
}

export interface TreeOptions {
  /** Absolute path of the Workspace. */
  readonly directory: string
  /** Absolute paths in the directory that do not belong to the Workspace. */
  readonly ignored: ReadonlySet<string>
  /** Absolute paths of hidden files that belong to the Workspace. */
  readonly included: ReadonlySet<string>
  /** Absolute paths of directories outside of the Workspace whose files it imports. */
  readonly imported: Iterable<string>
  /** Called for each directory before its entries are read, so that no later change is missed. */
  readonly onDirectory: (path: string, identity: string) => void
}

const SKIPPED = new Set(['node_modules', '_generated'])

/** Returns whether a file or a directory does not belong to the Workspace. */
export function isSkipped(
  directory: string,
  name: string,
  { ignored, included }: Pick<TreeOptions, 'ignored' | 'included'>,
): boolean {
  const path = join(directory, name)
  if (included.has(path)) return false
  return SKIPPED.has(name) || name.startsWith('.') || name.endsWith('~') || ignored.has(path)
}

/** Reads the tree; null without a Workspace. Symbolic links to directories are not followed. */
export function readSourceTree(options: TreeOptions): SourceTree | null {
  const { directory, imported, onDirectory } = options
  const identity = readIdentity(directory)
  if (identity === null) return null
  const directories = new Map<string, string>()
  const parts: string[] = []
  const visit = (path: string, own: string, isDeep: boolean): void => {
    if (directories.has(path) || directories.size >= DIRECTORIES_MAX) return
    directories.set(path, own)
    onDirectory(path, own)
    for (const entry of entriesOf(path)) {
      if (isSkipped(path, entry.name, options)) continue
      const child = join(path, entry.name)
      const stats = statsOf(child)
      if (stats === null) continue
      if (!entry.isDirectory()) parts.push(signatureOf(child, stats))
      else if (isDeep) visit(child, identityIn(stats), true)
    }
  }
  visit(directory, identity, true)
  for (const path of imported) {
    const own = readIdentity(path)
    if (own !== null) visit(path, own, false)
  }
  const truncated = directories.size >= DIRECTORIES_MAX
  return { directories, signature: parts.join('\n'), truncated }
}

/** Returns a text that differs between a directory and its replacement; null without one. */
export function readIdentity(path: string): string | null {
  const stats = statsOf(path)
  return stats?.isDirectory() === true ? identityIn(stats) : null
}

/** Identifies a directory by more than its inode, which a new directory may reuse. */
function identityIn({ ino, birthtimeNs }: BigIntStats): string {
  return `${ino}:${birthtimeNs}`
}

/** Returns the entries in order; an empty list for a missing or unreadable directory. */
function entriesOf(path: string): Dirent[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

function statsOf(path: string): BigIntStats | null {
  try {
    return statSync(path, { bigint: true })
  } catch {
    return null
  }
}

function signatureOf(path: string, { ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${path}\0${ino}\0${size}\0${mtimeNs}\0${ctimeNs}`
}
