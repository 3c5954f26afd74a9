import { expect, test } from 'vitest'
import { makePackage, workspaceParts } from '../../../testing/products.ts'
import { sha256, sha256Stream } from '../../system/digests.ts'
import { canonicalJson } from '../canonical-json.ts'
import type { Json } from '../strict-json.ts'
import { readPackage } from './package-stream.ts'
import { decodeArtifact, decodePackage, digestName, encodePackage } from './workspace-package.ts'

const FRAME = makePackage({ source: 'export const name = "\u{1f600}"' })

async function read(chunks: Iterable<Uint8Array>) {
  const written: Uint8Array[] = []
  const writeArtifact = async (bytes: Uint8Array) => void written.push(new Uint8Array(bytes))
  const streamed = await readPackage(chunks, { hash: sha256Stream, writeArtifact })
  return { ...streamed, written: new Uint8Array(Buffer.concat(written)) }
}

function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) {
    yield bytes.subarray(at, at + size)
    yield new Uint8Array(0)
  }
}

test.each([1, 2, 3, 7, 64, 1_000_000])('a package in chunks of %i bytes is read', async (size) => {
  const { manifest, artifact, packageDigest } = decodePackage(FRAME, sha256)
  expect(await read(pieces(FRAME, size))).toEqual({
    manifest,
    packageDigest,
    artifact: { digest: digestName(sha256(artifact)), bytes: artifact.length },
    written: new Uint8Array(artifact),
  })
})

test('every truncated frame is rejected', async () => {
  for (let length = 0; length < FRAME.length; length++) {
    const cut = read(pieces(FRAME.subarray(0, length), 50))
    await expect(cut, String(length)).rejects.toMatchObject({ name: 'ValidationError' })
  }
})

test.each([
  ['a character that is cut', [0x61, 0xe2, 0x82]],
  ['no UTF-8', [0xff, 0x61]],
])('a source with %s is rejected, however it comes', async (_, bytes) => {
  // Built with ASCII of equal length first; then the index and all digests are corrected.
  const source = new Uint8Array(bytes)
  const { artifact, manifest } = workspaceParts({ source: 'x'.repeat(source.length) })
  const text = Buffer.from(artifact).toString('latin1')
  const plain = digestName(sha256(Buffer.from('x'.repeat(source.length))))
  const bent = text
    .replace(plain, digestName(sha256(source)))
    .replace('x'.repeat(source.length), Buffer.from(source).toString('latin1'))
  const spoiled = new Uint8Array(Buffer.from(bent, 'latin1'))
  const stated = canonicalJson(manifest as unknown as Json)
  const frame = encodePackage({ manifest: stated, artifact: spoiled }, sha256)
  const rejection = { path: 'bundle.js', rule: 'UTF-8 text' }
  expect(() => decodeArtifact(spoiled, sha256)).toThrow(expect.objectContaining(rejection))
  for (const size of [1, 5, 1_000]) {
    await expect(read(pieces(frame, size))).rejects.toMatchObject(rejection)
  }
})

test('reading stops at the end of the frame', async () => {
  let ended = false
  function* endless(): Generator<Uint8Array> {
    try {
      yield FRAME
      for (;;) yield new Uint8Array(1)
    } finally {
      ended = true
    }
  }
  await expect(read(endless())).rejects.toMatchObject({ path: 'package' })
  expect(ended).toBe(true)
})

test('a failure of the sink ends the reading with its error', async () => {
  const full = Object.assign(new Error('full'), { code: 'ENOSPC' })
  const sink = { hash: sha256Stream, writeArtifact: () => Promise.reject(full) }
  await expect(readPackage([FRAME], sink)).rejects.toBe(full)
})

test('an artifact is written in order, at the rate of the sink', async () => {
  const { artifact } = workspaceParts({ source: 'x'.repeat(10_000) })
  const frame = makePackage({ source: 'x'.repeat(10_000) })
  let taken = 0
  let held = 0
  function* counted(): Generator<Uint8Array> {
    for (const piece of pieces(frame, 100)) {
      taken += piece.length
      yield piece
    }
  }
  const writeArtifact = async (bytes: Uint8Array) => {
    const before = taken
    await Bun.sleep(0)
    expect(taken).toBe(before)
    held += bytes.length
  }
  await readPackage(counted(), { hash: sha256Stream, writeArtifact })
  expect(held).toBe(artifact.length)
})
