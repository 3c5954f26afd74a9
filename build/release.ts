/**
 * Builds a release in dist/release, or in the directory after `--out`: one archive per target, the
 * packed client, SHA256SUMS, and an install.sh that contains the digests. `--images` adds the
 * images of the targets that have one, which needs `apt-get` and `dpkg-deb`. Targets may be named
 * as arguments. It changes no tracked file; build/prepare-release.ts makes a commit a release.
 *
 * SVC_RELEASE_URL is the URL that will serve the files. SVC_RELEASE_KEY_FILE is a P-256 private key
 * in PEM; without it the release is unsigned.
 */
import { createHash, createPrivateKey, createPublicKey, createSign } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { APP_CLIENT_FILES } from '../src/app-client/embedded.generated.ts'
import { assert } from '../src/errors/assert.ts'
import { VERSION } from '../src/value/version.ts'
import { type Entry, tarGzip } from './archives.ts'
import { BUNDLE, bundle, ROOT } from './bundle.ts'
import { CLIENT, packClient } from './client-pack.ts'
import { sourceCommit, sourceTime } from './commit.ts'
import { compileTarget } from './compile.ts'
import { baseLayer, programLayer } from './image/files.ts'
import { createImage, type Image, imageArchive, indexArchive } from './image/image.ts'
import { LIBRARY_PACKAGES } from './image/libc.ts'
import { sharedFiles } from './man/shared-files.ts'
import { TARGETS, type Target } from './targets.ts'

const OUT = join(ROOT, 'dist/release')
const RELEASED = 'migrations/released.json'
/** Heading of the changelog over what no version has yet. */
export const UNRELEASED = '## Unreleased'

const sha256 = (bytes: Uint8Array | string): string =>
  createHash('sha256').update(bytes).digest('hex')

function entry(path: string, source: string, executable = false): Entry {
  return { path, bytes: readFileSync(join(ROOT, source)), executable }
}

export function createArchive(target: Target): Buffer {
  const suffix = target.name.startsWith('windows') ? '.exe' : ''
  const configs = readdirSync(join(ROOT, 'dist-config')).map((name) =>
    entry(`dist-config/${name}`, `dist-config/${name}`),
  )
  return tarGzip([
    entry(`svc-server${suffix}`, `dist/targets/${target.name}/svc-server${suffix}`, true),
    entry('LICENSE', 'LICENSE'),
    entry('THIRD-PARTY-LICENSES', 'dist/THIRD-PARTY-LICENSES'),
    entry('CHANGELOG.md', 'CHANGELOG.md'),
    ...configs,
    ...sharedFiles(),
  ])
}

/** Targets whose executables images contain: those for glibc. */
export const IMAGES = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' } as const

/** Returns the image of a compiled target; null for a target without one. */
export function targetImage({ name }: Target): Image | null {
  if (!Object.hasOwn(IMAGES, name)) return null
  const architecture = IMAGES[name as keyof typeof IMAGES]
  const executable = join(ROOT, `dist/targets/${name}/svc-server`)
  const layers = [baseLayer(LIBRARY_PACKAGES[architecture]), programLayer(executable)]
  return createImage(architecture, layers, sourceRelease())
}

function sourceRelease() {
  return { version: VERSION, commit: sourceCommit(), time: sourceTime() }
}

