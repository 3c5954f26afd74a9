import { createHmac, createPublicKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeKey } from '../../../testing/providers/identity-providers.ts'
import {
  AUDIENCE,
  encodePart,
  ISSUER,
  type JwtIssuer,
  jwtIssuer,
  jwtProvider,
  signature,
} from '../../../testing/providers/jwt-issuers.ts'
import { isFault } from '../../errors/fault.ts'
import { TOKEN_REJECTIONS, type TokenCheck } from '../../identity/jwt/rejections.ts'
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
    providers: await openJwtProviders({ providers, control: null, system, log: log.log }),
    keyring: KEYRING,
    environmentId: ENVIRONMENT,
    system,
  })
}

const REJECTED = 'FUNCTIONAL_TOKEN_INVALID'
/** The complete detail of a rejection: a constant, so it repeats no part of the token. */
const rejectedBy = (check: TokenCheck) => `functional token: ${TOKEN_REJECTIONS[check]}`

/** Returns the detail of the rejection, or the code of another failure. */
async function reason(token: string, verifier = tokens): Promise<unknown> {
  try {
    await verifier.verify(token)
    return 'accepted'
  } catch (error) {
    if (!isFault(error)) return String(error)
    return error.code === REJECTED ? error.detail : error.code
  }
}
const now = () => Math.floor(system.nowMillis() / 1000)
const claims = (given: Record<string, unknown> = {}) => users.claims(system.nowMillis(), given)

async function outcome(token: string, verifier = tokens): Promise<unknown> {
  try {
    return JSON.parse((await verifier.verify(token)).identityText)
  } catch (error) {
    return isFault(error) ? error.code : String(error)
  }
}

/** 255 characters of two UTF-16 code units each. */
const LONGEST = '\u{1f600}'.repeat(255)
const ROLES = Array.from({ length: 256 }, (_, i) => `r${i}`)
const USER = { kind: 'user', subject: 'subject-1', issuer: ISSUER, roles: [] }

describe('a token of a provider is accepted', () => {
  it('a token of a provider is accepted and mapped to its identity', async () => {
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
    [
      'a clock 60 s ahead of the server',
      () => ({ iat: now() + 60, nbf: now() + 60, exp: now() + 600 }),
    ],
    ['an expiry 59 s ago', () => ({ iat: now() - 600, exp: now() - 59 })],
    ['a lifetime of an hour', () => ({ exp: now() + 3_600 })],
    ['unknown claims', () => ({ nested: { a: [1, 2] }, azp: 'client' })],
  ])('a token with %s is accepted', async (_, given) => {
    expect(await outcome(await users.sign(claims(given())))).toEqual(USER)
  })

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['a list of roles', { roles: ['admin', 'b c'] }, { roles: ['admin', 'b c'] }],
    ['roles in the form of a scope', { roles: ' read  write ' }, { roles: ['read', 'write'] }],
    ['an email', { email: 'a@b.test' }, { email: 'a@b.test' }],
    ['a subject of 255 characters', { sub: LONGEST }, { subject: LONGEST }],
    ['256 roles', { roles: ROLES }, { roles: ROLES }],
    ['256 roles in the form of a scope', { roles: ROLES.join(' ') }, { roles: ROLES }],
    ['null in place of roles', { roles: null }, {}],
    ['null in place of an email', { email: null }, {}],
    ['a thousand groups that are not mapped', { groups: Array(1_000).fill('g') }, {}],
    [
      'a subject named as an inherited property',
      { sub: 'constructor' },
      { subject: 'constructor' },
    ],
  ])('a token with %s is accepted and mapped', async (_, given, mapped) => {
    expect(await outcome(await users.sign(claims(given)))).toEqual({ ...USER, ...mapped })
  })

  it('claims are read only at the paths of the descriptor', async () => {
    const mapped = await tokensOf({
      claims: { subject: ['user', 'id'], roles: ['realm_access', 'roles'], email: null },
    })
    const given = { user: { id: 'u-1' }, realm_access: { roles: ['r'] }, roles: ['x'], email: 'e' }
    const identity = { ...USER, subject: 'u-1', roles: ['r'] }
    expect(await outcome(await users.sign(claims(given)), mapped)).toEqual(identity)
    for (const wrong of [{ ...given, user: 'u-1' }, { ...given, user: ['u-1'] }, {}]) {
      expect(await outcome(await users.sign(claims(wrong)), mapped)).toBe(REJECTED)
    }
    const claimed = { subject: ['sub'], roles: ['user', 'constructor'], email: ['toString'] }
    const inherited = await tokensOf({ claims: claimed })
    expect(await outcome(await users.sign(claims(given)), inherited)).toEqual(USER)
  })

  it('a token is accepted under each algorithm by the key of that algorithm only', async () => {
    const pss = await jwtIssuer('PS256', { iss: SERVICES })
    // The keys name no algorithm, so each may be used for both.
    const published = [
      { ...services.key.jwk, kid: 'key-1', alg: undefined },
      { ...pss.key.jwk, kid: 'key-2', alg: undefined },
    ]
    const both = await tokensOf({
      issuer: 'https://both.test',
      algorithms: ['RS256', 'PS256'],
      keys: { document: JSON.stringify({ keys: published }) },
    })
    const given = services.claims(system.nowMillis(), { iss: 'https://both.test' })
    const user = { kind: 'user', issuer: 'https://both.test' }
    expect(await outcome(await services.sign(given), both)).toMatchObject(user)
    expect(await outcome(await pss.sign(given, { kid: 'key-2' }), both)).toMatchObject(user)
    // The header names the algorithm, and only a signature of that algorithm matches.
    expect(await outcome(await services.sign(given, { alg: 'PS256' }), both)).toBe(REJECTED)
    expect(await outcome(await pss.sign(given), both)).toBe(REJECTED)
    // Without a key ID either key could be meant.
    expect(await outcome(await services.sign(given, { kid: undefined }), both)).toBe(REJECTED)
    await pss.close()
  })
})

