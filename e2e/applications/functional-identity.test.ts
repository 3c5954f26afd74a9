/**
 * The callers of Functions, with the executables: JWTs of providers whose keys a test server
 * publishes, guests of the Environment, and every authentication mode of a Function.
 *
 * @module-tag slow
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeKey } from '../../testing/providers/identity-providers.ts'
import { AUDIENCE, ISSUER, type JwtIssuer, jwtIssuer } from '../../testing/providers/jwt-issuers.ts'
import {
  type Application,
  action,
  application,
  createKey,
  fields,
  mutation,
  operationId,
  query,
  type Reply,
} from '../application.ts'

const SERVICES = 'https://services.test'
const FUNCTIONS = `
import { action, mutation, query, v } from 'svc'
const clients = ['public', 'confidential'] as const
const returns = v.nullable(v.object({ subject: v.string(), roles: v.array(v.string()) }))
const seen = (identity: { subject: string; roles: readonly string[] }) =>
  ({ subject: identity.subject, roles: [...identity.roles] })

export const none = query({ clients, returns, handler: (ctx) => ctx.auth.identity })
export const optional = query({
  clients, auth: 'optional', returns,
  handler: ({ auth }) => {
    if (auth.identity === null) return null
    return seen(auth.user ?? auth.service ?? { ...auth.guest!, roles: [] })
  },
})
export const guest = query({
  clients, auth: 'guest', returns,
  handler: (ctx) => ({ subject: ctx.auth.guest.subject, roles: [] }),
})
export const user = query({
  clients, auth: 'user', returns, handler: (ctx) => seen(ctx.auth.user),
})
export const service = query({
  clients, auth: 'service', returns, handler: (ctx) => seen(ctx.auth.service),
})
export const enter = mutation({
  clients, arguments: { seconds: v.float64() }, returns: v.string(),
  handler: (ctx, { seconds }) => ctx.auth.issueGuest({ expiresInSeconds: seconds }),
})
export const admit = action({
  clients, returns: v.string(),
  handler: (ctx) => ctx.auth.issueGuest({ expiresInSeconds: 60 }),
})
export const rename = mutation({
  clients, auth: 'user', returns: v.string(), handler: (ctx) => ctx.auth.user.subject,
})
`

let app: Application
let users: JwtIssuer
let services: JwtIssuer
/** Every token that was presented. None may be in the log. */
const tokens: string[] = []
/** Log lines of the servers that were stopped. */
const logged: string[] = []

beforeAll(async () => {
  users = await jwtIssuer()
  services = await jwtIssuer('RS256', { iss: SERVICES })
  app = await application(
    (workspace) => {
      mkdirSync(join(workspace, 'functions'), { recursive: true })
      writeFileSync(join(workspace, 'functions/who.ts'), FUNCTIONS)
      writeFileSync(join(workspace, '../product/auth.json'), descriptor())
    },
    { SERVICE_PRODUCT_AUTH_CONFIG: 'auth.json' },
  )
})

afterAll(async () => {
  await app?.installation.dispose()
  await Promise.all([users?.close(), services?.close()])
})

function descriptor(): string {
  const user = {
    name: 'users',
    kind: 'user',
    issuer: ISSUER,
    audience: AUDIENCE,
    algorithms: ['ES256'],
    jwksUri: users.jwksUri,
    claims: { roles: '/realm/roles' },
  }
  const service = {
    name: 'services',
    kind: 'service',
    issuer: SERVICES,
    audience: AUDIENCE,
    algorithms: ['RS256', 'PS256'],
    jwks: services.jwks,
    maximumLifetimeSeconds: 600,
  }
  return JSON.stringify({ version: 1, providers: [user, service] })
}

function bearer(token: string): Record<string, string> {
  tokens.push(token)
  return { authorization: `Bearer ${token}` }
}

const signed = async (given: Record<string, unknown> = {}) =>
  bearer(await users.sign(users.claims(Date.now(), given)))

