import { describe, expect, it } from 'vitest'
import { sha256 } from '../../system/digests.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import { newAuthorization, newState, requireSafeConfig, stateEquals } from './authorizations.ts'

const config = {
  version: 1 as const,
  issuer: 'https://idp.test',
  authorizationEndpoint: 'https://idp.test/authorize?tenant=a&state=theirs',
  tokenEndpoint: 'https://idp.test/token',
  clientId: 'svc-cli',
  scopes: ['openid', 'operators'],
  resource: 'https://api.test/operators',
}

describe('an authorization request', () => {
  it('a request has exactly the parameters of the code flow with PKCE', async () => {
    const state = newState()
    const redirectUri = 'http://127.0.0.1:4711/callback'
    const { url, verifier } = await newAuthorization(config, { state, redirectUri })
    expect(Object.fromEntries(new URL(url).searchParams)).toEqual({
      tenant: 'a',
      response_type: 'code',
      client_id: 'svc-cli',
      redirect_uri: redirectUri,
      scope: 'openid operators',
      state: state.reveal(),
      code_challenge: encodeBase64Url(sha256(verifier.reveal())),
      code_challenge_method: 'S256',
      resource: config.resource,
    })
    expect(new URL(url).searchParams.getAll('state')).toHaveLength(1)
    expect(url).not.toContain(verifier.reveal())
    const without = await newAuthorization({ ...config, resource: null }, { state, redirectUri })
    expect(without.url).not.toContain('resource')
  })

  it('every request has a new verifier and state, of unreserved characters', async () => {
    const seen = new Set<string>()
    const state = newState()
    for (let i = 0; i < 10_000; i++) {
      const input = { state, redirectUri: 'http://127.0.0.1:1/callback' }
      const verifier = (await newAuthorization(config, input)).verifier.reveal()
      expect(verifier).toMatch(/^[A-Za-z0-9._~-]{43,128}$/)
      seen.add(verifier)
      seen.add(newState().reveal())
    }
    expect(seen.size).toBe(20_000)
  })

  it('accepts only its own state', () => {
    const state = newState()
    const text = state.reveal()
    expect(stateEquals(state, text)).toBe(true)
    for (const other of ['', text.slice(1), `${text} `, text.toLowerCase(), newState()]) {
      expect(stateEquals(state, String(other))).toBe(false)
    }
  })
})

describe('the configuration of a browser login', () => {
  const SECURE = 'https://manage.test'
  const LOCAL = 'http://127.0.0.1:3220'

  it('an endpoint may be HTTPS, or loopback if the server is', () => {
    const local = { ...config, tokenEndpoint: 'http://127.0.0.1:9/token' }
    expect(() => requireSafeConfig(config, SECURE)).not.toThrow()
    expect(() => requireSafeConfig(local, LOCAL)).not.toThrow()
    expect(() => requireSafeConfig(local, SECURE)).toThrow()
  })

  it.each([
    { authorizationEndpoint: 'file:///etc/passwd' },
    { authorizationEndpoint: 'javascript:alert(1)' },
    { authorizationEndpoint: '--help' },
    { authorizationEndpoint: 'http://idp.test/authorize' },
    { authorizationEndpoint: 'http://localhost:1/authorize' },
    { authorizationEndpoint: 'http://127.0.0.1.evil.test/authorize' },
    { authorizationEndpoint: 'http://127.0.0.1@evil.test/authorize' },
    { tokenEndpoint: 'http://idp.test/token' },
    { tokenEndpoint: 'https://user@idp.test/token' },
    { tokenEndpoint: 'https://idp.test/token#f' },
    { issuer: 'http://127.0.0.1:9' },
    { issuer: 'https://idp.test?x' },
    { resource: 'api' },
    { resource: 'https://api.test/#f' },
    { clientId: '' },
    { scopes: [] },
    { scopes: ['openid operators'] },
  ])('a configuration is rejected with %j', (part) => {
    expect(() => requireSafeConfig({ ...config, ...part }, LOCAL)).toThrow()
  })
})
