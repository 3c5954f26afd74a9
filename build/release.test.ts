/**
 * Goal: `npm run release` in a fresh clone gives what people install. Method: in a clone of this
 * checkout it builds the target of this machine alone, and the installer of that release installs
 * it from the directory.
 */
import { spawnSync } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { VERSION } from '../src/value/version.ts'
import { ROOT } from './bundle.ts'
import { sourceCommit } from './commit.ts'
import { parseSums, readPublished } from './origin/verify-release.ts'
import { prepareRelease } from './prepare-release.ts'
import { snapshotReasons, UNRELEASED } from './release.ts'
import { TARGETS } from './targets.ts'

const HERE = `${process.platform}-${process.arch}`
const isTarget = TARGETS.some(({ name }) => name === HERE)

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-release-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

function run(
  command: string,
  args: readonly string[],
  { cwd = ROOT, ...environment }: Record<string, string> = {},
) {
  const env = { PATH: process.env.PATH, ...environment }
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env })
  expect(status, `${command} ${args.join(' ')}\n${stderr}`).toBe(0)
  return stdout
}

/** Clones the checkout with the changes of its tracked files. Nothing is built in the clone. */
function freshClone(path: string): void {
  const changed = run('git', ['-C', ROOT, 'stash', 'create']).trim()
  run('git', ['clone', '--quiet', '--shared', '--no-checkout', ROOT, path])
  run('git', ['-C', path, 'checkout', '--quiet', '--detach', changed === '' ? 'HEAD' : changed])
  symlinkSync(join(ROOT, 'node_modules'), join(path, 'node_modules'))
}

/** Compresses 120 MB, so that only a hang takes this long. */
const RELEASE_MILLIS_MAX = 600_000

/** True in the long run: to compress 120 MB takes long, and `npm test` only prepares releases. */
const builds = process.env.SVC_TEST_LONG === '1' && isTarget && sourceCommit() !== ''

test.runIf(builds)(
  'a release of this machine installs, and changes no tracked file',
  () => {
    const work = directory()
    const clone = join(work, 'clone')
    freshClone(clone)
    const out = join(work, 'release')
    const key = join(work, 'key.pem')
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const signing = { cwd: clone, SVC_RELEASE_KEY_FILE: key }
    run(process.execPath, ['build/release.ts', HERE, '--out', out], signing)
    expect(run('git', ['-C', clone, 'diff', '--stat', 'HEAD'])).toBe('')
    const archive = `svc-${VERSION}-${HERE}.tar.gz`
    const client = `svc-${VERSION}.mjs`
    const origin = [`svc-${VERSION}.cdx.json`, `svc-${VERSION}.intoto.jsonl`]
    const listed = ['install.sh', archive, client, `svc-npm-${VERSION}.tgz`, ...origin].sort()
    const files = [...listed, 'SHA256SUMS', 'SHA256SUMS.sig', 'release.pub']
    expect(readdirSync(out).sort()).toEqual(files.sort())
    const sums = parseSums(readFileSync(join(out, 'SHA256SUMS'), 'utf8'))
    expect([...sums.keys()]).toEqual(listed)
    for (const [name, digest] of sums) {
      const bytes = readFileSync(join(out, name))
      expect(createHash('sha256').update(bytes).digest('hex'), name).toBe(digest)
    }

    const installed = join(work, 'bin')
    const environment = { SVC_BASE_URL: `file://${out}`, SVC_INSTALL_DIR: installed, HOME: work }
    const required = { ...environment, SVC_REQUIRE_SIGNATURE: '1' }
    expect(run('sh', [join(out, 'install.sh')], required)).toContain('with openssl.')
    expect(readPublished(out).targets).toEqual([HERE])
    const version = `${VERSION}+${sourceCommit(clone)}`
    expect(run(join(installed, 'svc'), ['--version'])).toBe(`svc ${version}\n`)
    expect(run(join(installed, 'svc-server'), ['version'])).toBe(
      `svc-server ${version} (${HERE})\n`,
    )
    expect(run('node', [join(out, client), '--version'])).toBe(`svc ${version}\n`)

    const unpacked = directory()
    run('tar', ['-xzf', join(out, archive), '-C', unpacked, 'THIRD-PARTY-LICENSES'])
    const licences = readFileSync(join(unpacked, 'THIRD-PARTY-LICENSES'), 'utf8')
    for (const text of [
      'GNU LESSER GENERAL',
      'GNU LIBRARY GENERAL',
      'Brian M. Carlson',
      'Hannes',
    ]) {
      expect(licences).toContain(text)
    }
    const packed = readFileSync(join(out, client), 'utf8')
    expect(packed.slice(packed.lastIndexOf('/*!'))).toMatch(/arktype .*cac .*ws .*\*\/\n$/s)
  },
  RELEASE_MILLIS_MAX,
)

/** Returns a copy of what a preparation changes, with one unreleased entry. */
function sources(): string {
  const root = directory()
  for (const path of ['migrations', 'package.json', 'package-lock.json', 'src/value/version.ts']) {
    cpSync(join(ROOT, path), join(root, path), { recursive: true })
  }
  const changelog = `# Changelog\n\n${UNRELEASED}\n\n- More.\n\n## ${VERSION}\n\n- All.\n`
  writeFileSync(join(root, 'CHANGELOG.md'), changelog)
  return root
}

test('a prepared release has its version in every file and records its migrations', () => {
  const root = sources()
  expect(snapshotReasons(root)).toContain('the changelog has unreleased entries')
  prepareRelease(root, '99.0.1')
  expect(snapshotReasons(root).filter((reason) => !reason.includes('checkout'))).toEqual([])
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  expect(read('CHANGELOG.md')).toContain('## 99.0.1\n\n- More.')
  expect(JSON.parse(read('package.json')).version).toBe('99.0.1')
  const lock = JSON.parse(read('package-lock.json'))
  expect([lock.version, lock.packages[''].version]).toEqual(['99.0.1', '99.0.1'])
  expect(read('src/value/version.ts')).toContain("VERSION = '99.0.1'")
})

test.each([
  ['0.0.1', 'is older than'],
  ['1.2', 'has the form 1.2.3'],
])('a release cannot be prepared as %s, which changes nothing', (version, reason) => {
  const root = sources()
  expect(() => prepareRelease(root, version)).toThrow(reason)
  expect(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')).toContain(UNRELEASED)
})

test('a released migration that changed fails a release', () => {
  const root = sources()
  prepareRelease(root, '99.0.1')
  const [migration] = readdirSync(join(root, 'migrations/control')).sort()
  const path = join(root, 'migrations/control', migration!)
  writeFileSync(path, `${readFileSync(path, 'utf8')}\n`)
  expect(() => snapshotReasons(root)).toThrow(`${migration} was released and has changed`)
})
