/**
 * Builds a release in dist/release: one archive per target, the packed client, SHA256SUMS, and an
 * install.sh that contains the digests. Targets may be named as arguments.
 *
 * SVC_RELEASE_URL is the URL that will serve the files. SVC_RELEASE_KEY_FILE is a P-256 private key
 * in PEM; without it the release is unsigned.
 */
import { createHash, createPrivateKey, createPublicKey, createSign } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { APP_CLIENT_FILES } from '../src/app-client/embedded.generated.ts'
import { assert } from '../src/errors/assert.ts'
import { VERSION } from '../src/value/version.ts'
import { type Entry, tarGzip } from './archives.ts'
import { bundle, ROOT } from './bundle.ts'
import { compileTarget } from './compile.ts'
import { TARGETS, type Target } from './targets.ts'

const OUT = join(ROOT, 'dist/release')
const RELEASED = 'migrations/released.json'

const sha256 = (bytes: Uint8Array | string): string =>
  createHash('sha256').update(bytes).digest('hex')

function entry(path: string, source: string, executable = false): Entry {
  return { path, bytes: readFileSync(join(ROOT, source)), executable }
}

export function archiveOf(target: Target): Buffer {
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
  ])
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

/** Records the digest of each migration. Throws if a released one has changed. */
function recordMigrations(): void {
  const released = JSON.parse(readFileSync(join(ROOT, RELEASED), 'utf8'))
  const files = readdirSync(join(ROOT, 'migrations'), { recursive: true, encoding: 'utf8' })
  for (const file of files.filter((name) => name.endsWith('.sql')).sort()) {
    const path = `migrations/${file.replaceAll('\\', '/')}`
    const digest = sha256(readFileSync(join(ROOT, path)))
    assert((released[path] ?? digest) === digest, `${path} was released and has changed`)
    released[path] = digest
  }
  writeFileSync(join(ROOT, RELEASED), `${JSON.stringify(released, null, 2)}\n`)
}

function sign(sums: string): string {
  const keyFile = process.env.SVC_RELEASE_KEY_FILE
  if (keyFile === undefined) return ''
  const key = createPrivateKey(readFileSync(keyFile))
  writeFileSync(join(OUT, 'SHA256SUMS.sig'), createSign('sha256').update(sums).sign(key))
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString().trim()
}

export async function release(targets: readonly Target[]): Promise<void> {
  recordMigrations()
  rmSync(OUT, { recursive: true, force: true })
  mkdirSync(OUT, { recursive: true })
  await bundle()
  const sums: string[] = []
  const digests: string[] = []
  const put = (name: string, bytes: Uint8Array): string => {
    writeFileSync(join(OUT, name), bytes)
    const digest = sha256(bytes)
    sums.push(`${digest}  ${name}\n`)
    return digest
  }
  for (const target of targets) {
    compileTarget(target)
    const digest = put(`svc-${VERSION}-${target.name}.tar.gz`, archiveOf(target))
    digests.push(`${target.name} ${digest}`)
  }
  put(`svc-${VERSION}.mjs`, readFileSync(join(ROOT, 'dist/svc-client/svc.mjs')))
  put(`svc-npm-${VERSION}.tgz`, clientPackage())
  const list = sums.sort().join('')
  writeFileSync(join(OUT, 'SHA256SUMS'), list)
  const installer = renderInstaller(readFileSync(join(ROOT, 'install.sh'), 'utf8'), {
    VERSION,
    BASE_URL: process.env.SVC_RELEASE_URL ?? '',
    DIGESTS: digests.join('\n'),
    PUBLIC_KEY: sign(list),
  })
  writeFileSync(join(OUT, 'install.sh'), installer, { mode: 0o755 })
}

if (import.meta.main) {
  const named = process.argv.slice(2)
  const targets = TARGETS.filter((each) => named.length === 0 || named.includes(each.name))
  assert(targets.length > 0, `targets are ${TARGETS.map((each) => each.name).join(', ')}`)
  await release(targets)
  for (const name of readdirSync(OUT).sort()) process.stdout.write(`dist/release/${name}\n`)
}
