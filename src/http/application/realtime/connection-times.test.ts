/**
 * Goal: expiry and revocation end exactly the connections and subscriptions that they concern.
 * Method: a manual clock, connections without a network, and the check that a timer calls.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { functionManifest, publishRelease, REQUEST_ID } from '../../../../testing/products.ts'
import { makeKey } from '../../../../testing/providers/identity-providers.ts'
import {
  type JwtIssuer,
  jwtIssuer,
  jwtProvider,
} from '../../../../testing/providers/jwt-issuers.ts'
import { openRealtimeSession, type RealtimeSession } from '../../../../testing/realtime/sessions.ts'
import { revokeCredential } from '../../../product/application-clients/application-keys.ts'
import { retire } from '../../../product/releases/retire.ts'
import { realSystem, TestSystem } from '../../../system/system.ts'

const clients = ['confidential', 'public'] as const
const returns = { type: 'any' } as const
const FUNCTIONS = [
  functionManifest('chat.enter', { kind: 'mutation', clients: [...clients], returns }),
  functionManifest('chat.who', { auth: 'optional', clients: [...clients], returns }),
]
const WHO = {
  type: 'subscribe',
  subscriptionId: 'one',
  target: 'channel:production',
  function: 'chat.who',
  arguments: { type: 'object', value: [] },
}

let clock: TestSystem
let users: JwtIssuer
let gateway: TestGateway
let opened: RealtimeSession[] = []

beforeAll(async () => {
  // The engine, which dates guests, has the real clock. Tokens have whole seconds.
  clock = new TestSystem({ millis: Math.floor(realSystem().nowMillis() / 1000) * 1000 })
  users = await jwtIssuer()
  gateway = await openTestGateway({
    functions: FUNCTIONS,
    tables: [],
    providers: [jwtProvider({ keys: { uri: users.jwksUri }, maximumLifetimeSeconds: 86_400 })],
    system: clock,
    handlers: {
      'chat.enter': (ctx) => ctx.issueGuest(86_400),
      'chat.who': (ctx) =>
        [ctx.identity()?.subject ?? null, ...(ctx.identity()?.roles ?? [])].join(),
    },
  })
})
afterEach(() => {
  for (const session of opened) session.drop()
  opened = []
  clock.advance(1_000 - (clock.nowMillis() % 1_000))
})
afterAll(async () => {
  await gateway.close()
  await users.close()
})

async function open(): Promise<RealtimeSession> {
  const session = await openRealtimeSession(gateway)
  opened.push(session)
  return session
}

async function authenticated(credentials: object = {}): Promise<RealtimeSession> {
  const session = await open()
  session.send({ type: 'authenticate', applicationKey: gateway.key, ...credentials })
  await session.next('authenticated')
  return session
}

function later(millis: number): void {
  clock.advance(millis)
  gateway.realtime.tick()
}

const user = (claims: Record<string, unknown> = {}) =>
  users.sign(users.claims(clock.nowMillis(), claims))

/** Returns whether the connection still answers. */
async function isOpen(session: RealtimeSession): Promise<boolean> {
  const nonce = clock.ids.make('req')
  const count = session.of('pong').length + 1
  session.send({ type: 'ping', nonce })
  await session.next('pong', count)
  return session.messages.some((message) => message.nonce === nonce)
}

describe('the first message', () => {
  test('a connection ends without a first message within 5 s', async () => {
    const session = await open()
    later(5_000)
    expect(session.closed).toBeNull()
    later(1)
    expect(session.closed?.code).toBe(1008)
    expect(await session.next('error')).toMatchObject({
      subscriptionId: null,
      error: { code: 'APPLICATION_KEY_REQUIRED', retryable: false },
    })
  })

  test('control frames do not extend the time for the first message', async () => {
    const session = await open()
    later(4_000)
    session.heard()
    later(1_001)
    expect(session.closed?.code).toBe(1008)
  })
})

describe('a silent connection', () => {
  test('a silent connection is pinged after 30 s and cut after 60 s', async () => {
    const session = await authenticated()
    later(29_999)
    expect(session.pings).toBe(0)
    later(1)
    expect(session.pings).toBe(1)
    later(30_000)
    expect([session.wasCut, session.closed]).toEqual([false, null])
    later(1)
    expect(session.wasCut).toBe(true)
  })

  test('a silent connection stays open as long as control frames answer', async () => {
    const session = await authenticated()
    for (let i = 0; i < 5; i++) {
      later(30_000)
      session.heard()
    }
    expect([session.pings, session.wasCut]).toEqual([5, false])
    expect(await isOpen(session)).toBe(true)
  })
})

