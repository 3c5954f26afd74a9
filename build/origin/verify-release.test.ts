/**
 * Goal: a release that differs from what its commit gives is found, with the place. Method: small
 * releases in two directories.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tarGzip } from '../archives.ts'
import { releaseKeys } from './installer-fixture.ts'
import { envelope } from './provenance.ts'
import { compareReleases, parseSums, readPublished } from './verify-release.ts'

const COMMIT = '3'.repeat(40)
const ARCHIVE = 'svc-1.2.3-linux-x64.tar.gz'

let work: string
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'svc-verify-test-'))
  for (const name of ['published', 'rebuilt']) mkdirSync(join(work, name))
})
afterEach(() => rmSync(work, { recursive: true, force: true }))

const published = () => join(work, 'published')
const rebuilt = () => join(work, 'rebuilt')

interface Entry {
  readonly path: string
  readonly text: string
  readonly executable?: boolean
}

function archive(...entries: readonly Entry[]): Buffer {
  return tarGzip(
    entries.map(({ path, text, executable = false }) => ({
      path,
      bytes: Buffer.from(text),
      executable,
    })),
  )
}

const PROGRAM: Entry = { path: 'svc-server', text: 'program of svc', executable: true }
const LICENSE: Entry = { path: 'LICENSE', text: 'licence' }

function materials(properties: Readonly<Record<string, string>>): string {
  const list = Object.entries(properties).map(([name, value]) => ({ name, value }))
  const metadata = { timestamp: '2026-01-02T03:04:05.000Z', component: { properties: list } }
  return JSON.stringify({ metadata })
}

const { signer } = releaseKeys()
const statement = (builder: string) =>
  JSON.stringify({ predicate: { runDetails: { builder: { id: builder } } } })

/** The files of a release with one target. */
function files(): Record<string, Buffer> {
  return {
    [ARCHIVE]: archive(PROGRAM, LICENSE),
    'svc-1.2.3.mjs': Buffer.from('client'),
    'install.sh': Buffer.from("BASE_URL_DEFAULT='https://example.com/1'\n"),
    'svc-1.2.3.cdx.json': Buffer.from(materials({ 'svc:source:commit': COMMIT })),
    'svc-1.2.3.intoto.jsonl': Buffer.from(envelope(statement('urn:one'), signer)),
  }
}

function writeRelease(folder: string, contents: Readonly<Record<string, Buffer>>): void {
  const sums = Object.entries(contents).map(([name, bytes]) => {
    writeFileSync(join(folder, name), bytes)
    return `${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`
  })
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))
}

/** Returns the artefacts that differ, with the place, for a rebuilt release with changes. */
function differences(changes: Readonly<Record<string, Buffer>>): Record<string, string> {
  writeRelease(published(), files())
  writeRelease(rebuilt(), { ...files(), ...changes })
  const results = compareReleases(readPublished(published()), published(), rebuilt())
  expect(results).toHaveLength(5)
  return Object.fromEntries(
    results.flatMap(({ name, difference }) => (difference === null ? [] : [[name, difference]])),
  )
}

test('a release says how it was built', () => {
  writeRelease(published(), files())
  expect(readPublished(published())).toMatchObject({
    commit: COMMIT,
    time: 1_767_323_045,
    targets: ['linux-x64'],
    images: false,
    url: 'https://example.com/1',
    builder: 'urn:one',
  })
})

test('images of a release are built again', () => {
  const image = { 'svc-1.2.3-image-linux-x64.tar': Buffer.from('image') }
  writeRelease(published(), { ...files(), ...image })
  expect(readPublished(published())).toMatchObject({ targets: ['linux-x64'], images: true })
})

test.each([
  ['no commit', {}, 'names no commit'],
  ['an option in place of a commit', { 'svc:source:commit': '--help' }, 'names no commit'],
  [
    'changed files',
    { 'svc:source:commit': COMMIT, 'svc:source:modified': 'true' },
    'differ from the commit',
  ],
])('a release from %s cannot be rebuilt', (_, properties, reason) => {
  const changed = { 'svc-1.2.3.cdx.json': Buffer.from(materials(properties)) }
  writeRelease(published(), { ...files(), ...changed })
  expect(() => readPublished(published())).toThrow(reason)
})

test.each(['../x', '/etc/x', '.x', 'a/b', ''])('a list of digests with %s is rejected', (name) => {
  expect(() => parseSums(`${'1'.repeat(64)}  ${name}\n`)).toThrow('SHA256SUMS has the line')
})

test('a release that is built again is the same with another signature', () => {
  const unsigned = Buffer.from(envelope(statement('urn:one'), null))
  expect(differences({ 'svc-1.2.3.intoto.jsonl': unsigned })).toEqual({})
})

test('another statement in the provenance is found with its place', () => {
  const name = 'svc-1.2.3.intoto.jsonl'
  const other = Buffer.from(envelope(statement('urn:two'), signer))
  expect(differences({ [name]: other })).toEqual({ [name]: 'its statement: from byte 49 on' })
})

test.each<[string, readonly Entry[], string]>([
  ['byte', [{ ...PROGRAM, text: 'program Of svc' }, LICENSE], 'svc-server: from byte 8 on'],
  [
    'length',
    [{ ...PROGRAM, text: 'program of svc!' }, LICENSE],
    'svc-server: from byte 14 on, 14 bytes published and 15 rebuilt',
  ],
  ['mode', [{ ...PROGRAM, executable: false }, LICENSE], 'svc-server: its mode in the archive'],
  ['missing file', [PROGRAM], 'LICENSE is in the published archive alone'],
  [
    'additional file',
    [PROGRAM, LICENSE, { path: 'more', text: '' }],
    'more is in the rebuilt archive alone',
  ],
])('another %s of an archive is found with its place', (_, entries, place) => {
  expect(differences({ [ARCHIVE]: archive(...entries) })).toEqual({ [ARCHIVE]: place })
})

test('another compression of the same files is a difference', () => {
  const packed = gzipSync(gunzipSync(archive(PROGRAM, LICENSE)), { level: 1 })
  expect(differences({ [ARCHIVE]: packed })[ARCHIVE]).toContain('compressed otherwise')
})

test('an archive that is none, and another file, are compared by bytes', () => {
  expect(
    differences({ [ARCHIVE]: Buffer.from('x'), 'svc-1.2.3.mjs': Buffer.from('cliEnt') }),
  ).toEqual({
    [ARCHIVE]: 'one of them cannot be decompressed',
    'svc-1.2.3.mjs': 'from byte 3 on',
  })
})

test('a published file that its list does not have is a difference', () => {
  writeRelease(published(), files())
  writeRelease(rebuilt(), files())
  const release = readPublished(published())
  writeFileSync(join(published(), 'svc-1.2.3.mjs'), 'other')
  rmSync(join(rebuilt(), 'install.sh'))
  const results = compareReleases(release, published(), rebuilt())
  expect(results.filter((each) => each.difference !== null)).toEqual([
    { name: 'svc-1.2.3.mjs', difference: 'the published file is not the one of SHA256SUMS' },
    { name: 'install.sh', difference: 'it was not built' },
  ])
})
