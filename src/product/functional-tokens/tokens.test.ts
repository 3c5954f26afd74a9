import { createHmac, createPublicKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeKey } from '../../../build/testing/providers/identity-providers.ts'
import {
  AUDIENCE,
  encodePart,
  ISSUER,
  type JwtIssuer,
  jwtIssuer,
  jwtProvider,
  signature,
} from '../../../build/testing/providers/jwt-issuers.ts'
import { isFault } from '../../errors/fault.ts'
import { Keyring } from '../../storage/keyring.ts'
import { TestSystem } from '../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { EnvironmentId } from '../../value/ids.ts'
import type { JwtProvider } from '../../value/jwt-providers.ts'
import { openJwtProviders } from './providers.ts'
import { FunctionalTokens } from './tokens.ts'

let users: JwtIssuer
let services: JwtIssuer
let system: TestSystem
let log: MemoryLog
let tokens: FunctionalTokens

const SERVICES = 'https://services.test'
const ENVIRONMENT = `env_${'0'.repeat(25)}1` as EnvironmentId
const KEYRING = new Keyring(
  {
    version: 1,
    keys: [{ id: 'first', key: new Uint8Array(32).fill(1), createdAtMicros: 0n }],
    active: 'first',
  },
  ENVIRONMENT,
)

beforeAll(async () => {
  users = await jwtIssuer()
  services = await jwtIssuer('RS256', { iss: SERVICES })
})

afterAll(() => Promise.all([users.close(), services.close()]))

beforeEach(async () => {
  system = new TestSystem()
  log = memoryLog()
  tokens = await tokensOf()
})

async function tokensOf(given: Partial<JwtProvider> = {}): Promise<FunctionalTokens> {
  const providers = [
    jwtProvider({ keys: { uri: users.jwksUri }, ...given }),
    jwtProvider({
      name: 'services',
      kind: 'service',
      issuer: SERVICES,
      algorithms: ['RS256', 'PS256'],
      keys: { document: JSON.stringify(services.jwks) },
    }),
  ]
  return new FunctionalTokens({
    providers: await openJwtProviders({ providers, system, log: log.log }),
    keyring: KEYRING,
    environmentId: ENVIRONMENT,
    system,
  })
}

const REFUSED = 'FUNCTIONAL_TOKEN_INVALID'
const now = () => Math.floor(system.nowMillis() / 1000)
const claims = (given: Record<string, unknown> = {}) => users.claims(system.nowMillis(), given)

async function outcome(token: string, by = tokens): Promise<unknown> {
  try {
    return JSON.parse((await by.verify(token)).identityText)
  } catch (error) {
    return isFault(error) ? error.code : String(error)
  }
}

const USER = { kind: 'user', subject: 'subject-1', issuer: ISSUER, roles: [] }

