/** Tokens of download grants under keyrings that were rotated, of other forms and Environments. */
import { expect, test } from 'vitest'
import { ENVIRONMENT_ID } from '../../../testing/product-roots.ts'
import { Keyring } from '../../storage/keyring.ts'
import { TestSystem } from '../../system/system.ts'
import {
  openDownload,
  openSignedDownload,
  sealDownload,
  sealSignedDownload,
} from './download-tokens.ts'
import { functionStorage, SIGNED_DOWNLOADS_PATH } from './function-storage.ts'
import type { FilePorts } from './ports.ts'

const OTHER = new TestSystem({ seed: 5 }).ids.make('env')
const FILE = 'fil_7ZZZZZZZZZ0123456789ABCDEF'
const CLAIMS = { fileId: FILE, expiresAtMillis: 2_000, fileName: 'é".png', inline: true }
const INVALID = expect.objectContaining({ code: 'GRANT_INVALID' })

function keyring(ids: readonly string[], active: string, environment = ENVIRONMENT_ID): Keyring {
  const keys = ids.map((id) => ({
    id,
    createdAtMicros: 1n,
    key: new Uint8Array(32).fill(id.charCodeAt(1)),
  }))
  return new Keyring({ version: 1, keys, active }, environment)
}

const first = keyring(['k1'], 'k1')
const token = sealSignedDownload(first, CLAIMS)

test.each([
  ['whole', CLAIMS],
  ['without a name', { ...CLAIMS, fileName: null }],
  ['as an attachment', { ...CLAIMS, inline: false }],
  ['as an attachment without a name', { ...CLAIMS, inline: false, fileName: null }],
])('the claims of a signed URL come back, %s', (_, claims) => {
  expect(openSignedDownload(first, sealSignedDownload(first, claims), 1_999)).toEqual(claims)
})

test('a signed URL expires in the millisecond that it names', () => {
  expect(openSignedDownload(first, token, 1_999)).toEqual(CLAIMS)
  expect(() => openSignedDownload(first, token, 2_000)).toThrow(INVALID)
})

test('a signed URL stays valid after a rotation, until its key leaves the keyring', () => {
  expect(openSignedDownload(keyring(['k1', 'k2'], 'k2'), token, 1_000)).toEqual(CLAIMS)
  expect(() => openSignedDownload(keyring(['k2'], 'k2'), token, 1_000)).toThrow(INVALID)
})

test('a signed URL is valid in one Environment only', () => {
  const other = keyring(['k1'], 'k1', OTHER)
  expect(() => openSignedDownload(other, token, 1_000)).toThrow(INVALID)
})

test('no form of grant is valid as another, even under its prefix', () => {
  const bearer = sealDownload(first, CLAIMS)
  const opened = { fileId: FILE, nowMillis: 1_000 }
  expect(openDownload(first, bearer, opened)).toMatchObject({ fileId: FILE })
  for (const disguised of [bearer, bearer.replace('rk_dnl_', 'rk_url_')]) {
    expect(() => openSignedDownload(first, disguised, 1_000)).toThrow(INVALID)
  }
  for (const disguised of [token, token.replace('rk_url_', 'rk_dnl_')]) {
    expect(() => openDownload(first, disguised, opened)).toThrow(INVALID)
  }
})

test('no changed character of a signed URL is accepted', () => {
  for (let at = 'rk_url_v1_'.length; at < token.length; at++) {
    const changed = token[at] === 'A' ? 'B' : 'A'
    const forged = token.slice(0, at) + changed + token.slice(at + 1)
    expect(() => openSignedDownload(first, forged, 1_000), String(at)).toThrow(INVALID)
  }
  for (const cut of [token.slice(0, -1), token.slice(0, -4), 'rk_url_v1_', 'rk_url_v1_AAAA']) {
    expect(() => openSignedDownload(first, cut, 1_000)).toThrow(INVALID)
  }
})

test('a signed URL is equal for a quarter of its lifetime, and valid for three quarters', () => {
  const { signDownload } = functionStorage(() => ({ keyring: first }) as FilePorts)
  const request = { fileId: FILE, expiresInSeconds: 60, fileName: null, inline: false }
  const at = (seconds: bigint) => signDownload({ ...request, nowMicros: seconds * 1_000_000n })
  for (const second of [120n, 127n, 134n]) expect(at(second)).toEqual(at(120n))
  expect(at(135n).path).not.toBe(at(134n).path)
  const { path, expiresAtMicros } = at(134n)
  expect(expiresAtMicros).toBe(180_000_000n)
  const signed = path.slice(SIGNED_DOWNLOADS_PATH.length)
  expect(openSignedDownload(first, signed, 179_999)).toMatchObject({ fileId: FILE })
  expect(() => openSignedDownload(first, signed, 180_000)).toThrow(INVALID)
})
