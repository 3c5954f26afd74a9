import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { fc } from '../../../testing/properties.ts'
import { canonicalJson } from '../canonical-json.ts'
import { ValidationError } from '../validation-error.ts'
import {
  decodeArtifact,
  decodePackage,
  encodeArtifact,
  encodePackage,
  MANIFEST_BYTES_MAX,
  PACKAGE_BYTES_MAX,
} from './workspace-package.ts'

const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest()
const text = fc.string({ unit: 'grapheme', maxLength: 200 })

describe('the package', () => {
  test('a package decodes to its input', () => {
    fc.assert(
      fc.property(text, fc.uint8Array({ maxLength: 500 }), (manifest, artifact) => {
        const decoded = decodePackage(encodePackage({ manifest, artifact }, sha256), sha256)
        expect(decoded.manifest).toBe(manifest)
        expect(decoded.artifact).toEqual(artifact)
      }),
      { verbose: true },
    )
  })

  test('a package has exactly the documented layout', () => {
    const frame = encodePackage({ manifest: '{}', artifact: Uint8Array.of(1, 2, 3) }, sha256)
    const lengths = Buffer.from([0, 0, 0, 2, 0, 0, 0, 3])
    const head = [Buffer.from('SVCPKG\0\x01'), lengths, Buffer.from('{}'), Buffer.of(1, 2, 3)]
    expect(Buffer.from(frame.subarray(0, 21))).toEqual(Buffer.concat(head))
    expect(frame.subarray(21)).toEqual(new Uint8Array(sha256(frame.subarray(0, 21))))
    const { packageDigest } = decodePackage(frame, sha256)
    expect(packageDigest).toBe(`sha256:${Buffer.from(frame.subarray(21)).toString('hex')}`)
  })

  test('a package is rejected with any one byte changed', () => {
    const frame = encodePackage({ manifest: '{"a":1}', artifact: Uint8Array.of(9, 8) }, sha256)
    for (let at = 0; at < frame.length; at++) {
      for (const flip of [1, 0x80, 0xff]) {
        const changed = frame.slice()
        changed[at]! ^= flip
        expect(() => decodePackage(changed, sha256), `byte ${at}`).toThrow(ValidationError)
      }
    }
  })

  test('a package is rejected when it is truncated or extended', () => {
    const frame = encodePackage({ manifest: '{"a":1}', artifact: Uint8Array.of(9, 8) }, sha256)
    for (let length = 0; length < frame.length; length++) {
      expect(() => decodePackage(frame.subarray(0, length), sha256)).toThrow(ValidationError)
    }
    for (const more of [1, 32, 1000]) {
      const longer = new Uint8Array(frame.length + more)
      longer.set(frame)
      expect(() => decodePackage(longer, sha256)).toThrow('the length that its head states')
    }
  })

  test('a package is rejected when its head declares more than the bounds or the frame', () => {
    const frame = encodePackage({ manifest: '{}', artifact: new Uint8Array(0) }, sha256)
    for (const [manifest, artifact] of [
      [MANIFEST_BYTES_MAX + 1, 0],
      [2, PACKAGE_BYTES_MAX],
      [0xffffffff, 0xffffffff],
      [0, 3],
    ] as const) {
      const changed = frame.slice()
      const view = new DataView(changed.buffer)
      view.setUint32(8, manifest)
      view.setUint32(12, artifact)
      expect(() => decodePackage(changed, sha256)).toThrow(ValidationError)
    }
  })

  test('a package cannot be encoded over its bounds', () => {
    const manifest = 'x'.repeat(MANIFEST_BYTES_MAX + 1)
    expect(() => encodePackage({ manifest, artifact: new Uint8Array(0) }, sha256)).toThrow(
      ValidationError,
    )
    const artifact = new Uint8Array(PACKAGE_BYTES_MAX - 49)
    expect(() => encodePackage({ manifest: '{}', artifact }, sha256)).toThrow(ValidationError)
  })

  test('a package with a manifest that is not UTF-8 is rejected', () => {
    const frame = encodePackage({ manifest: 'ab', artifact: new Uint8Array(0) }, sha256)
    frame[16] = 0xff
    frame.set(sha256(frame.subarray(0, frame.length - 32)), frame.length - 32)
    expect(() => decodePackage(frame, sha256)).toThrow('manifest: UTF-8 text')
  })
})

describe('the artifact', () => {
  test('an artifact decodes to its input, and has one encoding', () => {
    fc.assert(
      fc.property(text, fc.option(text), (source, sourceMap) => {
        const artifact = encodeArtifact({ source, sourceMap }, sha256)
        expect(encodeArtifact({ source, sourceMap }, sha256)).toEqual(artifact)
        expect(decodeArtifact(artifact, sha256)).toEqual({ source, sourceMap })
      }),
      { verbose: true },
    )
  })

  test('an artifact is rejected when it is changed, truncated or extended', () => {
    const artifact = encodeArtifact({ source: 'a()', sourceMap: '{}' }, sha256)
    for (let at = 0; at < artifact.length; at++) {
      const changed = artifact.slice()
      changed[at]! ^= 1
      expect(() => decodeArtifact(changed, sha256), `byte ${at}`).toThrow(ValidationError)
      expect(() => decodeArtifact(artifact.subarray(0, at), sha256)).toThrow(ValidationError)
    }
    expect(() => decodeArtifact(Buffer.concat([artifact, Buffer.of(0)]), sha256)).toThrow(
      ValidationError,
    )
  })

  const content = Buffer.from('x')
  const digest = `sha256:${Buffer.from(sha256(content)).toString('hex')}`
  const entry = { path: 'bundle.js', bytes: 1, digest }
  test.each<[string, unknown, string?]>([
    ['no entry', []],
    ['no array', { ...entry }],
    ['another path', [{ ...entry, path: '../bundle.js' }]],
    ['the map alone', [{ ...entry, path: 'bundle.js.map' }]],
    ['an entry twice', [entry, entry]],
    ['a third entry', [entry, { ...entry, path: 'bundle.js.map' }, entry]],
    ['an unknown field', [{ ...entry, mode: 420 }]],
    ['a negative length', [{ ...entry, bytes: -1 }]],
    ['a length that is not an integer', [{ ...entry, bytes: 0.5 }]],
    ['white space', [entry], `${canonicalJson([entry])} `],
    ['another order of keys', [entry], JSON.stringify([{ path: 'bundle.js', digest, bytes: 1 }])],
  ])('an artifact whose index has %s is rejected', (_, index, given) => {
    const bytes = Buffer.from(given ?? canonicalJson(index as never))
    const head = Buffer.alloc(12)
    head.write('SVCART\0\x01', 'latin1')
    head.writeUInt32BE(bytes.length, 8)
    const artifact = Buffer.concat([head, bytes, content])
    expect(() => decodeArtifact(artifact, sha256)).toThrow(ValidationError)
  })
})
