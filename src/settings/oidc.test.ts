import { describe, expect, it } from 'vitest'
import { BASE, file, PEPPER } from '../../testing/environments/environments.ts'
import { OIDC, OIDC_FILE } from '../../testing/environments/oidc-files.ts'
import { isFault } from '../errors/fault.ts'
import { parseSettings } from './settings.ts'

const PATH = 'SERVICE_PLATFORM_OIDC_CONFIG'
let files = 0

function parse(content: string) {
  const environment = { ...BASE, [PATH]: file(`oidc-${files++}.json`, content) }
  return parseSettings(environment, 'migrate').oidc
}

function rejection(content: string): string {
  try {
    parse(content)
  } catch (error) {
    if (!isFault(error, 'SERVER_OIDC_CONFIG_INVALID')) throw error
    expect(error.violations).toHaveLength(1)
    expect(error.violations[0]?.path).toBe(PATH)
    expect(`${JSON.stringify(error)}${error.detail}`).not.toMatch(/canary/i)
    expect(error.cause).toBeUndefined()
    return error.violations[0]!.rule
  }
  return 'accepted'
}

type Change = Readonly<Record<string, unknown>>
const without = (key: string): Change => ({ [key]: undefined })
const native = (change: Change): Change => ({ nativeClient: { ...OIDC.nativeClient, ...change } })
const LOOPBACK = {
  discoveryUrl: 'http://127.0.0.1:9000/canary',
  allowedOrigins: ['http://127.0.0.1:9000'],
  allowLoopbackHttp: true,
}

const FIELDS: readonly (readonly [rule: string, field: string, change: Change])[] = [
  ...Object.keys(OIDC)
    .filter((key) => !['requiredType', 'nativeClient', 'allowLoopbackHttp'].includes(key))
    .map((key) => [`${key} is required`, key, without(key)] as const),
  ['unknown fields are rejected, unnamed', 'the file', { canaryField: 1 }],
  ['providerId is not empty', 'providerId', { providerId: '' }],
  ['providerId has no control characters', 'providerId', { providerId: 'canary\n' }],
  ['providerId is bounded', 'providerId', { providerId: 'c'.repeat(257) }],
  ['issuer is HTTPS', 'issuer', { issuer: 'http://canary.test' }],
  [
    'issuer is HTTPS even for conformance',
    'issuer',
    { ...LOOPBACK, issuer: 'http://127.0.0.1:9000' },
  ],
  ['issuer is canonical', 'issuer', { issuer: 'https://CANARY.test/tenant' }],
  ['issuer has no query', 'issuer', { issuer: 'https://canary.test/?a' }],
  ['issuer has no empty fragment', 'issuer', { issuer: 'https://canary.test/#' }],
  ['issuer has no userinfo', 'issuer', { issuer: 'https://canary@a.test/' }],
  ['issuer is a string', 'issuer', { issuer: ['https://canary.test'] }],
  [
    'discovery is inside the origins',
    'discoveryUrl',
    { discoveryUrl: 'https://other.canary.test/' },
  ],
  ['discovery has no userinfo', 'discoveryUrl', { discoveryUrl: 'https://u@canary.test/' }],
  ['discovery is a URL', 'discoveryUrl', { discoveryUrl: '/canary' }],
  ['origins are not empty', 'allowedOrigins', { allowedOrigins: [] }],
  ['origins are strings', 'allowedOrigins[1]', { allowedOrigins: ['https://canary.test', 1] }],
  ['origins are HTTPS', 'allowedOrigins', { allowedOrigins: ['http://canary.test'] }],
  ['origins are not loopback HTTP', 'allowedOrigins', { ...LOOPBACK, allowLoopbackHttp: false }],
  ['origins are canonical', 'allowedOrigins', { allowedOrigins: ['https://canary.test/'] }],
  [
    'origins are different',
    'allowedOrigins',
    { allowedOrigins: ['https://canary.test', 'https://canary.test'] },
  ],
  [
    'loopback HTTP is the only origin',
    'allowedOrigins',
    { ...LOOPBACK, allowedOrigins: ['http://127.0.0.1:9000', 'https://canary.test'] },
  ],
  [
    'loopback HTTP is one origin',
    'allowedOrigins',
    { ...LOOPBACK, allowedOrigins: ['http://127.0.0.1:9000', 'http://127.0.0.1:9001'] },
  ],
  [
    'localhost is not literal',
    'allowedOrigins',
    { ...LOOPBACK, allowedOrigins: ['http://localhost:9000'] },
  ],
  [
    'remote HTTP is never allowed',
    'allowedOrigins',
    { ...LOOPBACK, allowedOrigins: ['http://canary.test'] },
  ],
  [
    'the flag does not stay on',
    'allowedOrigins',
    { allowLoopbackHttp: true, allowedOrigins: ['https://canary.test'] },
  ],
  ['the flag is a boolean', 'allowLoopbackHttp', { allowLoopbackHttp: 'true' }],
  ['the flag is not null', 'allowLoopbackHttp', { allowLoopbackHttp: null }],
  ['no symmetric algorithm', 'algorithm', { algorithm: 'HS256' }],
  ['no missing signature', 'algorithm', { algorithm: 'none' }],
  ['one algorithm', 'algorithm', { algorithm: ['ES256'] }],
  ['requiredType is a string', 'requiredType', { requiredType: null }],
  ['requiredType is not empty', 'requiredType', { requiredType: '' }],
  ['the subject pepper has 32 bytes', 'subjectPepper', { subjectPepper: 'canary' }],
  [
    'the subject pepper is not padded',
    'subjectPepper',
    { subjectPepper: `${OIDC.subjectPepper}=` },
  ],
  ['the subject pepper is a string', 'subjectPepper', { subjectPepper: 7 }],
  ['the peppers are independent', 'subjectPepper', { subjectPepper: PEPPER }],
  ['nativeClient is an object', 'nativeClient', { nativeClient: null }],
  ['nativeClient is closed', 'nativeClient', native({ clientSecret: 'canary' })],
  [
    'the authorization endpoint is HTTPS',
    'nativeClient.authorizationEndpoint',
    native({ authorizationEndpoint: 'http://canary.test/' }),
  ],
  [
    'the token endpoint is HTTPS',
    'nativeClient.tokenEndpoint',
    native({ tokenEndpoint: 'http://127.0.0.1/' }),
  ],
  [
    'an endpoint has no fragment',
    'nativeClient.tokenEndpoint',
    native({ tokenEndpoint: 'https://canary.test/#' }),
  ],
  ['the client ID is required', 'nativeClient.clientId', native(without('clientId'))],
  ['scopes are required', 'nativeClient.scopes', native(without('scopes'))],
  ['a scope has no blank', 'nativeClient.scopes', native({ scopes: ['openid canary'] })],
  ['scopes are different', 'nativeClient.scopes', native({ scopes: ['canary', 'canary'] })],
  [
    'the resource is HTTPS',
    'nativeClient.resource',
    native({ resource: 'http://127.0.0.1/canary' }),
  ],
  [
    'the resource has no fragment',
    'nativeClient.resource',
    native({ resource: 'https://api.canary.test/#a' }),
  ],
  [
    'the resource is the audience',
    'nativeClient.resource',
    native({ resource: 'https://api.canary.test/b' }),
  ],
]

