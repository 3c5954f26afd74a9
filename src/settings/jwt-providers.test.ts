import { describe, expect, it } from 'vitest'
import { BASE, DIR, file } from '../../testing/environments/environments.ts'
import { isFault } from '../errors/fault.ts'
import { parseSettings } from './settings.ts'

const NAME = 'SERVICE_PRODUCT_AUTH_CONFIG'
let files = 0

function parse(content: string) {
  const path = `providers-${files++}.json`
  file(path, content)
  const environment = { ...BASE, SERVICE_PRODUCT_ROOT: DIR, [NAME]: path }
  return parseSettings(environment, 'check').product!.jwtProviders
}

function rejection(content: string): string {
  try {
    parse(content)
  } catch (error) {
    if (!isFault(error, 'SERVER_CONFIGURATION_INVALID')) throw error
    expect(error.violations).toHaveLength(1)
    expect(error.violations[0]?.path).toBe(NAME)
    expect(`${JSON.stringify(error)}${error.detail}`).not.toMatch(/canary/i)
    expect(error.cause).toBeUndefined()
    return error.violations[0]!.rule
  }
  return 'accepted'
}

const JWK = { kty: 'EC', crv: 'P-256', x: 'canary', y: 'canary', kid: 'canary-1', x5c: ['canary'] }
const USERS = {
  name: 'canary-users',
  kind: 'user',
  issuer: 'https://canary.test/tenant',
  audience: 'https://api.canary.test',
  algorithms: ['RS256', 'ES256'],
  jwksUri: 'https://canary.test/jwks.json?tenant=1',
}
const SERVICES = {
  name: 'canary-services',
  kind: 'service',
  issuer: 'canary-services',
  audience: 'canary',
  algorithms: ['EdDSA'],
  jwks: { keys: [JWK] },
  requiredType: 'at+jwt',
  claims: { subject: 'client_id', roles: '/realm_access/ro~1les', email: 'https://canary.test/m' },
  clockToleranceSeconds: 0,
  maximumLifetimeSeconds: 300,
}
type Change = Readonly<Record<string, unknown>>
const file1 = (...providers: readonly object[]) => JSON.stringify({ version: 1, providers })

const FIELDS: readonly (readonly [rule: string, field: string, change: Change])[] = [
  ...['name', 'kind', 'issuer', 'audience', 'algorithms'].map(
    (key) => [`${key} is required`, `.${key}`, { [key]: undefined }] as const,
  ),
  ['unknown fields are rejected, unnamed', '', { canaryField: 1 }],
  ['a name is not empty', '.name', { name: '' }],
  ['a name is bounded', '.name', { name: 'c'.repeat(65) }],
  ['the identity kind guest', '.kind', { kind: 'guest' }],
  ['an issuer is a string', '.issuer', { issuer: ['https://canary.test'] }],
  ['an issuer has no control characters', '.issuer', { issuer: 'canary\n' }],
  ['one audience', '.audience', { audience: ['canary'] }],
  ['some algorithm', '.algorithms', { algorithms: [] }],
  ['no symmetric algorithm', '.algorithms', { algorithms: ['RS256', 'HS256'] }],
  ['no missing signature', '.algorithms', { algorithms: ['none'] }],
  ['algorithms by their exact name', '.algorithms', { algorithms: ['es256'] }],
  ['each algorithm once', '.algorithms', { algorithms: ['ES256', 'ES256'] }],
  ['algorithms in a list', '.algorithms', { algorithms: 'ES256' }],
  ['some keys', '', { jwksUri: undefined }],
  ['keys from one place', '', { jwks: { keys: [JWK] } }],
  ['keys at a URL', '.jwksUri', { jwksUri: '/canary' }],
  ['keys over HTTPS', '.jwksUri', { jwksUri: 'http://canary.test/jwks' }],
  ['no name for loopback', '.jwksUri', { jwksUri: 'http://localhost:1/jwks' }],
  ['no userinfo', '.jwksUri', { jwksUri: 'https://canary@a.test/' }],
  ['no fragment', '.jwksUri', { jwksUri: 'https://canary.test/#' }],
  ['a URL of text', '.jwksUri', { jwksUri: null }],
  ['a type that is a text', '.requiredType', { requiredType: null }],
  ['claims in an object', '.claims', { claims: null }],
  ['no other claims', '.claims', { claims: { canary: 'x' } }],
  ['a subject that is a claim', '.claims.subject', { claims: { subject: '' } }],
  ['roles that are a claim', '.claims.roles', { claims: { roles: ['canary'] } }],
  ['an email that is a claim', '.claims.email', { claims: { email: null } }],
  ['a pointer that is one', '.claims.roles', { claims: { roles: '/canary~2' } }],
  ['a tolerance of 5 minutes', '.clockToleranceSeconds', { clockToleranceSeconds: 301 }],
  ['a negative tolerance', '.clockToleranceSeconds', { clockToleranceSeconds: -1 }],
  ['whole seconds', '.clockToleranceSeconds', { clockToleranceSeconds: 1.5 }],
  ['a life', '.maximumLifetimeSeconds', { maximumLifetimeSeconds: 0 }],
  ['a life of 30 days', '.maximumLifetimeSeconds', { maximumLifetimeSeconds: 2_592_001 }],
  ['a life in numbers', '.maximumLifetimeSeconds', { maximumLifetimeSeconds: '60' }],
]

