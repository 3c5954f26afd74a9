/**
 * Builds a release in dist/release, or in the directory after `--out`: one archive per target, the
 * packed client, an install.sh that contains the digests of the archives, the bill of materials,
 * and SHA256SUMS over all of them. `--images` adds the images of the targets that have one, which
 * needs `apt-get` and `dpkg-deb`. Targets may be named as arguments. It changes no tracked file;
 * build/prepare-release.ts makes a commit a release. `--packages` adds Debian and RPM packages, an
 * apt repository, a Homebrew formula and Nix expressions, which needs `nfpm`.
 *
 * SVC_RELEASE_URL is the URL that will serve the files, SVC_UPGRADE_URL the one of the newest
 * release, where `svc upgrade` looks. SVC_RELEASE_KEY_FILE is a P-256 private key
 * in PEM, which signs SHA256SUMS and the provenance; SVC_RELEASE_MINISIGN_KEY_FILE is a secret key
 * of minisign, which signs SHA256SUMS. Without them the release is unsigned. SVC_RELEASE_BUILDER is
 * the URI of the builder in the provenance. SVC_RELEASE_GPG_KEY is the fingerprint of a key of gpg
 * that signs the apt repository and the RPMs, and SVC_RELEASE_MAINTAINER the name and address in
 * packages.
 *
 * `--keys DIRECTORY` takes the public keys of the release in that directory in place of secret
 * ones, and the signatures of its RPMs, signs nothing and gives the same bytes:
 * build/origin/verify-release.ts compares them.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { APP_CLIENT_FILES } from '../src/app-client/embedded.generated.ts'
import { assert } from '../src/errors/assert.ts'
import { VERSION } from '../src/value/version.ts'
import { type Entry, tarGzip } from './archives.ts'
import { BUNDLE, bundle, ROOT } from './bundle.ts'
import { CLIENT, packClient } from './client-pack.ts'
import { sourceCommit, sourceTime, wholeCommit } from './commit.ts'
import { compileTarget } from './compile.ts'
import { baseLayer, programLayer } from './image/files.ts'
import { createImage, type Image, imageArchive, indexArchive } from './image/image.ts'
import { LIBRARY_PACKAGES } from './image/libc.ts'
import { sharedFiles } from './man/shared-files.ts'
import { billOfMaterials, type Contents } from './origin/bill-of-materials.ts'
import { publicKeys, type ReleaseKeys, signingKeys, writeSignatures } from './origin/keys.ts'
import { type BundledPackage, runtimeLibraries } from './origin/packages.ts'
import { imageLibrary, targetRuntime } from './origin/parts.ts'
import {
  type Artefact,
  type BuildParameters,
  envelope,
  provenanceStatement,
  UNKNOWN_BUILDER,
} from './origin/provenance.ts'
import { requireNfpm } from './packages/nfpm.ts'
import { releasePackages } from './packages/release-packages.ts'
import { shippedConfigs } from './packages/shipped-configs.ts'
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
  const configs = shippedConfigs().map((path) => entry(path, path))
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

/** The values of a release that install.sh has placeholders for. */
export type InstallerValue =
  | 'VERSION'
  | 'BASE_URL'
  | 'DIGESTS'
  | 'UPGRADE_URL'
  | 'PUBLIC_KEY'
  | 'MINISIGN_KEY'