/** Returns a list nested in `levels` lists. */
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])

type ClaimMutation = readonly [string, TokenCheck, () => Record<string, unknown>]
const CLAIM_MUTATIONS: readonly ClaimMutation[] = [
  ['no issuer', 'issuer', () => ({ iss: undefined })],
  ['an unknown issuer', 'issuer', () => ({ iss: 'https://evil.test/tenant' })],
  ['the issuer with a trailing slash', 'issuer', () => ({ iss: `${ISSUER}/` })],
  ['the issuer in upper case', 'issuer', () => ({ iss: ISSUER.toUpperCase() })],
  ['the issuer in a list', 'issuer', () => ({ iss: [ISSUER] })],
  ['the issuer of the other provider', 'algorithm', () => ({ iss: SERVICES })],
  ['an issuer named as an inherited property', 'issuer', () => ({ iss: 'constructor' })],
  ['no audience', 'audience', () => ({ aud: undefined })],
  ['another audience', 'audience', () => ({ aud: 'https://other.test' })],
  ['an audience that extends the expected one', 'audience', () => ({ aud: `${AUDIENCE}/` })],
  ['an empty list of audiences', 'audience', () => ({ aud: [] })],
  ['an audience in a nested list', 'audience', () => ({ aud: [[AUDIENCE]] })],
  ['no expiry', 'expiryForm', () => ({ exp: undefined })],
  ['an expiry 60 s ago', 'expired', () => ({ iat: now() - 600, exp: now() - 60 })],
  ['an expiry as a string', 'expiryForm', () => ({ exp: String(now() + 600) })],
  ['an expiry before the epoch', 'expiryForm', () => ({ exp: -1 })],
  ['no time of issue', 'issuedAtForm', () => ({ iat: undefined })],
  ['a time of issue 61 s ahead', 'issuedInFuture', () => ({ iat: now() + 61, exp: now() + 600 })],
  ['a lifetime of an hour and a second', 'lifetime', () => ({ exp: now() + 3_601 })],
  ['a not-before 61 s ahead', 'notBefore', () => ({ nbf: now() + 61 })],
  ['a not-before of null', 'notBeforeForm', () => ({ nbf: null })],
  ['no subject', 'subject', () => ({ sub: undefined })],
  ['an empty subject', 'subject', () => ({ sub: '' })],
  ['a subject that is a number', 'subject', () => ({ sub: 7 })],
  ['a subject of null', 'subject', () => ({ sub: null })],
  ['a subject of 256 characters', 'subjectLength', () => ({ sub: 'é'.repeat(256) })],
  ['a role that is a number', 'roles', () => ({ roles: ['a', 1] })],
  ['roles in an object', 'roles', () => ({ roles: { admin: true } })],
  ['257 roles', 'rolesCount', () => ({ roles: Array(257).fill('r') })],
  ['257 roles in the form of a scope', 'rolesCount', () => ({ roles: 'r '.repeat(257) })],
  ['claims of 17 levels', 'claims', () => ({ deep: nested(16) })],
  ['an email that is a list', 'email', () => ({ email: ['a@b.test'] })],
]