describe('a functional token', () => {
  test('an ending token is announced, ends the subscriptions, then the connection', async () => {
    const session = await authenticated({ token: await user() })
    const plain = await authenticated()
    for (const each of [session, plain]) each.send(WHO)
    expect((await session.next('state')).result.value).toBe('subject-1')
    await plain.next('state')
    // 600 s, and the tolerance of 60 s.
    const endsAt = clock.nowMillis() + 660_000
    expect(session.of('authenticated')[0].expiresAtMicros).toBe(`${endsAt}000`)
    await aliveFor(599_999, session, plain)
    expect(session.of('authorization_expiring')).toEqual([])
    await aliveFor(1, session, plain)
    expect(session.of('authorization_expiring')).toEqual([
      { version: 1, type: 'authorization_expiring', expiresAtMicros: `${endsAt}000` },
    ])
    await aliveFor(59_999, session, plain)
    expect(session.of('authorization_expired')).toEqual([])
    await aliveFor(1, session, plain)
    expect(session.of('authorization_expired')).toHaveLength(1)
    session.send({ ...WHO, subscriptionId: 'two' })
    expect(await session.next('error')).toMatchObject({
      subscriptionId: 'two',
      error: { code: 'FUNCTIONAL_TOKEN_INVALID' },
    })
    await aliveFor(60_000, session, plain)
    expect(session.closed).toBeNull()
    later(1)
    expect(session.closed?.code).toBe(1008)
    expect([plain.closed, plain.of('error')]).toEqual([null, []])
  })

  test('a token is renewed in place, also after its end', async () => {
    const session = await authenticated({ token: await user({ exp: clockSeconds() + 60 }) })
    session.send(WHO)
    await session.next('state')
    await aliveFor(100_000, session)
    await session.next('authorization_expiring')
    session.send({ type: 'authenticate', applicationKey: gateway.key, token: await user() })
    await session.next('authenticated', 2)
    await aliveFor(100_000, session)
    expect([session.of('authorization_expired'), session.of('state')]).toMatchObject([[], [{}]])
    await aliveFor(560_000, session)
    await session.next('authorization_expired')
    session.send({ type: 'authenticate', applicationKey: gateway.key, token: await user() })
    await session.next('authenticated', 3)
    session.send(WHO)
    expect(await session.next('state', 2)).toMatchObject({ revision: '1' })
  })

  test('a renewal with other roles changes the results of the subscriptions', async () => {
    const session = await authenticated({ token: await user({ roles: ['a'] }) })
    session.send(WHO)
    expect((await session.next('state')).result.value).toBe('subject-1,a')
    const token = await user({ roles: ['b'] })
    session.send({ type: 'authenticate', applicationKey: gateway.key, token })
    expect(await session.next('state', 2)).toMatchObject({
      revision: '2',
      result: { value: 'subject-1,b' },
    })
  })

  test.each<[string, () => Promise<object>, string]>([
    [
      'with a token of another principal',
      async () => ({ token: await user({ sub: 'x' }) }),
      'AUTH_POLICY_DENIED',
    ],
    ['with a malformed token', async () => ({ token: 'x.y.z' }), 'FUNCTIONAL_TOKEN_INVALID'],
    ['without a token', async () => ({}), 'AUTH_POLICY_DENIED'],
    [
      'with an unknown key',
      async () => ({ applicationKey: 'rk_sec_v1_x' }),
      'APPLICATION_KEY_INVALID',
    ],
  ])('a token survives a rejected renewal %s until it ends', async (_, credentials, code) => {
    const session = await authenticated({ token: await user() })
    session.send(WHO)
    await session.next('state')
    const renewal = { applicationKey: gateway.key, ...(await credentials()) }
    session.send({ type: 'authenticate', ...renewal })
    expect((await session.next('error')).error.code).toBe(code)
    session.send({ ...WHO, subscriptionId: 'two' })
    expect(await session.next('state', 2)).toMatchObject({ result: { value: 'subject-1' } })
    await aliveFor(660_000, session)
    await session.next('authorization_expired')
  })

  test('the token of a guest expires', async () => {
    const session = await authenticated({ token: await guest() })
    const { expiresAtMicros } = session.of('authenticated')[0]
    await aliveFor(Number(expiresAtMicros) / 1000 - clock.nowMillis() - 1, session)
    expect(session.of('authorization_expired')).toEqual([])
    await aliveFor(1, session)
    await session.next('authorization_expired')
  })

  test('withdrawing a signing key ends the connections of its tokens, and no other', async () => {
    const withdrawn = [await authenticated({ token: await user({ exp: clockSeconds() + 7_200 }) })]
    withdrawn.push(await authenticated({ token: await user({ exp: clockSeconds() + 7_200 }) }))
    const lateToken = await user({ exp: clockSeconds() + 7_200 })
    const before = users.key
    users.key = await makeKey('key-2', 'ES256')
    users.jwks = { keys: [before.jwk, users.key.jwk] }
    // A token with an unknown key reloads the keys at most once in 30 s.
    await aliveFor(30_001, ...withdrawn)
    const kept = await authenticated({ token: await user({ exp: clockSeconds() + 7_200 }) })
    users.jwks = { keys: [users.key.jwk] }
    // Published keys are fresh for ten minutes. The next check of one connection loads them for
    // all, of which the last one is not due for a check of its own.
    await aliveFor(560_000, ...withdrawn, kept)
    withdrawn.push(await authenticated({ token: lateToken }))
    await aliveFor(59_000, ...withdrawn, kept)
    for (const session of withdrawn) {
      expect((await session.next('error')).error.code).toBe('FUNCTIONAL_TOKEN_INVALID')
      expect(session.closed?.code).toBe(1008)
    }
    expect(await isOpen(kept)).toBe(true)
  })
})