describe('a token of a provider is accepted', () => {
  it('and says who it is', async () => {
    expect(await outcome(await users.sign(claims()))).toEqual(USER)
    const service = await services.sign(services.claims(system.nowMillis(), { sub: 'billing' }))
    expect(await outcome(service)).toEqual({
      kind: 'service',
      subject: 'billing',
      issuer: SERVICES,
      roles: [],
    })
  })

  it.each<[string, () => Record<string, unknown>]>([
    ['its audience among others', () => ({ aud: ['https://other.test', AUDIENCE] })],
    ['a clock 60 s ahead of ours', () => ({ iat: now() + 60, nbf: now() + 60, exp: now() + 600 })],
    ['an end 59 s ago', () => ({ iat: now() - 600, exp: now() - 59 })],
    ['a life of an hour', () => ({ exp: now() + 3_600 })],
    ['claims that nobody knows', () => ({ nested: { a: [1, 2] }, azp: 'client' })],
  ])('with %s', async (_, given) => {
    expect(await outcome(await users.sign(claims(given())))).toEqual(USER)
  })

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['a list of roles', { roles: ['admin', 'b c'] }, { roles: ['admin', 'b c'] }],
    ['roles as a scope has them', { roles: ' read  write ' }, { roles: ['read', 'write'] }],
    ['an email', { email: 'a@b.test' }, { email: 'a@b.test' }],
    ['names of every object', { sub: 'constructor' }, { subject: 'constructor' }],
  ])('with %s', async (_, given, said) => {
    expect(await outcome(await users.sign(claims(given)))).toEqual({ ...USER, ...said })
  })

  it('with claims where the descriptor says that they are, and only there', async () => {
    const mapped = await tokensOf({
      claims: { subject: ['user', 'id'], roles: ['realm_access', 'roles'], email: null },
    })
    const given = { user: { id: 'u-1' }, realm_access: { roles: ['r'] }, roles: ['x'], email: 'e' }
    const said = { ...USER, subject: 'u-1', roles: ['r'] }
    expect(await outcome(await users.sign(claims(given)), mapped)).toEqual(said)
    for (const wrong of [{ ...given, user: 'u-1' }, { ...given, user: ['u-1'] }, {}]) {
      expect(await outcome(await users.sign(claims(wrong)), mapped)).toBe(REFUSED)
    }
    const claimed = { subject: ['sub'], roles: ['user', 'constructor'], email: ['toString'] }
    const inherited = await tokensOf({ claims: claimed })
    expect(await outcome(await users.sign(claims(given)), inherited)).toEqual(USER)
  })

  it('with each of the algorithms of its provider, by its own key alone', async () => {
    const pss = await jwtIssuer('PS256', { iss: SERVICES })
    // The keys say nothing of their algorithm, so each is one for both.
    const published = [
      { ...services.key.jwk, kid: 'key-1', alg: undefined },
      { ...pss.key.jwk, kid: 'key-2', alg: undefined },
    ]
    const both = await tokensOf({
      issuer: 'https://both.test',
      algorithms: ['RS256', 'PS256'],
      keys: { document: JSON.stringify({ keys: published }) },
    })
    const said = services.claims(system.nowMillis(), { iss: 'https://both.test' })
    const user = { kind: 'user', issuer: 'https://both.test' }
    expect(await outcome(await services.sign(said), both)).toMatchObject(user)
    expect(await outcome(await pss.sign(said, { kid: 'key-2' }), both)).toMatchObject(user)
    // The header says which algorithm it is, and the signature whether that is so.
    expect(await outcome(await services.sign(said, { alg: 'PS256' }), both)).toBe(REFUSED)
    expect(await outcome(await pss.sign(said), both)).toBe(REFUSED)
    // Without a name it could be either.
    expect(await outcome(await services.sign(said, { kid: undefined }), both)).toBe(REFUSED)
    await pss.close()
  })
})

const CLAIM_MUTATIONS: readonly (readonly [string, () => Record<string, unknown>])[] = [
  ['no issuer', () => ({ iss: undefined })],
  ['an unknown issuer', () => ({ iss: 'https://evil.test/tenant' })],
  ['the issuer with a slash behind it', () => ({ iss: `${ISSUER}/` })],
  ['the issuer in capitals', () => ({ iss: ISSUER.toUpperCase() })],
  ['the issuer in a list', () => ({ iss: [ISSUER] })],
  ['the issuer of the other provider', () => ({ iss: SERVICES })],
  ['an issuer of every object', () => ({ iss: 'constructor' })],
  ['no audience', () => ({ aud: undefined })],
  ['another audience', () => ({ aud: 'https://other.test' })],
  ['an audience that begins like ours', () => ({ aud: `${AUDIENCE}/` })],
  ['no audience in its list', () => ({ aud: [] })],
  ['an audience deeper in its list', () => ({ aud: [[AUDIENCE]] })],
  ['no end', () => ({ exp: undefined })],
  ['an end 60 s ago', () => ({ iat: now() - 600, exp: now() - 60 })],
  ['an end as text', () => ({ exp: String(now() + 600) })],
  ['an end before the epoch', () => ({ exp: -1 })],
  ['no begin', () => ({ iat: undefined })],
  ['a begin 61 s ahead', () => ({ iat: now() + 61, exp: now() + 600 })],
  ['a life of an hour and a second', () => ({ exp: now() + 3_601 })],
  ['not to be used for another 61 s', () => ({ nbf: now() + 61 })],
  ['not-before of null', () => ({ nbf: null })],
  ['no subject', () => ({ sub: undefined })],
  ['an empty subject', () => ({ sub: '' })],
  ['a subject that is a number', () => ({ sub: 7 })],
  ['a subject of 256 bytes', () => ({ sub: 'é'.repeat(128) })],
  ['a role that is a number', () => ({ roles: ['a', 1] })],
  ['roles in an object', () => ({ roles: { admin: true } })],
  ['roles of null', () => ({ roles: null })],
  ['an email that is a list', () => ({ email: ['a@b.test'] })],
]