/** Creates a public key, as an application in a browser has it. */
async function publicKey(): Promise<string> {
  return (await createKey(app, { kind: 'public', scopes: 'query,action' })).key
}

async function enter(seconds: number): Promise<string> {
  const bits = Buffer.alloc(8)
  bits.writeDoubleBE(seconds)
  const argument = { type: 'float64', value: bits.toString('hex') }
  const reply = await mutation(app, { function: 'who.enter', arguments: { seconds: argument } })
  return reply.body.result?.value ?? reply.body.error.code
}

function outcome({ status, body }: Reply): string {
  if (body.error !== undefined) return `${status} ${body.error.code}`
  const { result } = body
  return `${status} ${result.type === 'object' ? fields(result).subject.value : result.type}`
}

async function who(mode: string, headers: Record<string, string> = {}): Promise<string> {
  return outcome(await query(app, { function: `who.${mode}`, headers }))
}

describe('authentication modes', () => {
  const INVALID = '401 FUNCTIONAL_TOKEN_INVALID'
  const MISSING = '401 FUNCTIONAL_TOKEN_REQUIRED'
  const DENIED = '403 AUTH_POLICY_DENIED'

  test.each<[string, () => Promise<Record<string, string>>, readonly string[]]>([
    ['no identity', async () => ({}), ['200 null', '200 null', MISSING, MISSING, MISSING]],
    ['a user', () => signed({ sub: 'ada' }), ['200 null', '200 ada', DENIED, '200 ada', DENIED]],
    [
      'a user whose token has nearly the permitted 16 KiB',
      () => signed({ sub: 'ada', padding: 'x'.repeat(11_950) }),
      ['200 null', '200 ada', DENIED, '200 ada', DENIED],
    ],
    [
      'a service',
      async () => bearer(await services.sign(services.claims(Date.now(), { sub: 'billing' }))),
      ['200 null', '200 billing', DENIED, DENIED, '200 billing'],
    ],
    [
      'a user with an expired token',
      () => signed({ iat: 1, exp: 2 }),
      ['200 null', INVALID, INVALID, INVALID, INVALID],
    ],
    [
      'a user of another audience',
      () => signed({ aud: 'https://other.test' }),
      ['200 null', INVALID, INVALID, INVALID, INVALID],
    ],
    [
      'another scheme than Bearer',
      async () => ({ authorization: 'Basic dTpw' }),
      ['200 null', INVALID, INVALID, INVALID, INVALID],
    ],
  ])('each authentication mode accepts or rejects %s', async (_, present, expected) => {
    const headers = await present()
    const outcomes = []
    for (const mode of ['none', 'optional', 'guest', 'user', 'service']) {
      outcomes.push(await who(mode, headers))
    }
    expect(outcomes).toEqual(expected)
  })

  test('a guest has the same subject in all calls until it expires', async () => {
    const headers = bearer(await enter(60))
    const subject = await who('guest', headers)
    expect(subject).toMatch(/^200 gst_[0-9A-Z]{26}$/)
    expect(await who('optional', headers)).toBe(subject)
    expect([await who('user', headers), await who('service', headers)]).toEqual([DENIED, DENIED])
    expect(await who('guest', bearer(await enter(60)))).not.toBe(subject)
    const short = bearer(await enter(3))
    expect(await who('guest', short)).toMatch(/^200 /)
    await expect.poll(() => who('guest', short)).toBe(INVALID)
    expect(await enter(86_401)).toBe('FUNCTION_FAILED')
  })

  test('a guest that an Action issued is accepted', async () => {
    const reply = await action(app, { function: 'who.admit', key: await publicKey() })
    expect(await who('guest', bearer(reply.body.result.value))).toMatch(/^200 gst_/)
  })

  test('a Function sees the claims that the descriptor maps', async () => {
    const headers = await signed({ realm: { roles: ['admin', 'ops'] } })
    const { body } = await query(app, { function: 'who.user', headers })
    const values = fields(body.result).roles.value.map(({ value }: { value: string }) => value)
    expect(values).toEqual(['admin', 'ops'])
  })
})

