/**
 * Updates the files that install.sh installed beside the executables: its copy of the release,
 * manual pages and completions, and the receipt. Files that were changed since stay as they are.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sha256Hex } from '../../system/digests.ts'
import { withPath } from '../files.ts'
import type { Disk } from './disk.ts'
import { readReceipt, readText } from './installations.ts'

/** Bytes of a manual page or of a completion script. */
const SHARED_BYTES_MAX = 4 * 1024 * 1024

export interface SharedUpdate {
  readonly disk: Disk
  /** The directory of the receipt. */
  readonly share: string
  /** The directory with the members of the archive other than the executable. */
  readonly members: string
  readonly version: string
  /** SHA-256 of the archive and of the executable. */
  readonly archiveDigest: string
  readonly digest: string
}

/** Returns the paths that were left as they are. A repeat after a kill ends with the same files. */
export function updateShared({ disk, share, members, ...release }: SharedUpdate): string[] {
  const kept: string[] = []
  const listed = readListed(share)
  const rows: Listed[] = []
  for (const row of [...listed, ...newPages(members, listed)]) {
    const member = join(members, 'share', nameOf(row.path))
    const [wanted, found] = [digestOf(member), digestOf(row.path)]
    const isOurs = found === row.digest || found === wanted
    if (wanted === null || !isOurs) {
      kept.push(row.path)
      if (row.digest !== null) rows.push(row)
      continue
    }
    if (found !== wanted) disk.write(row.path, readFileSync(member), 0o644)
    rows.push({ path: row.path, digest: wanted })
  }
  if (listed.length > 0) {
    const text = rows.map(({ digest, path }) => `${digest} ${path}\n`).join('')
    disk.write(join(share, 'shared'), text, 0o644)
  }
  replaceCopy(disk, share, members)
  writeReceipt(disk, share, release)
  return kept
}

interface Listed {
  /** Null for a path where there was no file. */
  readonly digest: string | null
  readonly path: string
}

function readListed(share: string): Listed[] {
  return (readText(join(share, 'shared')) ?? '').split('\n').flatMap((line) => {
    const [, digest, path] = /^([0-9a-f]{64}) (\/.+)$/.exec(line) ?? []
    return digest === undefined || path === undefined ? [] : [{ digest, path }]
  })
}

/** The name of a member below `share`, such as `man/man1/svc.1`: the end of an installed path. */
function nameOf(path: string): string {
  return path.split('/').slice(-3).join('/')
}

/** Pages of the new version that the installed one does not have, with their paths. */
function newPages(members: string, listed: readonly Listed[]): Listed[] {
  const [first] = listed
  if (first === undefined) return []
  const root = first.path.slice(0, -nameOf(first.path).length)
  const known = new Set(listed.map(({ path }) => path))
  const share = join(members, 'share')
  if (!isDirectory(share)) return []
  return readdirSync(share, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(root, join(entry.parentPath, entry.name).slice(share.length + 1)))
    .filter((path) => !known.has(path))
    .map((path) => {
      withPath(path, () => mkdirSync(dirname(path), { recursive: true }))
      return { digest: null, path }
    })
}

/** Returns the SHA-256 of a regular file; null for anything else. */
function digestOf(path: string): string | null {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats?.isFile() !== true || stats.size > SHARED_BYTES_MAX) return null
  return sha256Hex(readFileSync(path))
}

/** Replaces the directory `files`. A kill leaves the old or the new one, or both beside it. */
function replaceCopy(disk: Disk, share: string, members: string): void {
  const [current, fresh, old] = [
    join(share, 'files'),
    join(share, 'files.fresh'),
    join(share, 'files.old'),
  ]
  disk.remove(fresh)
  disk.remove(old)
  disk.copy(members, fresh)
  if (isDirectory(current)) disk.rename(current, old)
  disk.rename(fresh, current)
  disk.remove(old)
}

function writeReceipt(
  disk: Disk,
  share: string,
  release: Pick<SharedUpdate, 'version' | 'archiveDigest' | 'digest'>,
): void {
  const before = readReceipt(share)
  const lines = [
    `version ${release.version}`,
    `target ${before?.target ?? ''}`,
    `artefact ${release.archiveDigest}`,
    `executable ${release.digest}`,
    ...(before?.base == null ? [] : [`base ${before.base}`]),
  ]
  disk.write(join(share, 'receipt'), `${lines.join('\n')}\n`, 0o644)
}

function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