const header = (given: object = {}) => ({ alg: 'ES256', typ: 'JWT', kid: 'key-1', ...given })
const hmac = (input: string, key: string | Buffer) =>
  encodeBase64Url(createHmac('sha256', key).update(input).digest())

describe('a token is refused', () => {
  it.each(CLAIM_MUTATIONS)('with %s', async (_, given) => {
    expect(await outcome(await users.sign(claims(given())))).toBe(REFUSED)
  })

  it.each<[string, object]>([
    ['no algorithm', { alg: undefined }],
    ['an algorithm in a list', { alg: ['ES256'] }],
    ['an algorithm of another provider', { alg: 'RS256' }],
    ['an algorithm that it does not use', { alg: 'ES384' }],
    ['an unknown key', { kid: 'key-2' }],
    ['an empty key name', { kid: '' }],
    ['a key name without end', { kid: 'k'.repeat(513) }],
    ['an extension that is critical', { crit: ['exp'], exp: 1 }],
    ['an empty list of extensions', { crit: [] }],
    ['an unencoded payload', { b64: false, crit: ['b64'] }],
    ['a header over its bound', { padding: 'x'.repeat(5_000) }],
  ])('with %s', async (_, given) => {
    expect(await outcome(await users.sign(claims(), given))).toBe(REFUSED)
  })

  it('without the required type', async () => {
    const typed = await tokensOf({ requiredType: 'at+jwt' })
    expect(await outcome(await users.sign(claims(), { typ: 'at+jwt' }), typed)).toEqual(USER)
    for (const typ of [undefined, 'JWT', 'AT+JWT', 'application/at+jwt']) {
      expect(await outcome(await users.sign(claims(), { typ }), typed)).toBe(REFUSED)
    }
  })

  it.each<[string, () => string | Promise<string>]>([
    ['alg none and no signature', () => `${encodePart(header({ alg: 'none' }))}.${body()}.`],
    ['alg None', () => `${encodePart(header({ alg: 'None' }))}.${body()}.AA`],
    ['a claim that is there twice', () => users.sign(twice())],
    ['an algorithm that is there twice', () => users.sign(claims(), twiceAlgorithm())],
    ['a __proto__', () => users.sign(JSON.stringify(claims()).replace('{', '{"__proto__":{},'))],
    ['claims that are a list', () => users.sign('[]')],
    ['a key of its own embedded', () => foreign((jwk) => ({ jwk }))],
    ['a URL of keys of its own', () => foreign(() => ({ jku: users.jwksUri }))],
    ['a foreign signature', () => foreign(() => ({}))],
    ['no signature', async () => (await good()).replace(/[^.]+$/, '')],
    ['a signature of zeroes', async () => (await good()).replace(/[^.]+$/, 'A'.repeat(86))],
    ['padding', async () => `${await good()}==`],
    ['a blank', async () => `${await good()} `],
    ['a fourth part', async () => `${await good()}.AA`],
    ['five parts', () => 'a.b.c.d.e'],
    ['nothing', () => ''],
    ['more than 16 KiB', () => users.sign(claims({ padding: 'x'.repeat(12_300) }))],
  ])('with %s', async (_, make) => {
    expect(await outcome(await make())).toBe(REFUSED)
  })

  it('that is an HMAC keyed with any form of a public key', async () => {
    const published = createPublicKey({ key: { ...services.key.jwk }, format: 'jwk' })
    const forms = (['spki', 'pkcs1'] as const).flatMap((type) => [
      published.export({ type, format: 'pem' }),
      published.export({ type, format: 'der' }),
    ])
    forms.push(JSON.stringify(services.key.jwk), Buffer.from(services.key.jwk.n!, 'base64url'))
    const said = encodePart(services.claims(system.nowMillis()))
    for (const alg of ['HS256', 'RS256', 'PS256']) {
      for (const form of forms) {
        const input = `${encodePart(header({ alg }))}.${said}`
        expect(await outcome(`${input}.${hmac(input, form)}`)).toBe(REFUSED)
      }
    }
  })

  it('whose text is never in the log', async () => {
    const token = await users.sign(claims({ sub: 'canary-subject', aud: 'canary-audience' }))
    let detail = ''
    await tokens.verify(token).catch((error) => {
      detail = `${error.message}${error.detail}${JSON.stringify(error)}`
    })
    expect(`${detail}${log.text()}`).toContain('aud')
    for (const secret of ['canary', ...token.split('.')]) {
      expect(`${detail}${log.text()}`).not.toContain(secret)
    }
  })

  const body = () => encodePart(claims())
  const good = () => users.sign(claims())
  const twice = () => JSON.stringify(claims()).replace('{', '{"sub":"admin",')
  const twiceAlgorithm = () => JSON.stringify(header()).replace('{', '{"alg":"none",')
  const foreign = async (more: (jwk: unknown) => object) => {
    const own = await makeKey('key-1')
    const input = `${encodePart(header(more(own.jwk)))}.${body()}`
    return `${input}.${await signature(own, input)}`
  }
})

