/** The files of an apt repository with one suite: `pool`, and `dists/stable` with its digests. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { assert } from '../../src/errors/assert.ts'
import { gzip } from '../archives.ts'
import { readTar } from '../image/read-tar.ts'
import { armoredSignature, clearSign, publicKey } from './gpg.ts'

export interface DebianPackage {
  readonly name: string
  readonly bytes: Buffer
}

/** The file with the public key that signs the repository and the RPMs. */
export const KEY_FILE = 'svc.asc'
const SUITE = 'stable'
const COMPONENT = 'main'
/** The file in which machines keep the key of the repository. */
const KEYRING = '/etc/apt/keyrings/svc.asc'
const AR_MAGIC = '!<arch>\n'
const AR_HEADER_BYTES = 60

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Returns the control file of a package. */
export function controlText({ name, bytes }: DebianPackage): string {
  const member = arMember(bytes, 'control.tar.gz')
  assert(member !== null, `${name} has no control.tar.gz`)
  const found = readTar(gunzipSync(member)).find(({ path }) => /^(?:\.\/)?control$/.test(path))
  assert(found !== undefined, `${name} has no control file`)
  return Buffer.from(found.bytes).toString()
}

function arMember(archive: Buffer, wanted: string): Buffer | null {
  assert(archive.toString('latin1', 0, 8) === AR_MAGIC, 'a Debian package is an archive of ar')
  let at = AR_MAGIC.length
  while (at + AR_HEADER_BYTES <= archive.length) {
    const header = archive.toString('latin1', at, at + AR_HEADER_BYTES)
    const size = Number(header.slice(48, 58))
    const start = at + AR_HEADER_BYTES
    if (header.slice(0, 16).trim().replace(/\/$/, '') === wanted) {
      return archive.subarray(start, start + size)
    }
    at = start + size + (size % 2)
  }
  return null
}

/** Returns the files of the repository by path, sorted, without signatures. */
export function aptRepository(
  packages: readonly DebianPackage[],
  time: number,
): ReadonlyMap<string, Buffer> {
  const pool = new Map(
    packages.map((each) => [`pool/${COMPONENT}/s/svc/${each.name}`, each] as const),
  )
  const stanzas = [...pool].map(([path, each]) => {
    const control = controlText(each).trim()
    const architecture = /^Architecture: (.+)$/m.exec(control)?.[1]
    assert(architecture !== undefined, `${each.name} names no architecture`)
    const fields = [`Filename: ${path}`, `Size: ${each.bytes.length}`]
    fields.push(`SHA256: ${sha256(each.bytes)}`)
    // The description has several lines, so it stays the last field.
    const text = control.replace(/\nDescription: /, `\n${fields.join('\n')}\nDescription: `)
    return { architecture, text: `${text}\n` }
  })
  const architectures = [...new Set(stanzas.map((each) => each.architecture))].sort()
  const lists = architectures.flatMap((architecture): [string, Buffer][] => {
    const own = stanzas.filter((each) => each.architecture === architecture)
    const list = Buffer.from(own.map(({ text }) => text).join('\n'))
    const path = `${COMPONENT}/binary-${architecture}/Packages`
    return [
      [path, list],
      [`${path}.gz`, gzip(list)],
    ]
  })
  const files = [...pool].map(([path, { bytes }]): [string, Buffer] => [path, bytes])
  const release = Buffer.from(releaseText(architectures, lists, time))
  return new Map([
    ...lists.map(([path, bytes]): [string, Buffer] => [`dists/${SUITE}/${path}`, bytes]),
    [`dists/${SUITE}/Release`, release],
    ...files,
  ])
}

function releaseText(
  architectures: readonly string[],
  lists: readonly [string, Buffer][],
  time: number,
): string {
  return [
    'Origin: svc',
    'Label: svc',
    `Suite: ${SUITE}`,
    `Codename: ${SUITE}`,
    `Architectures: ${architectures.join(' ')}`,
    `Components: ${COMPONENT}`,
    `Date: ${new Date(time * 1000).toUTCString().replace('GMT', 'UTC')}`,
    'SHA256:',
    ...lists.map(([path, bytes]) => ` ${sha256(bytes)} ${bytes.length} ${path}`),
    '',
  ].join('\n')
}

/** Returns the source that a machine names the repository with, in the format of deb822. */
export function sourcesText(url: string): string {
  return [
    '# /etc/apt/sources.list.d/svc.sources',
    'Types: deb',
    `URIs: ${url}`,
    `Suites: ${SUITE}`,
    `Components: ${COMPONENT}`,
    `Signed-By: ${KEYRING}`,
    '',
  ].join('\n')
}

/** Writes a repository. With the fingerprint of a key, gpg signs it and exports the key into it. */
export function writeRepository(
  folder: string,
  files: ReadonlyMap<string, Buffer>,
  key: string | undefined,
): void {
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), bytes)
  }
  if (key === undefined) return
  const suite = join(folder, 'dists', SUITE)
  const release = readRelease(files)
  writeFileSync(join(suite, 'InRelease'), clearSign(key, release))
  writeFileSync(join(suite, 'Release.gpg'), armoredSignature(key, release))
  writeFileSync(join(folder, KEY_FILE), publicKey(key))
}

function readRelease(files: ReadonlyMap<string, Buffer>): Buffer {
  const release = files.get(`dists/${SUITE}/Release`)
  assert(release !== undefined, 'the repository has no Release')
  return release
}
