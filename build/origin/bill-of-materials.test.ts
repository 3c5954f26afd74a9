import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Spec, Validation } from '@cyclonedx/cyclonedx-library'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RELEASE_PUBLIC_KEY, VERSION } from '../../src/value/version.ts'
import { bundle } from '../bundle.ts'
import { TARGETS } from '../targets.ts'
import { billOfMaterials, type Contents } from './bill-of-materials.ts'
import { runtimeLibraries } from './packages.ts'
import { imageLibrary, lockEntry, lockedSha512, npmPurl, type Runtime } from './parts.ts'

const HERE = TARGETS.find(({ name }) => name === 'linux-x64')!
const ARTEFACTS = `${'1'.repeat(64)}  svc-${VERSION}-linux-x64.tar.gz\n`

let folder: string
let contents: Contents
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-materials-'))
  const outputs = { outfile: join(folder, 'main.js'), licences: join(folder, 'licences') }
  const entry = lockEntry(`node_modules/${HERE.package}`)
  const runtime: Runtime = {
    target: HERE.name,
    name: HERE.package,
    version: entry.version,
    purl: npmPurl(HERE.package, entry.version),
    archiveSha512: lockedSha512(entry),
    executable: HERE.executable,
    executableSha256: '2'.repeat(64),
  }
  contents = {
    version: VERSION,
    commit: '3'.repeat(40),
    modified: false,
    time: 1_767_323_045,
    packages: await bundle(outputs),
    runtimes: [runtime],
    libraries: runtimeLibraries(),
    system: [imageLibrary('amd64'), imageLibrary('arm64')],
  }
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Component {
  readonly 'bom-ref': string
  readonly group?: string
  readonly name: string
  readonly version?: string
  readonly purl?: string
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly components?: readonly Component[]
}

const materials = (changes: Partial<Contents> = {}, artefacts = ARTEFACTS) =>
  billOfMaterials({ ...contents, ...changes }, artefacts)
const components = (): Component[] => JSON.parse(materials()).components

test('the bill of materials is valid CycloneDX 1.6', { tags: ['slow'] }, async () => {
  const text = materials()
  expect(JSON.parse(text)).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 })
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6)
  expect(await validator.validate(text)).toBeNull()
  const broken = text.replace('"alg": "SHA-512"', '"alg": "SHA-9"')
  expect(await validator.validate(broken)).not.toBeNull()
})

test('the bill of materials and the licences name the same packages', { tags: ['slow'] }, () => {
  const text = readFileSync(join(folder, 'licences'), 'utf8')
  const headings = [...text.matchAll(/^-{79}\n\n(\S+) (\S+) \(/gm)]
  const licensed = headings.map(([, name, version]) => `${name} ${version}`)
  const listed = components()
    .filter((each) => each['bom-ref'].startsWith('node_modules/'))
    .map(
      ({ group, name, version }) => `${group === undefined ? '' : `${group}/`}${name} ${version}`,
    )
  expect(listed.length).toBeGreaterThan(30)
  expect(listed.sort()).toEqual(licensed.sort())
  for (const name of ['jose', 'pg', 'typescript', 'preact', '@ark/schema']) {
    expect(listed.filter((each) => each.startsWith(`${name} `))).toHaveLength(1)
  }
  for (const name of ['vitest', 'esbuild', 'bun-types']) {
    expect(listed.filter((each) => each.startsWith(`${name} `))).toEqual([])
  }
})

test('each package has the digest of its archive in the lock file', () => {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages
  for (const { 'bom-ref': folder, purl, hashes } of components()) {
    if (!folder.startsWith('node_modules/')) continue
    const digest = Buffer.from(hashes![0]!.content, 'hex').toString('base64')
    expect([folder, `sha512-${digest}`]).toEqual([folder, lock[folder].integrity])
    expect(purl).toContain(`@${lock[folder].version}`)
  }
})

test('the runtime has its version, the digest of its executable and what it links', () => {
  const runtime = components().find((each) => each['bom-ref'] === 'runtime/linux-x64')!
  expect(runtime).toMatchObject({ group: '@oven', name: 'bun-linux-x64' })
  expect(runtime.version).toBe(process.versions.bun)
  const parts = new Map(runtime.components!.map((each) => [each.name, each]))
  expect(parts.get('bin/bun')!.hashes).toEqual([{ alg: 'SHA-256', content: '2'.repeat(64) }])
  expect(parts.get('JavaScriptCore')!.version).toMatch(/^[0-9a-f]{40}$/)
  expect(parts.get('boringssl')!.version).toMatch(/^[0-9a-f]{40}$/)
  expect(parts.get('sqlite')!.version).toMatch(/^3\./)
  for (const name of ['zstd', 'c-ares', 'uWebsockets', "Tigerbeetle's IO code", 'acorn']) {
    expect(parts.has(name), name).toBe(true)
  }
})

test('the C library of the images is a package of Debian', () => {
  const found = components().flatMap(({ purl }) => (purl?.startsWith('pkg:deb') ? [purl] : []))
  expect(found.sort()).toEqual([
    'pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64&distro=debian-12',
    'pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=arm64&distro=debian-12',
  ])
})

test('one release has one bill of materials, with the time of its sources', {
  tags: ['slow'],
}, () => {
  const text = materials()
  const shuffled = { packages: [...contents.packages].reverse() }
  expect(materials(shuffled)).toBe(text)
  const whole = JSON.parse(text)
  expect(whole.metadata.timestamp).toBe('2026-01-02T03:04:05.000Z')
  const other = JSON.parse(materials({}, ARTEFACTS.replace('1', '4')))
  expect(whole.serialNumber).toMatch(
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
  const digest = createHash('sha256').update(ARTEFACTS).digest('hex')
  expect(whole.serialNumber).toContain(digest.slice(0, 8))
  expect(other.serialNumber).not.toBe(whole.serialNumber)
})

test('the product names the commit, and whether files differed from it', { tags: ['slow'] }, () => {
  const properties = (changes: Partial<Contents>) =>
    JSON.parse(materials(changes)).metadata.component.properties ?? []
  const commit = { name: 'svc:source:commit', value: '3'.repeat(40) }
  expect(properties({})).toEqual([commit])
  expect(properties({ modified: true })).toEqual([
    commit,
    { name: 'svc:source:modified', value: 'true' },
  ])
  expect(properties({ commit: null })).toEqual([])
})

test('sources that run as they are belong to no release', () => {
  expect(RELEASE_PUBLIC_KEY).toBe('')
})