describe('keys', () => {
  it('overlap while they are rotated, and the old one ends with the ten minutes', async () => {
    const saved = [users.key, users.jwks] as const
    const before = await users.sign(claims())
    expect(await outcome(before)).toEqual(USER)
    system.advance(30_000)
    const next = await makeKey('key-2')
    users.jwks = { keys: [users.key.jwk, next.jwk] }
    users.key = next
    const after = await users.sign(claims())
    expect([await outcome(before), await outcome(after)]).toEqual([USER, USER])
    users.jwks = { keys: [next.jwk] }
    system.advance(600_000)
    // Whoever was verified by a key that is withdrawn is refused, known or not.
    expect([await outcome(before), await outcome(after)]).toEqual([REFUSED, USER])
    ;[users.key, users.jwks] = saved
  })

  it('that were published are good for a day while nobody answers', async () => {
    expect(await outcome(await users.sign(claims()))).toEqual(USER)
    users.intercept = (response) => response.writeHead(500).end()
    system.advance(86_400_000 - 1)
    expect(await outcome(await users.sign(claims()))).toEqual(USER)
    system.advance(1)
    expect(await outcome(await users.sign(claims()))).toBe('UNAVAILABLE')
    users.intercept = null
    system.advance(5_000)
    expect(await outcome(await users.sign(claims()))).toEqual(USER)
  })

  it('are asked for by no token that fails without them', async () => {
    const asked = users.requests
    for (const given of [{ aud: 'x' }, { exp: 1 }, { sub: 7 }, { iss: 'x' }]) {
      expect(await outcome(await users.sign(claims(given)))).toBe(REFUSED)
    }
    for (const given of [{ alg: 'RS256' }, { alg: 'none' }, { crit: ['exp'] }, { b64: true }]) {
      expect(await outcome(await users.sign(claims(), given))).toBe(REFUSED)
    }
    expect(users.requests).toBe(asked)
  })

  it.each([
    ['of another type', { kty: 'RSA', n: 'AQAB', e: 'AQAB' }],
    ['of another algorithm', { kty: 'EC', crv: 'P-384', x: 'AA', y: 'AA' }],
    ['of no curve', { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }],
  ])('%s in the descriptor end the start', async (_, key) => {
    const document = JSON.stringify({ keys: [key] })
    await expect(tokensOf({ keys: { document } })).rejects.toMatchObject({
      code: 'SERVER_CONFIGURATION_INVALID',
    })
  })
})

describe('a token that was verified', () => {
  it('is remembered, and refused from its end on', async () => {
    const token = await users.sign(claims())
    expect(tokens.knows(token)).toBe(false)
    expect(await outcome(token)).toEqual(USER)
    expect(tokens.knows(token)).toBe(true)
    system.advance(659_000)
    expect(await outcome(token)).toEqual(USER)
    system.advance(1_000)
    expect(await outcome(token)).toBe(REFUSED)
    // Its holder was who it is: a burst of calls with it is no guessing.
    expect(tokens.knows(token)).toBe(true)
  })

  it('says nothing about one that is almost the same', async () => {
    const token = await users.sign(claims())
    await outcome(token)
    const [head, , end] = token.split('.')
    const forged = `${head}.${encodePart(claims({ sub: 'admin' }))}.${end}`
    expect(await outcome(forged)).toBe(REFUSED)
    expect(tokens.knows(forged)).toBe(false)
  })
})
