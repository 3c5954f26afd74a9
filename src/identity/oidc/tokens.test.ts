import { createHmac, createPublicKey, generateKeyPairSync, sign as signBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  makeKey,
  PROVIDER,
  type TestProvider,
  testProvider,
} from '../../../testing/providers/identity-providers.ts'
import { isFault } from '../../errors/fault.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { OidcAlgorithm } from './provider.ts'
import { providerKeys } from './provider-keys.ts'
import { type TokenVerifier, verifyToken } from './tokens.ts'

let idp: TestProvider
let system: TestSystem
let verifier: TokenVerifier

beforeAll(async () => {
  idp = await testProvider()
})

afterAll(() => idp.close())

beforeEach(() => {
  system = new TestSystem()
  verifier = verifierFor()
})

function verifierFor(given: Partial<typeof PROVIDER> = {}): TokenVerifier {
  const provider = { ...PROVIDER, ...given }
  const { log } = memoryLog()
  const keys = providerKeys({ provider, system, log, network: idp.network })
  return { provider, system, keys }
}

const now = () => Math.floor(system.nowMillis() / 1000)
const claims = (given: Record<string, unknown> = {}) => idp.claims(system.nowMillis(), given)
const part = (json: unknown) => encodeBase64Url(new TextEncoder().encode(JSON.stringify(json)))

async function outcome(token: string, by = verifier): Promise<string> {
  try {
    return (await verifyToken(by, token)).subject
  } catch (error) {
    return isFault(error) ? error.code : String(error)
  }
}

const REJECTED = 'PLATFORM_AUTHENTICATION_FAILED'

describe('a token is accepted', () => {
  it('a token is accepted as the provider issues it', async () => {
    expect(await outcome(await idp.sign(claims()))).toBe('subject-1')
  })

  it.each<[string, () => Record<string, unknown>]>([
    ['its audience alone in a list', () => ({ aud: [PROVIDER.audience] })],
    ['a clock that is 60 s ahead', () => ({ iat: now() + 60, nbf: now() + 60 })],
    ['a life of 24 hours', () => ({ exp: now() + 86_400 })],
    ['one second left', () => ({ iat: now() - 600, exp: now() + 1 })],
    ['times with fractions', () => ({ iat: now() - 0.5, exp: now() + 0.5 })],
    ['unknown claims', () => ({ nested: { a: [1, 2] }, azp: 'client' })],
  ])('a token is accepted with %s', async (_, given) => {
    expect(await outcome(await idp.sign(claims(given())))).toBe('subject-1')
  })

  it('a token is accepted with a subject of 255 bytes', async () => {
    const sub = `${'é'.repeat(127)}x`
    expect(await outcome(await idp.sign(claims({ sub })))).toBe(sub)
  })

  it('a token is accepted without a key name where one key is published', async () => {
    expect(await outcome(await idp.sign(claims(), { kid: undefined }))).toBe('subject-1')
  })

  it('a token is accepted with any type where none is configured', async () => {
    const open = verifierFor({ requiredType: null })
    for (const typ of [undefined, 'at+jwt', 'JWT']) {
      expect(await outcome(await idp.sign(claims(), { typ }), open)).toBe('subject-1')
    }
  })

  it.each<OidcAlgorithm>(['RS256', 'PS256', 'EdDSA'])('signed by %s', async (algorithm) => {
    const key = await makeKey('other', algorithm)
    const saved = [idp.key, idp.jwks] as const
    idp.key = key
    idp.jwks = { keys: [key.jwk] }
    const token = await idp.sign(claims(), { alg: algorithm })
    expect(await outcome(token, verifierFor({ algorithm }))).toBe('subject-1')
    ;[idp.key, idp.jwks] = saved
    expect(await outcome(token)).toBe(REJECTED)
  })
})

