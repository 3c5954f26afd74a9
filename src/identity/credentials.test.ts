import { expect, test } from 'vitest'
import { TestSystem } from '../system/system.ts'
import { decodeBase64Url, encodeBase64Url } from '../value/base64url.ts'
import { Credentials } from './credentials.ts'

const system = new TestSystem()
const credentials = new Credentials(new Uint8Array(32).fill(1), system)
const otherKey = new Credentials(new Uint8Array(32).fill(2), system)

test('codes and access tokens have their prefix and 43 characters', () => {
  expect(credentials.issueInvitationCode().secret.reveal()).toMatch(/^rk_inv_v1_[\w-]{43}$/)
  expect(credentials.issueAccessToken().secret.reveal()).toMatch(/^rk_at_v1_[\w-]{43}$/)
})

test('a refresh token has 96 characters and contains its session and generation', () => {
  for (const generation of [1n, 2n, 255n, 2n ** 40n, 2n ** 63n - 1n]) {
    const sessionId = system.ids.make('ops')
    const { secret, digest } = credentials.issueRefreshToken(sessionId, generation)
    expect(secret.reveal()).toMatch(/^rk_rt_v1_[\w-]{96}$/)
    expect(credentials.recognizeRefreshToken(secret.reveal())).toEqual({
      sessionId,
      generation,
      digest,
    })
  }
})

test('a refresh token with any changed byte, or of another pepper, is not recognized', () => {
  const token = credentials.issueRefreshToken(system.ids.make('ops'), 3n).secret.reveal()
  expect(otherKey.recognizeRefreshToken(token)).toBeNull()
  const bytes = decodeBase64Url(token.slice(9))
  for (let i = 0; i < bytes.length; i++) {
    const changed = Uint8Array.from(bytes)
    changed[i]! ^= 1
    expect(credentials.recognizeRefreshToken(`rk_rt_v1_${encodeBase64Url(changed)}`)).toBeNull()
  }
})

test('an access token with any changed byte, or of another pepper, is not recognized', () => {
  const token = credentials.issueAccessToken().secret.reveal()
  expect(otherKey.recognizeAccessToken(token)).toBeNull()
  const bytes = decodeBase64Url(token.slice(9))
  for (let i = 0; i < bytes.length; i++) {
    const changed = Uint8Array.from(bytes)
    changed[i]! ^= 1
    expect(credentials.recognizeAccessToken(`rk_at_v1_${encodeBase64Url(changed)}`)).toBeNull()
  }
  // Equal bytes in non-canonical base64url.
  const last = token.charCodeAt(token.length - 1)
  const misspelled = token.slice(0, -1) + String.fromCharCode(last + 1)
  expect(credentials.recognizeAccessToken(misspelled)).toBeNull()
})

test('access tokens are unique and recognized by their digests', () => {
  const issued = Array.from({ length: 100 }, () => credentials.issueAccessToken())
  expect(new Set(issued.map(({ secret }) => secret.reveal())).size).toBe(100)
  for (const { secret, digest } of issued) {
    expect(credentials.recognizeAccessToken(secret.reveal())).toEqual(digest)
  }
})

test('texts of another form or kind are rejected as credentials', () => {
  const code = credentials.issueInvitationCode().secret.reveal()
  const access = credentials.issueAccessToken().secret.reveal()
  const refresh = credentials.issueRefreshToken(system.ids.make('ops'), 1n).secret.reveal()
  const wrong = ['', 'x', `${code} `, code.slice(0, -1), `${code}A`, code.replace('rk_', 'RK_')]
  for (const text of [...wrong, access, refresh]) {
    expect(credentials.digestInvitationCode(text)).toBeNull()
  }
  for (const text of [...wrong, code, refresh]) {
    expect(credentials.recognizeAccessToken(text)).toBeNull()
  }
  for (const text of [...wrong, code, access, `${refresh}A`, refresh.slice(0, -4)]) {
    expect(credentials.recognizeRefreshToken(text)).toBeNull()
  }
})

test('the digest of a credential depends on its kind and on the pepper', () => {
  const issued = [credentials, otherKey].map((each) => each.issueAccessToken())
  const texts = issued.map(({ secret }) => secret.reveal().slice('rk_at_v1_'.length))
  const digests = [
    ...issued.map(({ digest }) => digest),
    ...texts.map((text) => credentials.digestInvitationCode(`rk_inv_v1_${text}`)),
    ...texts.map((text) => otherKey.digestInvitationCode(`rk_inv_v1_${text}`)),
  ].map((digest) => digest?.toString('hex'))
  expect(new Set(digests).size).toBe(6)
})

test('no printed form of the object contains the pepper', () => {
  expect(Bun.inspect(credentials)).not.toMatch(/1, 1, 1|pepper.*Uint8Array/)
  expect(JSON.stringify(credentials)).not.toContain('1,1,1')
})
