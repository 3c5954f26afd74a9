/** Checksums against published check values, and however their input is cut. */
import { expect, test } from 'vitest'
import { fc } from '../../testing/properties.ts'
import { type ChecksumAlgorithm, checksumStream } from './checksums.ts'

const hexOf = (algorithm: ChecksumAlgorithm, ...parts: readonly Uint8Array[]): string => {
  const stream = checksumStream(algorithm)
  for (const part of parts) stream.update(part)
  return Buffer.from(stream.digest()).toString('hex')
}

/** The check values of the catalogue of CRCs, and of RFC 1321 and FIPS 180 for the digests. */
const CHECKS: readonly [ChecksumAlgorithm, string][] = [
  ['crc32', 'cbf43926'],
  ['crc32c', 'e3069283'],
  ['crc64nvme', 'ae8b14860a799888'],
  ['md5', '25f9e794323b453885f5181f1b624d0b'],
  ['sha1', 'f7c3bc1d808e04732adf679965ccc34ca7ae3441'],
  ['sha256', '15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225'],
]

test.each(CHECKS)('%s of "123456789" is its published check value', (algorithm, expected) => {
  expect(hexOf(algorithm, new TextEncoder().encode('123456789'))).toBe(expected)
})

test.each([
  ['crc32', '00000000'],
  ['crc32c', '00000000'],
  ['crc64nvme', '0000000000000000'],
] as const)('%s of no bytes is zero', (algorithm, expected) => {
  expect(hexOf(algorithm)).toBe(expected)
})

test('CRC-32C of 32 bytes is as RFC 3720, section B.4, publishes it', () => {
  expect(hexOf('crc32c', new Uint8Array(32))).toBe('8a9136aa')
  expect(hexOf('crc32c', new Uint8Array(32).fill(255))).toBe('62a8ab43')
  expect(
    hexOf(
      'crc32c',
      Uint8Array.from({ length: 32 }, (_, i) => i),
    ),
  ).toBe('46dd794e')
})

test('a checksum does not depend on how its input is cut', () => {
  const bytes = fc.uint8Array({ minLength: 0, maxLength: 100 })
  fc.assert(
    fc.property(bytes, fc.nat(100), fc.constantFrom(...CHECKS), (input, cut, [algorithm]) => {
      const at = Math.min(cut, input.length)
      const parts = [input.subarray(0, at), input.subarray(at)]
      expect(hexOf(algorithm, ...parts)).toBe(hexOf(algorithm, input))
    }),
  )
})
