/**
 * Releases for tests of the installer, whose archives hold a small program in place of the
 * executable, so that each case takes milliseconds.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tarGzip } from '../archives.ts'
import { renderInstaller } from '../release.ts'
import { type ReleaseKeys, writeSignatures } from './keys.ts'
import { generateMinisignKey } from './minisign.ts'

const ROOT = join(import.meta.dirname, '../..')
export const VERSION = '9.9.9'
export const TARGET = 'linux-x64'
export const ARTEFACT = `svc-${VERSION}-${TARGET}.tar.gz`

/** Files of the archive below `share`. */
export const SHARED = [
  'bash-completion/completions/svc',
  'fish/vendor_completions.d/svc.fish',
  'man/man1/svc.1',
  'man/man8/svc-server.8',
  'zsh/site-functions/_svc',
]

export interface ReleaseOptions {
  readonly says?: string
  /** Shell script in place of the executable; prints `says` unless given. */
  readonly script?: string
  /** A real executable with its version. */
  readonly executable?: { readonly bytes: Uint8Array; readonly version: string }
  readonly signed?: boolean
  /** Keys in place of new ones. */
  readonly keys?: ReleaseKeys
}

const UNSIGNED: ReleaseKeys = { pem: '', minisign: '', signer: null, minisigner: null }

/** Returns new keys of both kinds. */
export function releaseKeys(): ReleaseKeys {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString().trim()
  const minisigner = generateMinisignKey()
  return { pem, minisign: minisigner.publicKey, signer: privateKey, minisigner }
}

/** Writes `mirror` with a release, and its `install.sh`, into a directory. */
export function writeRelease(work: string, options: ReleaseOptions = {}): void {
  const { says = VERSION, script, signed = false, executable } = options
  const version = executable?.version ?? VERSION
  const artefact = `svc-${version}-${TARGET}.tar.gz`
  const keys = options.keys ?? (signed ? releaseKeys() : UNSIGNED)
  const mirror = join(work, 'mirror')
  mkdirSync(mirror, { recursive: true })
  const program = `#!/bin/sh\n${script ?? `echo "svc-server ${says}"`}\n`
  const file = (path: string, content: string | Uint8Array, isExecutable = false) => ({
    path,
    bytes: Buffer.from(content),
    executable: isExecutable,
  })
  const archive = tarGzip([
    file('svc-server', executable?.bytes ?? program, true),
    file('LICENSE', 'licence'),
    ...SHARED.map((path) => file(`share/${path}`, `text of ${path}\n`)),
    file('dist-config/environment.template', 'SERVICE_STATE_DIRECTORY=/x\n'),
    file(
      'dist-config/svc-server.service',
      readFileSync(join(ROOT, 'dist-config/svc-server.service'), 'utf8'),
    ),
  ])
  writeFileSync(join(mirror, artefact), archive)
  const digest = createHash('sha256').update(archive).digest('hex')
  const sums = `${digest}  ${artefact}\n`
  writeFileSync(join(mirror, 'SHA256SUMS'), sums)
  writeSignatures(mirror, sums, `svc ${version} 2026-01-02T03:04:05Z`, keys)
  const installer = renderInstaller(readFileSync(join(ROOT, 'install.sh'), 'utf8'), {
    VERSION: version,
    BASE_URL: '',
    UPGRADE_URL: '',
    DIGESTS: `darwin-arm64 ${'0'.repeat(64)}\n${TARGET} ${digest}`,
    PUBLIC_KEY: keys.pem,
    MINISIGN_KEY: keys.minisign,
  })
  writeFileSync(join(work, 'install.sh'), installer)
}

/** Returns the environment of an installer that installs into `bin` of a directory. */
export function installerEnvironment(work: string): Record<string, string> {
  return {
    PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
    HOME: join(work, 'home'),
    SVC_INSTALL_DIR: join(work, 'bin'),
    SVC_BASE_URL: `file://${join(work, 'mirror')}`,
    SVC_TARGET: TARGET,
    TMPDIR: work,
  }
}

/** Runs the installer in a directory. */
export function runInstaller(
  work: string,
  args: readonly string[] = [],
  environment: Record<string, string> = {},
  shell = '/bin/sh',
): SpawnSyncReturns<string> {
  const script = [join(work, 'install.sh'), ...args]
  return spawnSync('/bin/sh', ['-c', `${shell} "$@"`, 'sh', ...script], {
    encoding: 'utf8',
    input: '',
    env: { ...installerEnvironment(work), ...environment },
  })
}
