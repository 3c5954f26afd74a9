/** The parts of a release besides the packages: the runtime of each target and the C library. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../src/errors/assert.ts'
import { ROOT } from '../bundle.ts'
import { DEBIAN, LIBC_VERSION, LIBRARY_PACKAGES } from '../image/libc.ts'
import { fetchBase, type Target } from '../targets.ts'

/** The runtime of one target. */
export interface Runtime {
  readonly target: string
  readonly name: string
  readonly version: string
  readonly purl: string
  /** SHA-512 of its archive in the registry, in hexadecimal digits. */
  readonly archiveSha512: string
  /** Path of the executable in the archive, and its SHA-256. */
  readonly executable: string
  readonly executableSha256: string
}

/** A package of Debian in the images. */
export interface SystemPackage {
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly sha256: string
}

interface LockEntry {
  readonly version: string
  readonly integrity: string
}

/** Returns the entry of package-lock.json for a folder such as `node_modules/jose`. */
export function lockEntry(folder: string): LockEntry {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  const entry = lock.packages[folder]
  assert(/^sha512-/.test(entry?.integrity), `${folder} has no SHA-512 in package-lock.json`)
  return entry
}

/** Returns the SHA-512 of an entry in hexadecimal digits. */
export function lockedSha512({ integrity }: LockEntry): string {
  return Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex')
}

export function npmPurl(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

/** Returns the runtime that the executable of a target contains; npm may have to fetch it. */
export function targetRuntime(target: Target): Runtime {
  const entry = lockEntry(`node_modules/${target.package}`)
  return {
    target: target.name,
    name: target.package,
    version: entry.version,
    purl: npmPurl(target.package, entry.version),
    archiveSha512: lockedSha512(entry),
    executable: target.executable,
    executableSha256: createHash('sha256')
      .update(readFileSync(fetchBase(target)))
      .digest('hex'),
  }
}

/** Returns the package of the C library in the image of an architecture. */
export function imageLibrary(architecture: keyof typeof LIBRARY_PACKAGES): SystemPackage {
  const version = encodeURIComponent(LIBC_VERSION)
  return {
    name: 'libc6',
    version: LIBC_VERSION,
    purl: `pkg:deb/debian/libc6@${version}?arch=${architecture}&distro=debian-${DEBIAN}`,
    sha256: LIBRARY_PACKAGES[architecture].sha256,
  }
}
