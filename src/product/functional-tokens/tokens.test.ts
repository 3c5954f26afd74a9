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

const REFUSED = 'FUNCTIONAL_TOKEN_INVALID'
/** The whole detail: a constant, so it holds nothing of the token. */
const rejectedBy = (check: TokenCheck) => `functional token: ${TOKEN_REJECTIONS[check]}`

/** Answers the detail of the rejection; the code where it is none. */
async function reason(token: string, by = tokens): Promise<unknown> {
  try {
    await by.verify(token)
    return 'accepted'
  } catch (error) {
    if (!isFault(error)) return String(error)
    return error.code === REFUSED ? error.detail : error.code
  }
}
const now = () => Math.floor(system.nowMillis() / 1000)
const claims = (given: Record<string, unknown> = {}) => users.claims(system.nowMillis(), given)

async function outcome(token: string, by = tokens): Promise<unknown> {
  try {
    return JSON.parse((await by.verify(token)).identityText)
  } catch (error) {
    return isFault(error) ? error.code : String(error)
  }
}

/** Two units of a string each. */
const LONGEST = '\u{1f600}'.repeat(255)
const ROLES = Array.from({ length: 256 }, (_, i) => `r${i}`)
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
    ['255 characters of subject', { sub: LONGEST }, { subject: LONGEST }],
    ['256 roles', { roles: ROLES }, { roles: ROLES }],
    ['256 roles as a scope', { roles: ROLES.join(' ') }, { roles: ROLES }],
    ['roles of null as without roles', { roles: null }, {}],
    ['an email of null as without email', { email: null }, {}],
    ['a thousand groups that nobody asked for', { groups: Array(1_000).fill('g') }, {}],
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

/** A list in a list, and so on. */
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])

type ClaimMutation = readonly [string, TokenCheck, () => Record<string, unknown>]
const CLAIM_MUTATIONS: readonly ClaimMutation[] = [
  ['no issuer', 'issuer', () => ({ iss: undefined })],
  ['an unknown issuer', 'issuer', () => ({ iss: 'https://evil.test/tenant' })],
  ['the issuer with a slash behind it', 'issuer', () => ({ iss: `${ISSUER}/` })],
  ['the issuer in capitals', 'issuer', () => ({ iss: ISSUER.toUpperCase() })],
  ['the issuer in a list', 'issuer', () => ({ iss: [ISSUER] })],
  ['the issuer of the other provider', 'algorithm', () => ({ iss: SERVICES })],
  ['an issuer of every object', 'issuer', () => ({ iss: 'constructor' })],
  ['no audience', 'audience', () => ({ aud: undefined })],
  ['another audience', 'audience', () => ({ aud: 'https://other.test' })],
  ['an audience that begins like ours', 'audience', () => ({ aud: `${AUDIENCE}/` })],
  ['no audience in its list', 'audience', () => ({ aud: [] })],
  ['an audience deeper in its list', 'audience', () => ({ aud: [[AUDIENCE]] })],
  ['no end', 'expiryForm', () => ({ exp: undefined })],
  ['an end 60 s ago', 'expired', () => ({ iat: now() - 600, exp: now() - 60 })],
  ['an end as text', 'expiryForm', () => ({ exp: String(now() + 600) })],
  ['an end before the epoch', 'expiryForm', () => ({ exp: -1 })],
  ['no begin', 'issuedAtForm', () => ({ iat: undefined })],
  ['a begin 61 s ahead', 'issuedInFuture', () => ({ iat: now() + 61, exp: now() + 600 })],
  ['a life of an hour and a second', 'lifetime', () => ({ exp: now() + 3_601 })],
  ['not to be used for another 61 s', 'notBefore', () => ({ nbf: now() + 61 })],
  ['not-before of null', 'notBeforeForm', () => ({ nbf: null })],
  ['no subject', 'subject', () => ({ sub: undefined })],
  ['an empty subject', 'subject', () => ({ sub: '' })],
  ['a subject that is a number', 'subject', () => ({ sub: 7 })],
  ['a subject of null', 'subject', () => ({ sub: null })],
  ['a subject of 256 characters', 'subjectLength', () => ({ sub: 'é'.repeat(256) })],
  ['a role that is a number', 'roles', () => ({ roles: ['a', 1] })],
  ['roles in an object', 'roles', () => ({ roles: { admin: true } })],
  ['257 roles', 'rolesCount', () => ({ roles: Array(257).fill('r') })],
  ['257 roles as a scope', 'rolesCount', () => ({ roles: 'r '.repeat(257) })],
  ['claims of 17 levels', 'claims', () => ({ deep: nested(16) })],
  ['an email that is a list', 'email', () => ({ email: ['a@b.test'] })],
]

