import { expect, test } from 'vitest'
import { encodeBase64Url } from '../../value/base64url.ts'
import { Secret } from '../../value/secret.ts'
import { externalIdentity } from './subjects.ts'

const pepper = (byte: number) => new Secret(encodeBase64Url(new Uint8Array(32).fill(byte)))
const digest = (providerId: string, subject: string, byte = 9) => {
  const identity = externalIdentity({ providerId, subjectPepper: pepper(byte) }, subject)
  return Buffer.from(identity.subjectDigest).toString('hex')
}

test('the digest of a subject depends on provider and pepper', () => {
  const digests = [digest('a', 's'), digest('b', 's'), digest('a', 's', 8), digest('a', 't')]
  expect(new Set(digests).size).toBe(4)
})

test('provider and subject are separated unambiguously', () => {
  const digests = [
    digest('ab', 'c'),
    digest('a', 'bc'),
    digest('1', '1:ax'),
    digest('11', ':ax'),
    digest('é', 'x'),
    digest('é'.normalize('NFD'), 'x'),
  ]
  expect(new Set(digests).size).toBe(digests.length)
})

test('the digest of a subject never changes: stored links depend on it', () => {
  expect(digest('test-idp', 'subject-1')).toBe(
    '4565f84c6d0904f8baef6375dff3683a9bc75aedd487322479d2f47d6be31edb',
  )
})