const header = (given: object = {}) => ({ alg: 'ES256', typ: 'JWT', kid: 'key-1', ...given })
const hmac = (input: string, key: string | Buffer) =>
  encodeBase64Url(createHmac('sha256', key).update(input).digest())

describe('a token is rejected', () => {
  it.each(CLAIM_MUTATIONS)(
    'a token with %s is rejected by the check %s',
    async (_, check, given) => {
      expect(await reason(await users.sign(claims(given())))).toBe(rejectedBy(check))
    },
  )

  it.each<[string, TokenCheck, object]>([
    ['no algorithm', 'algorithm', { alg: undefined }],
    ['an algorithm in a list', 'algorithm', { alg: ['ES256'] }],
    ['an algorithm of another provider', 'algorithm', { alg: 'RS256' }],
    ['an algorithm that it does not use', 'algorithm', { alg: 'ES384' }],
    ['an unknown key', 'key', { kid: 'key-2' }],
    ['an empty key name', 'keyName', { kid: '' }],
    ['a key name of 513 characters', 'keyName', { kid: 'k'.repeat(513) }],
    ['a critical extension', 'critical', { crit: ['exp'], exp: 1 }],
    ['an empty list of extensions', 'critical', { crit: [] }],
    ['a header b64 of true', 'unencoded', { b64: true }],
    ['an unencoded payload', 'critical', { b64: false, crit: ['b64'] }],
    ['a header over its bound', 'headerLength', { padding: 'x'.repeat(5_000) }],
  ])('a token with %s is rejected by the check %s', async (_, check, given) => {
    expect(await reason(await users.sign(claims(), given))).toBe(rejectedBy(check))
  })

  it('a token without the required type is rejected', async () => {
    const typed = await tokensOf({ requiredType: 'at+jwt' })
    expect(await outcome(await users.sign(claims(), { typ: 'at+jwt' }), typed)).toEqual(USER)
    for (const typ of [undefined, 'JWT', 'AT+JWT', 'application/at+jwt']) {
      expect(await reason(await users.sign(claims(), { typ }), typed)).toBe(rejectedBy('type'))
    }
  })

  it.each<[string, TokenCheck, () => string | Promise<string>]>([
    [
      'alg none and no signature',
      'algorithm',
      () => `${encodePart(header({ alg: 'none' }))}.${body()}.`,
    ],
    ['alg None', 'algorithm', () => `${encodePart(header({ alg: 'None' }))}.${body()}.AA`],
    ['a duplicate claim', 'claims', () => users.sign(duplicateClaim())],
    ['a duplicate algorithm', 'header', () => users.sign(claims(), duplicateAlgorithm())],
    [
      'a __proto__',
      'claims',
      () => users.sign(JSON.stringify(claims()).replace('{', '{"__proto__":{},')),
    ],
    ['claims that are a list', 'claims', () => users.sign('[]')],
    ['an embedded key', 'signature', () => foreign((jwk) => ({ jwk }))],
    ['a URL of a key set', 'signature', () => foreign(() => ({ jku: users.jwksUri }))],
    ['a foreign signature', 'signature', () => foreign(() => ({}))],
    ['no signature', 'signature', async () => (await good()).replace(/[^.]+$/, '')],
    [
      'a signature of zeroes',
      'signature',
      async () => (await good()).replace(/[^.]+$/, 'A'.repeat(86)),
    ],
    ['padding', 'form', async () => `${await good()}==`],
    ['a trailing space', 'form', async () => `${await good()} `],
    ['a fourth part', 'form', async () => `${await good()}.AA`],
    ['five parts', 'form', () => 'a.b.c.d.e'],
    ['nothing', 'form', () => ''],
    ['more than 16 KiB', 'length', () => users.sign(claims({ padding: 'x'.repeat(12_300) }))],
  ])('a token with %s is rejected by the check %s', async (_, check, make) => {
    expect(await reason(await make())).toBe(rejectedBy(check))
  })

  it('a token with an HMAC that is keyed with any form of a public key is rejected', async () => {
    const published = createPublicKey({ key: { ...services.key.jwk }, format: 'jwk' })
    const forms = (['spki', 'pkcs1'] as const).flatMap((type) => [
      published.export({ type, format: 'pem' }),
      published.export({ type, format: 'der' }),
    ])
    forms.push(JSON.stringify(services.key.jwk), Buffer.from(services.key.jwk.n!, 'base64url'))
    const payload = encodePart(services.claims(system.nowMillis()))
    for (const alg of ['HS256', 'RS256', 'PS256']) {
      for (const form of forms) {
        const input = `${encodePart(header({ alg }))}.${payload}`
        expect(await outcome(`${input}.${hmac(input, form)}`)).toBe(REJECTED)
      }
    }
  })

  it('the log contains no part of a rejected token', async () => {
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
  const duplicateClaim = () => JSON.stringify(claims()).replace('{', '{"sub":"admin",')
  const duplicateAlgorithm = () => JSON.stringify(header()).replace('{', '{"alg":"none",')
  const foreign = async (more: (jwk: unknown) => object) => {
    const own = await makeKey('key-1')
    const input = `${encodePart(header(more(own.jwk)))}.${body()}`
    return `${input}.${await signature(own, input)}`
  }
})

describe('keys', () => {
  it('a token that fails an earlier check fetches no keys', async () => {
    const before = users.requests
    for (const given of [{ aud: 'x' }, { exp: 1 }, { sub: 7 }, { iss: 'x' }]) {
      expect(await outcome(await users.sign(claims(given)))).toBe(REJECTED)
    }
    for (const given of [{ alg: 'RS256' }, { alg: 'none' }, { crit: ['exp'] }, { b64: true }]) {
      expect(await outcome(await users.sign(claims(), given))).toBe(REJECTED)
    }
    expect(users.requests).toBe(before)
  })

  it.each([
    ['of another type', { kty: 'RSA', n: 'AQAB', e: 'AQAB' }],
    ['of another algorithm', { kty: 'EC', crv: 'P-384', x: 'AA', y: 'AA' }],
    ['of no curve', { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }],
  ])('keys %s in the descriptor fail the start', async (_, key) => {
    const document = JSON.stringify({ keys: [key] })
    await expect(tokensOf({ keys: { document } })).rejects.toMatchObject({
      code: 'SERVER_CONFIGURATION_INVALID',
    })
  })
})

describe('a token that was verified', () => {
  it('a verified token is cached, and rejected once it expired', async () => {
    const token = await users.sign(claims())
    expect(tokens.knows(token)).toBe(false)
    expect(await outcome(token)).toEqual(USER)
    expect(tokens.knows(token)).toBe(true)
    system.advance(659_000)
    expect(await outcome(token)).toEqual(USER)
    system.advance(1_000)
    expect(await outcome(token)).toBe(REJECTED)
    // The token was valid once, so that repeated calls with it do not count as guessing.
    expect(tokens.knows(token)).toBe(true)
  })

  it('a forged variant of a verified token is rejected', async () => {
    const token = await users.sign(claims())
    await outcome(token)
    const [head, , end] = token.split('.')
    const forged = `${head}.${encodePart(claims({ sub: 'admin' }))}.${end}`
    expect(await outcome(forged)).toBe(REJECTED)
    expect(tokens.knows(forged)).toBe(false)
  })
})