const header = (given: object = {}) => ({ alg: 'ES256', typ: 'JWT', kid: 'key-1', ...given })
const hmac = (input: string, key: string | Buffer) =>
  encodeBase64Url(createHmac('sha256', key).update(input).digest())

describe('a token is refused', () => {
  it.each(CLAIM_MUTATIONS)('with %s, by the check %s', async (_, check, given) => {
    expect(await reason(await users.sign(claims(given())))).toBe(rejectedBy(check))
  })

  it.each<[string, TokenCheck, object]>([
    ['no algorithm', 'algorithm', { alg: undefined }],
    ['an algorithm in a list', 'algorithm', { alg: ['ES256'] }],
    ['an algorithm of another provider', 'algorithm', { alg: 'RS256' }],
    ['an algorithm that it does not use', 'algorithm', { alg: 'ES384' }],
    ['an unknown key', 'key', { kid: 'key-2' }],
    ['an empty key name', 'keyName', { kid: '' }],
    ['a key name without end', 'keyName', { kid: 'k'.repeat(513) }],
    ['an extension that is critical', 'critical', { crit: ['exp'], exp: 1 }],
    ['an empty list of extensions', 'critical', { crit: [] }],
    ['a payload that says it is encoded', 'unencoded', { b64: true }],
    ['an unencoded payload', 'critical', { b64: false, crit: ['b64'] }],
    ['a header over its bound', 'headerLength', { padding: 'x'.repeat(5_000) }],
  ])('with %s, by the check %s', async (_, check, given) => {
    expect(await reason(await users.sign(claims(), given))).toBe(rejectedBy(check))
  })

  it('without the required type', async () => {
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
    ['a claim that is there twice', 'claims', () => users.sign(twice())],
    ['an algorithm that is there twice', 'header', () => users.sign(claims(), twiceAlgorithm())],
    [
      'a __proto__',
      'claims',
      () => users.sign(JSON.stringify(claims()).replace('{', '{"__proto__":{},')),
    ],
    ['claims that are a list', 'claims', () => users.sign('[]')],
    ['a key of its own embedded', 'signature', () => foreign((jwk) => ({ jwk }))],
    ['a URL of keys of its own', 'signature', () => foreign(() => ({ jku: users.jwksUri }))],
    ['a foreign signature', 'signature', () => foreign(() => ({}))],
    ['no signature', 'signature', async () => (await good()).replace(/[^.]+$/, '')],
    [
      'a signature of zeroes',
      'signature',
      async () => (await good()).replace(/[^.]+$/, 'A'.repeat(86)),
    ],
    ['padding', 'form', async () => `${await good()}==`],
    ['a blank', 'form', async () => `${await good()} `],
    ['a fourth part', 'form', async () => `${await good()}.AA`],
    ['five parts', 'form', () => 'a.b.c.d.e'],
    ['nothing', 'form', () => ''],
    ['more than 16 KiB', 'length', () => users.sign(claims({ padding: 'x'.repeat(12_300) }))],
  ])('with %s, by the check %s', async (_, check, make) => {
    expect(await reason(await make())).toBe(rejectedBy(check))
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