const KEY_SETS: readonly (readonly [rule: string, field: string, jwks: unknown])[] = [
  ['a set is an object', '', [JWK]],
  ['a set is closed', '', { keys: [JWK], canary: 1 }],
  ['a set has keys', '.keys', { keys: [] }],
  ['a key is an object', '.keys[1]', { keys: [JWK, 'canary'] }],
  ['a key has a type', '.keys[0]', { keys: [{ ...JWK, kty: undefined }] }],
  ['no symmetric key', '.keys[0]', { keys: [{ kty: 'oct', k: 'canary' }] }],
  ['no private key', '.keys[0]', { keys: [{ ...JWK, d: 'canary' }] }],
]

describe('a descriptor is rejected:', () => {
  it.each(FIELDS)('a descriptor is rejected: %s', (_, field, change) => {
    expect(rejection(file1(SERVICES, { ...USERS, ...change }))).toMatch(`providers[1]${field}: `)
  })

  it.each(KEY_SETS)('a descriptor is rejected: %s', (_, field, jwks) => {
    expect(rejection(file1({ ...SERVICES, jwks }))).toContain(`providers[0].jwks${field}: `)
  })

  it.each([
    ['no JSON', 'canary', 'the file: '],
    ['a duplicate member', '{"version":1,"version":1,"providers":[]}', 'the file: '],
    ['no version', JSON.stringify({ providers: [USERS] }), 'version: '],
    ['another version', JSON.stringify({ version: 2, providers: [USERS] }), 'version: '],
    ['another member', JSON.stringify({ version: 1, providers: [USERS], canary: 1 }), 'the file: '],
    ['no provider', file1(), 'providers: '],
    [
      '65 keys',
      file1({ ...SERVICES, jwks: { keys: Array(65).fill({ kty: 'EC' }) } }),
      'the file: ',
    ],
    [
      '17 providers',
      file1(...Array.from({ length: 17 }, (_, i) => ({ ...USERS, name: `${i}`, issuer: `${i}` }))),
      'providers: ',
    ],
    ['one name for two', file1(USERS, { ...SERVICES, name: USERS.name }), 'providers: each name'],
    [
      'one issuer for two',
      file1(USERS, { ...SERVICES, issuer: USERS.issuer }),
      'providers: each issuer',
    ],
  ])('a descriptor is rejected: %s', (_, content, rule) => {
    expect(rejection(content)).toContain(rule)
  })
})

describe('a descriptor is read', () => {
  it('a descriptor is read with documented defaults', () => {
    expect(parse(file1(USERS))).toEqual([
      {
        name: 'canary-users',
        kind: 'user',
        issuer: 'https://canary.test/tenant',
        audience: 'https://api.canary.test',
        algorithms: ['RS256', 'ES256'],
        keys: { uri: 'https://canary.test/jwks.json?tenant=1' },
        requiredType: null,
        claims: { subject: ['sub'], roles: null, email: null },
        clockToleranceSeconds: 60,
        maximumLifetimeSeconds: 86_400,
      },
    ])
  })

  it('a descriptor is read with keys of its own and claims inside of others', () => {
    const [, services] = parse(file1(USERS, SERVICES))
    expect(services).toEqual({
      name: 'canary-services',
      kind: 'service',
      issuer: 'canary-services',
      audience: 'canary',
      algorithms: ['EdDSA'],
      keys: { document: JSON.stringify({ keys: [JWK] }) },
      requiredType: 'at+jwt',
      claims: {
        subject: ['client_id'],
        roles: ['realm_access', 'ro/les'],
        email: ['https://canary.test/m'],
      },
      clockToleranceSeconds: 0,
      maximumLifetimeSeconds: 300,
    })
  })

  it('a descriptor is read with keys at loopback over HTTP', () => {
    const [provider] = parse(file1({ ...USERS, jwksUri: 'http://127.0.0.1:8080/jwks' }))
    expect(provider?.keys).toEqual({ uri: 'http://127.0.0.1:8080/jwks' })
  })
})
