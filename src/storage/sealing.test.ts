import { expect, test } from 'vitest'
import { ENVIRONMENT_ID } from '../../testing/product-roots.ts'
import { TestSystem } from '../system/system.ts'
import { Secret } from '../value/secret.ts'
import { Keyring } from './keyring.ts'
import { type Sealed, type SealedFor, seal, unseal } from './sealing.ts'

const system = new TestSystem()
const OTHER_ENVIRONMENT = new TestSystem({ seed: 5 }).ids.make('env')
const SUBJECT: SealedFor = { environmentId: ENVIRONMENT_ID, name: 'API_KEY', revision: 7n }
const TEXT = 'sk_live_ünicode'

function keyring(active = 'k1', environmentId = ENVIRONMENT_ID): Keyring {
  const keys = ['k1', 'k2'].map((id, i) => ({
    id,
    key: new Uint8Array(32).fill(i + 1),
    createdAtMicros: 1n,
  }))
  return new Keyring({ version: 1, keys, active }, environmentId)
}

const sealed = seal(keyring(), system, SUBJECT, new Secret(TEXT))

function flipped(bit: number): Sealed {
  const bytes = Uint8Array.from(sealed.bytes)
  bytes[bit >> 3]! ^= 1 << (bit & 7)
  return { ...sealed, bytes }
}

test('a secret is unsealed with its key for its subject', () => {
  expect(sealed.keyId).toBe('k1')
  expect(unseal(keyring(), SUBJECT, sealed).reveal()).toBe(TEXT)
  // An older key still unseals after another became the active one.
  expect(unseal(keyring('k2'), SUBJECT, sealed).reveal()).toBe(TEXT)
})

test('the sealed bytes are as long as nonce, text and tag and do not contain the text', () => {
  expect(sealed.bytes.length).toBe(12 + Buffer.byteLength(TEXT) + 16)
  expect(Buffer.from(sealed.bytes).includes(TEXT)).toBe(false)
})

test('a secret that is sealed twice has different bytes', () => {
  const again = seal(keyring(), system, SUBJECT, new Secret(TEXT))
  expect(Buffer.from(again.bytes).equals(sealed.bytes)).toBe(false)
})

test.each<[string, SealedFor, Sealed, Keyring]>([
  ['read for another name', { ...SUBJECT, name: 'API_KEY2' }, sealed, keyring()],
  ['read for another revision', { ...SUBJECT, revision: 8n }, sealed, keyring()],
  [
    'read for another Environment',
    { ...SUBJECT, environmentId: OTHER_ENVIRONMENT },
    sealed,
    keyring(),
  ],
  ['read in another Environment', SUBJECT, sealed, keyring('k1', OTHER_ENVIRONMENT)],
  ['read under the ID of another key', SUBJECT, { ...sealed, keyId: 'k2' }, keyring()],
  ['cut short', SUBJECT, { ...sealed, bytes: sealed.bytes.subarray(0, -1) }, keyring()],
  ['empty', SUBJECT, { ...sealed, bytes: new Uint8Array(0) }, keyring()],
])('a sealed secret that is %s cannot be unsealed', (_, subject, given, ring) => {
  expect(() => unseal(ring, subject, given)).toThrow(
    expect.objectContaining({ code: 'PRODUCT_CORRUPT' }),
  )
})

test('a sealed secret with any bit changed cannot be unsealed', () => {
  for (let bit = 0; bit < sealed.bytes.length * 8; bit++) {
    expect(() => unseal(keyring(), SUBJECT, flipped(bit))).toThrow(
      expect.objectContaining({ code: 'PRODUCT_CORRUPT' }),
    )
  }
})