describe('the OIDC configuration file', () => {
  it('the OIDC configuration file may state every field', () => {
    const provider = parse(OIDC_FILE)
    const { subjectPepper, ...rest } = OIDC
    expect(provider).toMatchObject(rest)
    expect(provider?.subjectPepper.reveal()).toBe(subjectPepper)
    expect(Object.isFrozen(provider?.nativeClient?.scopes)).toBe(true)
  })

  it('the OIDC configuration file may leave out what is optional', () => {
    const { requiredType: _, nativeClient: _n, allowLoopbackHttp: _a, ...rest } = OIDC
    const provider = parse(JSON.stringify(rest))
    expect(provider).toMatchObject({ requiredType: null, nativeClient: null })
    expect(provider?.allowLoopbackHttp).toBe(false)
  })

  it.each(['RS256', 'PS256', 'ES256', 'EdDSA'])('a provider may use %s', (algorithm) => {
    expect(parse(JSON.stringify({ ...OIDC, algorithm }))?.algorithm).toBe(algorithm)
  })

  it('the OIDC configuration file may use one literal-loopback HTTP origin for conformance', () => {
    const endpoints = {
      authorizationEndpoint: 'http://127.0.0.1:9000/authorize',
      tokenEndpoint: 'http://127.0.0.1:9000/token',
    }
    const content = { ...OIDC, ...LOOPBACK, ...native(endpoints) }
    expect(parse(JSON.stringify(content))?.nativeClient).toMatchObject(endpoints)
    const elsewhere = native({ ...endpoints, tokenEndpoint: 'http://127.0.0.1:9001/token' })
    expect(rejection(JSON.stringify({ ...content, ...elsewhere }))).toContain('tokenEndpoint')
  })

  it.each(FIELDS)('%s', (_rule, field, change) => {
    expect(rejection(JSON.stringify({ ...OIDC, ...change })).split(': ')[0]).toBe(field)
  })

  it.each([
    ['a duplicate field', OIDC_FILE.replace('{', '{"issuer":"https://canary.test/",')],
    ['a __proto__ field', OIDC_FILE.replace('{', '{"__proto__":{},')],
    ['anything behind it', `${OIDC_FILE}{}`],
    ['a comment', `// canary\n${OIDC_FILE}`],
    ['a byte order mark', `\ufeff${OIDC_FILE}`],
    ['an array', `[${OIDC_FILE}]`],
    ['nothing', ''],
    ['null', 'null'],
  ])('the OIDC configuration file is rejected with %s', (_what, content) => {
    expect(rejection(content)).toMatch(/^the file: /)
  })
})