/** Packs the npm package of `svc/client` and `svc/react`, which npm expects below `package/`. */
export function clientPackage(): Buffer {
  const files = Object.entries(APP_CLIENT_FILES).map(([path, text]) => ({
    path: path.replace(/^svc\//, 'package/'),
    bytes: Buffer.from(text),
    executable: false,
  }))
  return tarGzip([...files, entry('package/LICENSE', 'LICENSE')])
}

/** Fills the values of a release into install.sh. Throws if a placeholder is missing. */
export function renderInstaller(
  source: string,
  values: Readonly<Record<'VERSION' | 'BASE_URL' | 'DIGESTS' | 'PUBLIC_KEY', string>>,
): string {
  let text = source
  for (const [name, value] of Object.entries(values)) {
    const mark = `'@${name}@'`
    assert(text.split(mark).length === 2, `install.sh lacks its placeholder ${mark}`)
    assert(!value.includes("'"), `${name} must not contain a single quote`)
    text = text.replace(mark, () => `'${value}'`)
  }
  return text
}

/** Digests of migrations by path. */
export type MigrationDigests = Readonly<Record<string, string>>

/** Returns the digest of each migration. Throws if a released one has changed. */
export function migrationDigests(root: string): MigrationDigests {
  const released = releasedMigrations(root)
  const files = readdirSync(join(root, 'migrations'), { recursive: true, encoding: 'utf8' })
  const paths = files
    .filter((name) => name.endsWith('.sql'))
    .map((file) => `migrations/${file.replaceAll('\\', '/')}`)
  const digests = paths.sort().map((path): [string, string] => {
    const digest = sha256(readFileSync(join(root, path)))
    assert((released[path] ?? digest) === digest, `${path} was released and has changed`)
    return [path, digest]
  })
  return Object.fromEntries(digests)
}

function releasedMigrations(root: string): MigrationDigests {
  return JSON.parse(readFileSync(join(root, RELEASED), 'utf8'))
}

/** Records that the migrations are released, after which none of them may change. */
export function recordMigrations(root: string): void {
  const all = { ...releasedMigrations(root), ...migrationDigests(root) }
  writeFileSync(join(root, RELEASED), `${JSON.stringify(all, null, 2)}\n`)
}

/** Returns why the sources are those of a snapshot; nothing if they are those of a release. */
export function snapshotReasons(root: string): string[] {
  const released = releasedMigrations(root)
  const fresh = Object.keys(migrationDigests(root)).filter((path) => !(path in released))
  const commit = sourceCommit(root)
  const isUnreleased = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').includes(UNRELEASED)
  return [
    ...(commit === '' ? ['it is no checkout, so that the version names no commit'] : []),
    ...(commit.endsWith('.modified') ? ['tracked files differ from the commit'] : []),
    ...(isUnreleased ? ['the changelog has unreleased entries'] : []),
    ...(fresh.length === 0 ? [] : [`${fresh.length} migrations are not recorded as released`]),
  ]
}

function sign(sums: string, out: string): string {
  const keyFile = process.env.SVC_RELEASE_KEY_FILE
  if (keyFile === undefined) return ''
  const key = createPrivateKey(readFileSync(keyFile))
  writeFileSync(join(out, 'SHA256SUMS.sig'), createSign('sha256').update(sums).sign(key))
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString().trim()
}

async function release(
  targets: readonly Target[],
  { out, images: withImages }: { readonly out: string; readonly images: boolean },
): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  mkdirSync(dirname(BUNDLE), { recursive: true })
  await bundle()
  await packClient()
  const sums: string[] = []
  const digests: string[] = []
  const images: Image[] = []
  const put = (name: string, bytes: Uint8Array): string => {
    writeFileSync(join(out, name), bytes)
    const digest = sha256(bytes)
    sums.push(`${digest}  ${name}\n`)
    return digest
  }
  for (const target of targets) {
    compileTarget(target)
    const digest = put(`svc-${VERSION}-${target.name}.tar.gz`, createArchive(target))
    digests.push(`${target.name} ${digest}`)
    const image = withImages ? targetImage(target) : null
    if (image === null) continue
    images.push(image)
    put(`svc-${VERSION}-image-${target.name}.tar`, imageArchive(image, sourceRelease()))
  }
  if (images.length > 1) put(`svc-${VERSION}-image.tar`, indexArchive(images, sourceRelease()))
  put(`svc-${VERSION}.mjs`, readFileSync(CLIENT))
  put(`svc-npm-${VERSION}.tgz`, clientPackage())
  const list = sums.sort().join('')
  writeFileSync(join(out, 'SHA256SUMS'), list)
  const installer = renderInstaller(readFileSync(join(ROOT, 'install.sh'), 'utf8'), {
    VERSION,
    BASE_URL: process.env.SVC_RELEASE_URL ?? '',
    DIGESTS: digests.join('\n'),
    PUBLIC_KEY: sign(list, out),
  })
  writeFileSync(join(out, 'install.sh'), installer, { mode: 0o755 })
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { out: { type: 'string', default: OUT }, images: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const names: readonly string[] = TARGETS.map((each) => each.name)
  const unknown = positionals.filter((name) => !names.includes(name))
  assert(unknown.length === 0, `targets are ${names.join(', ')}`)
  for (const reason of snapshotReasons(ROOT)) {
    process.stdout.write(`This is a snapshot, not a release: ${reason}.\n`)
  }
  const isWanted = ({ name }: Target) => positionals.length === 0 || positionals.includes(name)
  const { images } = values
  await release(TARGETS.filter(isWanted), { out: resolve(values.out), images })
  for (const name of readdirSync(values.out).sort()) {
    process.stdout.write(`${relative(process.cwd(), join(values.out, name))}\n`)
  }
}
