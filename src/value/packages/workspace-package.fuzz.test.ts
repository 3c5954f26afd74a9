/** Fuzzes packages, artifacts and manifests, as a hostile publisher might send them. */
import { expect } from 'vitest'
import { fuzz, mutatedBytes, mutatedJson, mutatedText } from '../../../testing/fuzzing/fuzz.ts'
import { functionManifest, workspaceParts } from '../../../testing/products.ts'
import { sha256, sha256Stream } from '../../system/digests.ts'
import { parseDescription, parseManifest } from '../../wire/files/manifest.ts'
import { canonicalJson } from '../canonical-json.ts'
import type { Json } from '../strict-json.ts'
import { ValidationError } from '../validation-error.ts'
import { readPackage, type StreamedPackage } from './package-stream.ts'
import {
  decodeArtifact,
  decodePackage,
  digestName,
  encodeArtifact,
  encodePackage,
} from './workspace-package.ts'

const ANY = { type: 'any' } as const
const { manifest, artifact } = workspaceParts({
  source: 'x',
  functions: [
    functionManifest('a.b', {
      clients: ['confidential', 'public'],
      arguments: {
        list: { type: 'array', items: { type: 'int64', minimum: '1' }, maximumItems: 5 },
        one: {
          type: 'union',
          members: [
            { type: 'literal', value: { string: 'x' } },
            { type: 'id', table: 't' },
          ],
        },
      },
      returns: { type: 'nullable', inner: { type: 'record', values: ANY } },
      errors: { GONE: 'not_found' },
    }),
  ],
  tables: [
    {
      name: 't',
      fields: { a: { type: 'optional', inner: { type: 'object', fields: { b: ANY } } }, c: ANY },
      indexes: [{ name: 'byC', fields: ['c'], unique: true }],
    },
  ],
})
const MANIFEST = manifest as unknown as Json
const TEXT = canonicalJson(MANIFEST)
const PACKAGE = encodePackage({ manifest: TEXT, artifact }, sha256)

function orNull<T>(work: () => T): T | null {
  try {
    return work()
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

async function streamedOrNull(frame: Uint8Array, size: number): Promise<StreamedPackage | null> {
  const count = Math.ceil(frame.length / size)
  const chunks = Array.from({ length: count }, (_, i) => frame.subarray(i * size, (i + 1) * size))
  try {
    return await readPackage(chunks, { hash: sha256Stream, writeArtifact: async () => undefined })
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

/** Replaces the trailing digest with a valid one, so that the checks behind it are reached. */
function sealed(frame: Uint8Array): Uint8Array {
  const end = Math.max(0, frame.length - 32)
  const result = new Uint8Array(frame)
  if (frame.length >= 32) result.set(sha256(frame.subarray(0, end)), end)
  return result
}

fuzz('a package is rejected, or is the only encoding of what it holds', (random) => {
  const bent = mutatedBytes(random, PACKAGE)
  const frame = random.chance(4) ? bent : sealed(bent)
  const decoded = orNull(() => decodePackage(frame, sha256))
  if (decoded === null) return
  expect(encodePackage(decoded, sha256)).toEqual(frame)
})

fuzz('a package that streams is read exactly where it is read whole', async (random) => {
  const inner = random.chance(2) ? mutatedBytes(random, artifact) : artifact
  const whole = encodePackage({ manifest: TEXT, artifact: inner }, sha256)
  const bent = random.chance(2) ? mutatedBytes(random, whole) : whole
  const frame = random.chance(2) ? sealed(bent) : bent
  const decoded = orNull(() => {
    const { manifest: text, artifact: bytes, packageDigest } = decodePackage(frame, sha256)
    decodeArtifact(bytes, sha256)
    const digest = digestName(sha256(bytes))
    return { manifest: text, packageDigest, artifact: { digest, bytes: bytes.length } }
  })
  const size = 1 + random.below(frame.length + 1)
  expect(await streamedOrNull(frame, size)).toEqual(decoded)
})

fuzz('an artifact is rejected, or is the only encoding of what it holds', (random) => {
  const bent = mutatedBytes(random, artifact)
  const decoded = orNull(() => decodeArtifact(bent, sha256))
  if (decoded === null) return
  expect(encodeArtifact(decoded, sha256)).toEqual(bent)
})

fuzz('a manifest is rejected, or has exactly this text', (random) => {
  const json = mutatedJson(random, MANIFEST)
  const text = orNull(() => canonicalJson(json as Json)) ?? JSON.stringify(json)
  const sent = random.chance(3) ? mutatedText(random, text) : text
  const parsed = orNull(() => parseManifest(sent))
  if (parsed !== null && canonicalJson(parsed as unknown as Json) !== sent) expect.fail(sent)
})

fuzz('a self-description of code is rejected, or is parsed without a change', (random) => {
  const { functions, tables } = manifest
  const given = mutatedJson(random, { functions, tables } as unknown as Json) as Json
  const parsed = orNull(() => parseDescription(given))
  if (parsed === null) return
  if (canonicalJson(parsed as unknown as Json) !== canonicalJson(given)) expect.fail('it changed')
})