test('a Mutation can be replayed by its user with a new token, and by no other user', async () => {
  const call = { function: 'who.rename', operationId: operationId() }
  const first = await mutation(app, { ...call, headers: await signed({ jti: '1' }) })
  const again = await mutation(app, { ...call, headers: await signed({ jti: '2' }) })
  expect([first.body.metadata.replayed, again.body.metadata.replayed]).toEqual([false, true])
  const other = await mutation(app, { ...call, headers: await signed({ sub: 'other' }) })
  expect(other.status).toBe(409)
})

test('an address that guesses tokens has only its guesses rejected', async () => {
  const key = await publicKey()
  // The proxy before the server sets the client's address.
  const from = (peer: string, headers: Record<string, string>) =>
    query(app, { function: 'who.user', key, headers: { ...headers, 'x-forwarded-for': peer } })
  const wrong = { authorization: 'Bearer wrong' }
  const outcomes: string[] = []
  const guess = async (): Promise<number> => {
    const reply = await from('198.51.100.1', wrong)
    outcomes.push(outcome(reply))
    if (reply.status === 429) expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
    return reply.status
  }
  // Guesses that are sent at once come faster than the limit on any machine.
  const guesses = () => Promise.all(Array.from({ length: 40 }, guess))
  await expect.poll(guesses).toContain(429)
  expect(new Set(outcomes)).toEqual(new Set(['401 FUNCTIONAL_TOKEN_INVALID', '429 RATE_LIMITED']))
  const user = await signed({ jti: 'unknown' })
  for (const peer of ['198.51.100.1', '198.51.100.2']) {
    expect((await from(peer, user)).status).toBe(200)
  }
})

/** Takes 30 seconds, as the server fetches keys no more often. Other tests need no wait. */
const rotation = test.runIf(process.env.SVC_TEST_LONG === '1')

rotation('keys can be rotated, and tokens of the old ones stay valid', async () => {
  const before = await signed({ jti: 'before' })
  expect(await who('user', before)).toBe('200 subject-1')
  const next = await makeKey('key-2')
  users.jwks = { keys: [users.key.jwk, next.jwk] }
  users.key = next
  const after = await signed({ jti: 'after' })
  const seen = () => who('user', after)
  await expect.poll(seen, { interval: 500 }).toBe('200 subject-1')
  expect(await who('user', before)).toBe('200 subject-1')
})

test('while the key endpoint is unavailable, the last fetched keys are used', async () => {
  users.intercept = (response) => response.writeHead(503).end()
  expect(await who('user', await signed({ jti: 'down' }))).toBe('200 subject-1')
  const guest = bearer(await enter(600))
  logged.push(...app.server.lines)
  await app.restart('kill')
  expect(await who('user', await signed())).toBe('200 subject-1')
  expect(await who('guest', guest)).toMatch(/^200 gst_/)
  users.intercept = null
  const seen = async () => who('user', await signed())
  await expect.poll(seen, { interval: 500 }).toBe('200 subject-1')
  logged.push(...app.server.lines)
  await app.server.stop()
  await users.close()
  await app.start()
  expect(await who('user', await signed())).toBe('200 subject-1')
  // An unknown key ID may belong to a new key, so the server must fetch the keys.
  const next = bearer(await users.sign(users.claims(Date.now()), { kid: 'key-3' }))
  expect(await who('optional', next)).toBe('503 UNAVAILABLE')
})

test('no token and no subject is in the log', () => {
  const log = [...logged, ...app.server.lines].join('\n')
  expect(log.includes('keys.unavailable')).toBe(true)
  for (const token of tokens) {
    for (const part of token.split('.')) expect(log.includes(part), part).toBe(false)
  }
  expect(log.match(/subject-1|gst_/)).toBeNull()
})