/** Single changes of the token that is accepted above. */
const CLAIM_MUTATIONS: readonly (readonly [string, () => Record<string, unknown>])[] = [
  ['no issuer', () => ({ iss: undefined })],
  ['another issuer', () => ({ iss: 'https://evil.test/tenant' })],
  ['the issuer with a slash behind it', () => ({ iss: `${PROVIDER.issuer}/` })],
  ['the issuer in capitals', () => ({ iss: 'https://IDP.test/tenant' })],
  ['the issuer in a list', () => ({ iss: [PROVIDER.issuer] })],
  ['no audience', () => ({ aud: undefined })],
  ['another audience', () => ({ aud: 'https://other.example.com' })],
  ['an audience with the configured one as prefix', () => ({ aud: `${PROVIDER.audience}/` })],
  ['two audiences', () => ({ aud: [PROVIDER.audience, 'https://other.example.com'] })],
  ['our audience twice', () => ({ aud: [PROVIDER.audience, PROVIDER.audience] })],
  ['an empty list of audiences', () => ({ aud: [] })],
  ['an audience inside of an object', () => ({ aud: { 0: PROVIDER.audience, length: 1 } })],
  ['no end', () => ({ exp: undefined })],
  ['an end now', () => ({ iat: now() - 60, exp: now() })],
  ['an end one second ago', () => ({ iat: now() - 60, exp: now() - 1 })],
  ['an end as text', () => ({ exp: String(now() + 600) })],
  ['an end of null', () => ({ exp: null })],
  ['an end before the epoch', () => ({ exp: -1 })],
  ['no begin', () => ({ iat: undefined })],
  ['a begin 61 s ahead', () => ({ iat: now() + 61, exp: now() + 600 })],
  ['a begin as text', () => ({ iat: String(now()) })],
  ['a life of 24 hours and a second', () => ({ exp: now() + 86_401 })],
  ['a life that began years ago', () => ({ iat: 1, exp: now() + 600 })],
  ['not to be used for another 61 s', () => ({ nbf: now() + 61 })],
  ['not-before as text', () => ({ nbf: '0' })],
  ['not-before of null', () => ({ nbf: null })],
  ['no discriminator', () => ({ token_use: undefined })],
  ['another discriminator', () => ({ token_use: 'customer' })],
  ['the discriminator in a list', () => ({ token_use: ['operator'] })],
  ['the discriminator in capitals', () => ({ token_use: 'OPERATOR' })],
  ['no subject', () => ({ sub: undefined })],
  ['an empty subject', () => ({ sub: '' })],
  ['a subject that is a number', () => ({ sub: 7 })],
  ['a subject of null', () => ({ sub: null })],
  ['a subject of 256 bytes', () => ({ sub: 'x'.repeat(256) })],
]

const HEADER_MUTATIONS: readonly (readonly [string, Record<string, unknown>])[] = [
  ['no type', { typ: undefined }],
  ['another type', { typ: 'at+jwt' }],
  ['the type in small letters', { typ: 'jwt' }],
  ['an unknown key', { kid: 'key-2' }],
  ['a key name that is a path', { kid: '../../../etc/passwd' }],
  ['a key name that is a property', { kid: '__proto__x' }],
  ['a key name of every object', { kid: 'constructor' }],
  ['an empty key name', { kid: '' }],
  ['a key name without end', { kid: 'k'.repeat(513) }],
  ['a header over its bound', { padding: 'x'.repeat(5_000) }],
]