describe('a revocation', () => {
  test('revoking a credential ends its connections at the next check, and no other', async () => {
    const key = gateway.issueKey('public')
    const [revoked, other] = [await authenticated({ applicationKey: key }), await authenticated()]
    const { product, actor } = gateway.harness
    const { clientId, credentialId } = product.keys.authenticate(key)!
    revokeCredential(product, actor, { clientId, credentialId, requestId: REQUEST_ID })
    gateway.realtime.tick()
    expect(revoked.of('error')).toMatchObject([
      { subscriptionId: null, error: { code: 'APPLICATION_KEY_INVALID' } },
    ])
    expect(revoked.closed?.code).toBe(1008)
    expect(await isOpen(other)).toBe(true)
  })

  test('retiring a Release ends the subscriptions to it, and not the connection', async () => {
    const { releaseId } = await publishRelease(gateway.harness, {
      functions: FUNCTIONS,
      workspace: 'other',
      source: 'other',
    })
    const session = await authenticated()
    session.send(WHO)
    session.send({ ...WHO, subscriptionId: 'old', target: `release:${releaseId}` })
    await session.next('state', 2)
    const { product, actor } = gateway.harness
    retire(product, actor, { releaseId, requestId: REQUEST_ID })
    gateway.realtime.tick()
    expect(await session.next('error')).toMatchObject({
      subscriptionId: 'old',
      error: { code: 'RELEASE_RETIRED', retryable: false },
    })
    expect(await isOpen(session)).toBe(true)
    expect(session.of('error')).toHaveLength(1)
  })
})

// This test is the last one: the server accepts no further connections after it.
test('a server that stops spreads even a few reconnections over 10 s', async () => {
  const sessions = [await authenticated(), await authenticated(), await authenticated()]
  const drained = gateway.realtime.drain()
  const reconnects = await Promise.all(sessions.map((session) => session.next('reconnect')))
  expect(reconnects.map(({ afterMillis }) => afterMillis)).toEqual([0, 3_333, 6_666])
  for (const session of sessions) session.drop()
  await drained
})

const clockSeconds = () => Math.floor(clock.nowMillis() / 1000)

/** Lets time pass in steps, with a frame of each peer in each, so that none counts as silent. */
async function aliveFor(millis: number, ...sessions: RealtimeSession[]): Promise<void> {
  for (let left = millis; left > 0; left -= 25_000) {
    later(Math.min(left, 25_000))
    for (const session of sessions) session.heard()
  }
}

async function guest(): Promise<string> {
  const body = { ...WHO, version: 1, function: 'chat.enter', operationId: clock.ids.make('opn') }
  const { type: _, subscriptionId: __, ...envelope } = body
  const response = await gateway.application.fetch(
    new Request('http://localhost/v1/mutation', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': gateway.key },
      body: JSON.stringify(envelope),
    }),
  )
  return ((await response.json()) as { result: { value: string } }).result.value
}
