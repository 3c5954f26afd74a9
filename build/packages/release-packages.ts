/** Adds packages, an apt repository, a formula and Nix expressions to a release. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../bundle.ts'
import {
  aptRepository,
  type DebianPackage,
  KEY_FILE,
  sourcesText,
  writeRepository,
} from './apt-repository.ts'
import type { Format } from './files.ts'
import { type ArchiveDigests, formula } from './formula.ts'
import { detachedSignature, publicKey } from './gpg.ts'
import { buildPackage, PACKAGED, type PackagedTarget, packageName } from './nfpm.ts'
import { nixExpression, nixFlake } from './nix.ts'
import { signatureOf, signedPart, withSignature } from './rpm-signature.ts'

const FORMATS: readonly Format[] = ['deb', 'rpm']
/** The maintainer whom packages name unless SVC_RELEASE_MAINTAINER is set. */
const MAINTAINER = 'svc <svc@example.com>'

export interface PackagesRelease {
  readonly version: string
  readonly time: number
  readonly out: string
  /** SHA-256 of each archive of the release, by target. */
  readonly digests: ArchiveDigests
  /** True if the apt repository has a signature, in this release or in the one it repeats. */
  readonly isAptSigned: boolean
  /** Directory of the release that is rebuilt, whose signatures are taken; null for a new one. */
  readonly published: string | null
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Writes a file of the release, whose digest SHA256SUMS has. */
  readonly put: (name: string, bytes: Uint8Array) => void
  /** Reports what is left out. */
  readonly say: (line: string) => void
}

function isPackaged(target: string): target is PackagedTarget {
  return Object.hasOwn(PACKAGED, target)
}

/** Builds the packages of the targets that have some, with what refers to them. */
export function releasePackages(release: PackagesRelease): void {
  const { version, time, environment } = release
  const maintainer = environment.SVC_RELEASE_MAINTAINER ?? MAINTAINER
  const debs: DebianPackage[] = []
  for (const target of [...release.digests.keys()].filter(isPackaged)) {
    const licences = readFileSync(join(ROOT, 'dist/THIRD-PARTY-LICENSES'), 'utf8')
    const executable = join(ROOT, `dist/targets/${target}/svc-server`)
    for (const format of FORMATS) {
      const name = packageName(target, format, version)
      const source = { executable, licences, version, time, maintainer }
      const built = buildPackage(target, format, source)
      const bytes = format === 'rpm' ? signedRpm(release, name, built) : built
      release.put(name, bytes)
      if (format === 'deb') debs.push({ name, bytes })
    }
  }
  if (debs.length > 0) writeApt(release, debs)
  writeExpressions(release)
}

/**
 * Returns the package with its signature. A rebuild adds the published signature, which is that of
 * the published content alone: `rpm -K` verifies it.
 */
function signedRpm({ environment, published }: PackagesRelease, name: string, built: Buffer) {
  const key = environment.SVC_RELEASE_GPG_KEY
  if (published === null) {
    return key === undefined
      ? built
      : withSignature(built, detachedSignature(key, signedPart(built)))
  }
  const path = join(published, name)
  const signature = existsSync(path) ? signatureOf(readFileSync(path)) : null
  return signature === null ? built : withSignature(built, signature)
}

function writeApt(release: PackagesRelease, debs: readonly DebianPackage[]): void {
  const { environment, out, say, time, isAptSigned } = release
  const key = environment.SVC_RELEASE_GPG_KEY
  writeRepository(join(out, 'apt'), aptRepository(debs, time), key)
  if (key !== undefined) writeFileSync(join(out, KEY_FILE), publicKey(key))
  if (!isAptSigned) {
    say('The apt repository and the RPMs are unsigned: SVC_RELEASE_GPG_KEY is not set.')
  }
  const url = environment.SVC_RELEASE_URL
  if (isAptSigned && url !== undefined) {
    release.put('svc.sources', Buffer.from(sourcesText(`${withoutSlash(url)}/apt`)))
  }
}

function writeExpressions({ version, digests, environment, put, say }: PackagesRelease): void {
  const url = environment.SVC_RELEASE_URL
  if (url === undefined) {
    say('svc.rb and the Nix expressions are left out: SVC_RELEASE_URL is not set.')
    return
  }
  const archives = { version, digests, url: withoutSlash(url) }
  put('svc.rb', Buffer.from(formula(archives)))
  put('default.nix', Buffer.from(nixExpression(archives)))
  put('flake.nix', Buffer.from(nixFlake()))
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '')
}