describe('a token is rejected', () => {
  it.each(CLAIM_MUTATIONS)('a token is rejected with %s', async (_, given) => {
    expect(await outcome(await idp.sign(claims(given())))).toBe(REJECTED)
  })

  it.each(HEADER_MUTATIONS)('a token is rejected with %s', async (_, header) => {
    expect(await outcome(await idp.sign(claims(), header))).toBe(REJECTED)
  })

  const body = () => part(claims())
  const header = (given: object) => part({ alg: 'ES256', typ: 'JWT', kid: 'key-1', ...given })
  const hmac = (input: string, key: string | Buffer) =>
    encodeBase64Url(createHmac('sha256', key).update(input).digest())
  const ownKey = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ownSign = (input: string) =>
    encodeBase64Url(
      signBytes('sha256', Buffer.from(input), {
        key: ownKey.privateKey,
        dsaEncoding: 'ieee-p1363',
      }),
    )
  const foreign = (head: string) => `${head}.${body()}.${ownSign(`${head}.${body()}`)}`
  /** Signs a token with any header, also those that the library of the provider rejects. */
  const signed = async (head: string, claimed = body()) => {
    const input = `${head}.${claimed}`
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
    const bytes = new TextEncoder().encode(input)
    const signature = await crypto.subtle.sign(algorithm, idp.key.privateKey, bytes)
    return `${input}.${encodeBase64Url(new Uint8Array(signature))}`
  }

  /** Inserts a member in front of the members of the header. */
  const twice = (head: string, name: string, value: string) => {
    const json = Buffer.from(head, 'base64url').toString()
    return encodeBase64Url(Buffer.from(json.replace('{', `{"${name}":"${value}",`)))
  }

  it('a token is accepted with the same header but without the defect', async () => {
    expect(await outcome(await signed(header({})))).toBe('subject-1')
  })

  it.each<[string, () => string | Promise<string>]>([
    ['alg none and no signature', () => `${header({ alg: 'none' })}.${body()}.`],
    ['alg None', () => `${header({ alg: 'None' })}.${body()}.AA`],
    [
      'an HMAC keyed with the public key',
      () => {
        const input = `${header({ alg: 'HS256' })}.${body()}`
        return `${input}.${hmac(input, JSON.stringify(idp.key.jwk))}`
      },
    ],
    [
      'an HMAC that calls itself ES256',
      () => {
        const input = `${header({})}.${body()}`
        return `${input}.${hmac(input, JSON.stringify(idp.key.jwk))}`
      },
    ],
    ['alg RS256 over the EC key', () => signed(header({ alg: 'RS256' }))],
    ['no algorithm', () => signed(header({ alg: undefined }))],
    ['an algorithm written twice', () => signed(twice(header({}), 'alg', 'ES256'))],
    ['a key name written twice', () => signed(twice(header({}), 'kid', 'key-1'))],
    ['two algorithms', () => signed(header({ alg: ['ES256'] }))],
    [
      'a key of its own embedded',
      () => foreign(header({ jwk: ownKey.publicKey.export({ format: 'jwk' }) })),
    ],
    ['a URL of keys of its own', () => foreign(header({ jku: 'https://evil.test/jwks' }))],
    ['a certificate of its own', () => foreign(header({ x5c: ['AAAA'] }))],
    ['a certificate URL of its own', () => foreign(header({ x5u: 'https://evil.test/' }))],
    ['a foreign signature', () => foreign(header({}))],
    ['an extension that is critical', () => signed(header({ crit: ['exp'], exp: 1 }))],
    ['an empty list of extensions', () => signed(header({ crit: [] }))],
    ['an unencoded payload', () => signed(header({ b64: false, crit: ['b64'] }))],
    ['a signature of another text', async () => `${header({})}.${body()}.${await lastPart()}`],
    ['no signature', async () => (await good()).replace(/[^.]+$/, '')],
    ['half of a signature', async () => (await good()).slice(0, -43)],
    ['a signature of zeroes', async () => (await good()).replace(/[^.]+$/, 'A'.repeat(86))],
    ['padding', async () => `${await good()}==`],
    ['stray bits', async () => strayBits(await good())],
    ['a blank', async () => `${await good()} `],
    ['a fourth part', async () => `${await good()}.AA`],
    ['two parts', () => `${header({})}.${body()}`],
    ['five parts', () => 'a.b.c.d.e'],
    ['nothing', () => ''],
    ['an access token of this server', () => `rk_at_v1_${'A'.repeat(43)}`],
    ['a header that is no JSON', async () => `AAAA.${body()}.${await lastPart()}`],
    ['a header that is a list', () => signed(part([]))],
    ['claims that are text', () => signed(header({}), part('claims'))],
    ['more than 16 KiB', () => idp.sign(claims({ padding: 'x'.repeat(13_000) }))],
    ['an issuer written twice', () => idp.sign(duplicate('iss', PROVIDER.issuer))],
    ['an audience written twice', () => idp.sign(duplicate('aud', PROVIDER.audience))],
    ['an end written twice', () => idp.sign(duplicate('exp', now() + 600))],
    ['a subject written twice, escaped', () => idp.sign(duplicate('s\\u0075b', 'subject-1'))],
    ['a prototype', () => idp.sign(duplicate('__proto__', 'x'))],
    ['text behind the claims', () => idp.sign(`${JSON.stringify(claims())} {}`)],
    ['a byte order mark', () => idp.sign(`\ufeff${JSON.stringify(claims())}`)],
    ['claims nested without end', () => idp.sign(`${'['.repeat(400)}${']'.repeat(400)}`)],
  ])('a token is rejected with %s', async (_, make) => {
    expect(await outcome(await make())).toBe(REJECTED)
  })

  it('a token is rejected with an HMAC keyed with any form of the public RSA key', async () => {
    const key = await makeKey('key-1', 'RS256')
    const saved = [idp.key, idp.jwks] as const
    idp.key = key
    idp.jwks = { keys: [key.jwk] }
    const rsa = verifierFor({ algorithm: 'RS256' })
    try {
      expect(await outcome(await idp.sign(claims(), { alg: 'RS256' }), rsa)).toBe('subject-1')
      const published = createPublicKey({ key: { ...key.jwk }, format: 'jwk' })
      const forms = (['spki', 'pkcs1'] as const).flatMap((type) => [
        published.export({ type, format: 'pem' }),
        published.export({ type, format: 'pem' }).toString().trimEnd(),
        published.export({ type, format: 'der' }),
      ])
      forms.push(JSON.stringify(key.jwk), key.jwk.n!, Buffer.from(key.jwk.n!, 'base64url'))
      for (const [alg, secret] of ['HS256', 'RS256'].flatMap((alg) =>
        forms.map((form) => [alg, form] as const),
      )) {
        const input = `${header({ alg })}.${body()}`
        expect(await outcome(`${input}.${hmac(input, secret)}`, rsa)).toBe(REJECTED)
      }
    } finally {
      ;[idp.key, idp.jwks] = saved
    }
  })

  const good = () => idp.sign(claims())
  const lastPart = async () => (await idp.sign({ other: 1 })).split('.')[2]!
  const strayBits = (token: string) => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const last = alphabet.indexOf(token.at(-1)!)
    return token.slice(0, -1) + alphabet[last ^ 1]
  }
  const duplicate = (name: string, value: unknown) =>
    JSON.stringify(claims()).replace('{', `{"${name}":${JSON.stringify(value)},`)
})

it('every single changed character invalidates a token', async () => {
  const token = await idp.sign(claims())
  for (let i = 0; i < token.length; i += 7) {
    const flipped = token.slice(0, i) + (token[i] === 'A' ? 'B' : 'A') + token.slice(i + 1)
    if (flipped !== token) expect(await outcome(flipped)).toBe(REJECTED)
  }
})

it('the failure of a rejected token contains nothing of the token', async () => {
  const canary = { sub: 'canary-subject', iss: 'https://canary.test' }
  const error = await verifyToken(verifier, await idp.sign(claims(canary))).catch((e) => e)
  expect(`${error.message}${error.detail}${JSON.stringify(error)}`).not.toMatch(/canary/)
  expect(error.cause).toBeUndefined()
})

it('an invalid token causes no fetch of keys', async () => {
  idp.requests.length = 0
  expect(await outcome(await idp.sign(claims({ iss: 'https://evil.test' })))).toBe(REJECTED)
  expect(await outcome(await idp.sign(claims({ exp: now() - 1 })))).toBe(REJECTED)
  expect(idp.requests).toEqual([])
})
