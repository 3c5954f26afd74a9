import { generateKeyPairSync } from 'node:crypto'
import { generateHybridIdentity, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { expect, test } from 'vitest'
import { encodeKey, isRecipient } from './recipients.ts'

test('recipients of the library are recognized, and none with a changed character', async () => {
  for (const generate of [generateX25519Identity, generateHybridIdentity]) {
    const identity = await generate()
    const recipient = await identityToRecipient(identity)
    expect(isRecipient(recipient)).toBe(true)
    expect(isRecipient(identity)).toBe(false)
    expect(isRecipient(recipient.toUpperCase())).toBe(false)
    expect(isRecipient(recipient.slice(0, -1))).toBe(false)
    const step = Math.ceil(recipient.length / 100)
    for (let i = 0; i < recipient.length; i += step) {
      const other = recipient[i] === 'q' ? 'p' : 'q'
      expect(isRecipient(recipient.slice(0, i) + other + recipient.slice(i + 1)), `${i}`).toBe(
        false,
      )
    }
  }
})

test('texts that only begin as a recipient are none', () => {
  const texts = ['', 'age1', 'age1qqqqqq', 'ssh-ed25519 AAAA', `age1${'q'.repeat(5_000)}`, 'age1é']
  for (const text of texts) expect(isRecipient(text), text).toBe(false)
})

test('keys have the texts by which the library knows them', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  const raw = (key: typeof privateKey, part: 'd' | 'x') =>
    Buffer.from(key.export({ format: 'jwk' })[part]!, 'base64url')
  const recipient = encodeKey('age', raw(publicKey, 'x'))
  const identity = encodeKey('age-secret-key-', raw(privateKey, 'd')).toUpperCase()
  expect(await identityToRecipient(identity)).toBe(recipient)
  expect(isRecipient(recipient)).toBe(true)
})
