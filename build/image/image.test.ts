import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { file, type Member, tar } from '../archives.ts'
import { createImage, imageArchive, indexArchive } from './image.ts'
import { readTar } from './read-tar.ts'

const RELEASE = { version: '1.2.3', commit: 'abcdef01', time: 1_700_000_000 }
const LAYERS: Member[][] = [
  [{ ...file('etc', '', 0o755), type: 'directory' }, file('etc/passwd', 'svc')],
  [file('bin', 'program', 0o755), { ...file('link', ''), type: 'hardlink', target: 'bin' }],
]

const create = () => createImage('amd64', LAYERS, RELEASE)
const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** Returns the files of an archive by path. */
function contents(archive: Uint8Array): Map<string, Uint8Array> {
  return new Map(readTar(archive).map(({ path, bytes }) => [path, bytes]))
}

test('the same release gives the same bytes, and another time gives others', () => {
  const archive = imageArchive(create(), RELEASE)
  expect(imageArchive(create(), RELEASE).equals(archive)).toBe(true)
  const later = { ...RELEASE, time: RELEASE.time + 1 }
  expect(imageArchive(createImage('amd64', LAYERS, later), later).equals(archive)).toBe(false)
})

test('every blob of an archive has the digest of its name', () => {
  const images = [create(), createImage('arm64', LAYERS, RELEASE)]
  for (const archive of [imageArchive(images[0]!, RELEASE), indexArchive(images, RELEASE)]) {
    const blobs = [...contents(archive)].filter(([path]) => path.startsWith('blobs/sha256/'))
    expect(blobs.length).toBeGreaterThan(3)
    for (const [path, bytes] of blobs) expect(path).toBe(`blobs/sha256/${digest(bytes)}`)
  }
})

test('a configuration names the digests of its unpacked layers, in their order', () => {
  const { config, layers } = create()
  const { rootfs } = JSON.parse(Buffer.from(config.bytes).toString())
  const unpacked = layers.map(({ bytes }) => `sha256:${digest(gunzipSync(bytes))}`)
  expect(rootfs).toEqual({ type: 'layers', diff_ids: unpacked })
})

test('a tar archive is read as it was written', () => {
  for (const layer of LAYERS) expect(readTar(tar(layer, RELEASE.time))).toEqual(layer)
})