/** Fills the values of a release into install.sh. Throws if a placeholder is missing. */
export function renderInstaller(
  source: string,
  values: Readonly<Record<InstallerValue, string>>,
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

/** Writes the files of a release and collects their digests. */
class Artefacts {
  readonly #out: string
  readonly #list: Artefact[] = []

  constructor(out: string) {
    this.#out = out
  }

  /** Writes a file and returns its digest. */
  put(name: string, bytes: Uint8Array | string, mode = 0o644): string {
    writeFileSync(join(this.#out, name), bytes, { mode })
    const digest = sha256(bytes)
    this.#list.push({ name, sha256: digest })
    return digest
  }

  sorted(): Artefact[] {
    return [...this.#list].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  lines(): string {
    const lines = this.sorted().map(({ name, sha256: digest }) => `${digest}  ${name}\n`)
    return lines.join('')
  }
}

interface ReleaseOptions {
  readonly out: string
  readonly images: boolean
  readonly packages: boolean
  readonly keys: ReleaseKeys
  /** True if gpg signs the apt repository, or has signed that of a release that is rebuilt. */
  readonly isAptSigned: boolean
  /** Directory of the release that is rebuilt; null for a new one. */
  readonly published: string | null
}

async function release(targets: readonly Target[], options: ReleaseOptions): Promise<void> {
  const { out, keys } = options
  if (options.packages) requireNfpm()
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  mkdirSync(dirname(BUNDLE), { recursive: true })
  const url = process.env.SVC_RELEASE_URL ?? ''
  const upgradeUrl = process.env.SVC_UPGRADE_URL ?? ''
  const values = { publicKey: keys.minisign, upgradeUrl }
  const packages = await bundle({ release: values })
  await packClient(values)
  const artefacts = new Artefacts(out)
  const digests = new Map<string, string>()
  const images: Image[] = []
  for (const target of targets) {
    compileTarget(target)
    const digest = artefacts.put(`svc-${VERSION}-${target.name}.tar.gz`, createArchive(target))
    digests.set(target.name, digest)
    const image = options.images ? targetImage(target) : null
    if (image === null) continue
    images.push(image)
    const archive = imageArchive(image, sourceRelease())
    artefacts.put(`svc-${VERSION}-image-${target.name}.tar`, archive)
  }
  if (images.length > 1) {
    artefacts.put(`svc-${VERSION}-image.tar`, indexArchive(images, sourceRelease()))
  }
  artefacts.put(`svc-${VERSION}.mjs`, readFileSync(CLIENT))
  artefacts.put(`svc-npm-${VERSION}.tgz`, clientPackage())
  if (options.packages) {
    const { version, time } = sourceRelease()
    const { env: environment } = process
    const { isAptSigned, published } = options
    const put = (name: string, bytes: Uint8Array) => void artefacts.put(name, bytes)
    const given = { version, time, out, digests, environment, isAptSigned, published }
    releasePackages({ ...given, put, say: print })
  }
  const installer = renderInstaller(readFileSync(join(ROOT, 'install.sh'), 'utf8'), {
    VERSION,
    BASE_URL: url,
    UPGRADE_URL: upgradeUrl,
    DIGESTS: [...digests].map(([name, digest]) => `${name} ${digest}`).join('\n'),
    PUBLIC_KEY: keys.pem,
    MINISIGN_KEY: keys.minisign,
  })
  artefacts.put('install.sh', installer, 0o755)
  const contents = contentsOf(targets, packages, options.images)
  artefacts.put(`svc-${VERSION}.cdx.json`, billOfMaterials(contents, artefacts.lines()))
  const names = targets.map(({ name }) => name)
  putProvenance(
    artefacts,
    contents,
    { targets: names, images: options.images, packages: options.packages, url, upgradeUrl },
    keys,
  )
  const list = artefacts.lines()
  writeFileSync(join(out, 'SHA256SUMS'), list)
  // The time of the signature, which `svc upgrade` shows. A rebuild makes no signatures.
  const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  writeSignatures(out, list, `svc ${VERSION} ${time}`, keys)
}

function contentsOf(
  targets: readonly Target[],
  packages: readonly BundledPackage[],
  withImages: boolean,
): Contents {
  const architectures = Object.entries(IMAGES).flatMap(([name, architecture]) =>
    targets.some((target) => target.name === name) ? [architecture] : [],
  )
  return {
    version: VERSION,
    commit: wholeCommit(),
    modified: sourceCommit().endsWith('.modified'),
    time: sourceTime(),
    packages,
    runtimes: targets.map(targetRuntime),
    libraries: runtimeLibraries(),
    system: withImages ? architectures.map(imageLibrary) : [],
  }
}

/** Writes the provenance if the release has a key to sign it. */
function putProvenance(
  artefacts: Artefacts,
  contents: Contents,
  parameters: BuildParameters,
  keys: ReleaseKeys,
): void {
  if (keys.pem === '') return
  const builder = process.env.SVC_RELEASE_BUILDER ?? UNKNOWN_BUILDER
  const statement = provenanceStatement(contents, artefacts.sorted(), parameters, builder)
  artefacts.put(`svc-${VERSION}.intoto.jsonl`, envelope(statement, keys.signer))
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: {
      out: { type: 'string', default: OUT },
      images: { type: 'boolean', default: false },
      packages: { type: 'boolean', default: false },
      keys: { type: 'string' },
    },
    allowPositionals: true,
  })
  const names: readonly string[] = TARGETS.map((each) => each.name)
  const unknown = positionals.filter((name) => !names.includes(name))
  assert(unknown.length === 0, `targets are ${names.join(', ')}`)
  for (const reason of snapshotReasons(ROOT)) {
    print(`This is a snapshot, not a release: ${reason}.`)
  }
  const isWanted = ({ name }: Target) => positionals.length === 0 || positionals.includes(name)
  const { images, packages, keys: published } = values
  const isNew = published === undefined
  const keys = isNew ? signingKeys(process.env) : publicKeys(published)
  const isAptSigned = isNew
    ? process.env.SVC_RELEASE_GPG_KEY !== undefined
    : existsSync(join(published, 'svc.sources'))
  const out = resolve(values.out)
  const options = { out, images, packages, keys, isAptSigned, published: published ?? null }
  await release(TARGETS.filter(isWanted), options)
  for (const name of readdirSync(values.out).sort()) {
    print(relative(process.cwd(), join(values.out, name)))
  }
}
