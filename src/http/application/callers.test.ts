/**
 * Tests authorization: each auth mode of a Function with every kind of token, over a real Product
 * with real keys. The Functions return the identity that they see.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'
import { type JwtIssuer, jwtIssuer, jwtProvider } from '../../../testing/providers/jwt-issuers.ts'
import { realSystem, TestSystem } from '../../system/system.ts'
import { AUTH_MODES, type AuthMode } from '../../value/identities.ts'
import type { ClientKind } from '../../value/manifest.ts'
import { applicationLimits, VERIFICATION_LIMIT } from '../rate-limits.ts'

const SERVICES = 'https://services.test'
const system = realSystem()
/** Clock of the rate limits. It stands still unless a test moves it. */
const clock = new TestSystem()
let users: JwtIssuer
let services: JwtIssuer
let gateway: TestGateway
let limited: TestGateway
const clients: ClientKind[] = ['confidential', 'public']

beforeAll(async () => {
  users = await jwtIssuer()
  services = await jwtIssuer('RS256', { iss: SERVICES })
  const providers = [
    jwtProvider({ keys: { uri: users.jwksUri } }),
    jwtProvider({
      name: 'services',
      kind: 'service',
      issuer: SERVICES,
      algorithms: ['RS256'],
      keys: { uri: services.jwksUri },
    }),
  ]
  const returns = { type: 'any' } as const
  const functions = [
    ...AUTH_MODES.flatMap((auth) => [
      functionManifest(`mutate.${auth}`, { kind: 'mutation', auth, clients, returns }),
      functionManifest(`query.${auth}`, { auth, clients, returns }),
    ]),
    functionManifest('enter.guest', { kind: 'mutation', clients, returns }),
  ].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const input = {
    functions,
    tables: [],
    providers,
    handlers: Object.fromEntries(
      functions.map(({ name }) => [
        name,
        name === 'enter.guest'
          ? (ctx) => ctx.issueGuest(60)
          : (ctx) => ctx.identity()?.subject.slice(0, 4) ?? 'nobody',
      ]),
    ),
  } satisfies Parameters<typeof openTestGateway>[0]
  gateway = await openTestGateway(input)
  limited = await openTestGateway({ ...input, limits: applicationLimits(clock) })
})

afterAll(() => Promise.all([gateway.close(), limited.close(), users.close(), services.close()]))

interface Sent {
  readonly authorization?: string | undefined
  readonly key?: string
  readonly operationId?: string
  readonly peer?: string
  readonly on?: TestGateway
}

async function call(name: string, sent: Sent = {}) {
  const { authorization, key, operationId = system.ids.make('opn'), peer, on = gateway } = sent
  const isQuery = name.startsWith('query')
  const headers = new Headers({
    'content-type': 'application/json',
    'x-service-key': key ?? on.key,
  })
  if (authorization !== undefined) headers.set('authorization', authorization)
  const envelope = {
    version: 1,
    target: 'channel:production',
    function: name,
    arguments: { type: 'object', value: [] },
    ...(!isQuery && { operationId }),
  }
  const url = `http://app.test/v1/${isQuery ? 'query' : 'mutation'}`
  const request = new Request(url, { method: 'POST', headers, body: JSON.stringify(envelope) })
  const response = await on.application.fetch(request, peer === undefined ? undefined : { peer })
  const body = (await response.json()) as {
    readonly result?: { readonly value: string }
    readonly error?: { readonly code: string }
    readonly metadata?: { readonly replayed?: boolean }
  }
  const outcome = body.error?.code ?? body.result?.value
  return { status: response.status, outcome, headers: response.headers, body }
}

const bearer = async (token: Promise<string>) => `Bearer ${await token}`
const user = (given: Record<string, unknown> = {}) =>
  bearer(users.sign(users.claims(system.nowMillis(), given)))
const PRESENTED = {
  'no token': async () => undefined,
  'a guest': async () => bearer(call('enter.guest').then(({ outcome }) => outcome!)),
  'a user': () => user({ sub: 'user-1' }),
  'a service': () => bearer(services.sign(services.claims(system.nowMillis(), { sub: 'serv-1' }))),
  'an expired user': () => user({ iat: 1, exp: 2 }),
  'a user of an unknown issuer': () => user({ iss: 'https://evil.test' }),
  'no JWT': async () => 'Bearer nonsense',
  'no bearer': async () => 'Basic dTpw',
  'an empty header': async () => '',
  'two tokens': async () => `${await user()}, ${await user()}`,
  'a token over its bound': async () => `Bearer ${'a'.repeat(16 * 1024 + 1)}`,
} satisfies Record<string, () => Promise<string | undefined>>
type Presented = keyof typeof PRESENTED

const INVALID = '401 FUNCTIONAL_TOKEN_INVALID'
const DENIED = '403 AUTH_POLICY_DENIED'
const ALLOWED: Readonly<Record<AuthMode, Partial<Record<Presented, string>>>> = {
  none: Object.fromEntries(Object.keys(PRESENTED).map((name) => [name, '200 nobody'])),
  optional: {
    'no token': '200 nobody',
    'a guest': '200 gst_',
    'a user': '200 user',
    'a service': '200 serv',
  },
  guest: { 'a guest': '200 gst_', 'a user': DENIED, 'a service': DENIED },
  user: { 'a guest': DENIED, 'a user': '200 user', 'a service': DENIED },
  service: { 'a guest': DENIED, 'a user': DENIED, 'a service': '200 serv' },
}

describe.each(AUTH_MODES)('a Function of the mode %s', (mode) => {
  it.each(Object.keys(PRESENTED) as Presented[])(
    'the mode decides about a call with %s',
    async (name) => {
      const missing = mode !== 'optional' && name === 'no token'
      const otherwise = missing ? '401 FUNCTIONAL_TOKEN_REQUIRED' : INVALID
      const expected = ALLOWED[mode][name] ?? otherwise
      for (const kind of ['query', 'mutate']) {
        const authorization = await PRESENTED[name]()
        const { status, outcome, headers } = await call(`${kind}.${mode}`, { authorization })
        expect(`${status} ${outcome}`).toBe(expected)
        if (status === 401) expect(headers.get('www-authenticate')).toBe('Bearer')
      }
    },
  )
})

describe('a caller', () => {
  it('a caller without an Application Key is rejected even with a valid token', async () => {
    const authorization = await user()
    const { status, outcome } = await call('query.user', { authorization, key: 'rk_pub_v1_x' })
    expect([status, outcome]).toEqual([401, 'APPLICATION_KEY_INVALID'])
  })

  it('a caller does not receive the cached result of another caller', async () => {
    const [a, b] = [await user({ sub: 'aaaa' }), await user({ sub: 'bbbb' })]
    const answers = []
    for (const authorization of [a, b, a, b, a, b, undefined]) {
      answers.push((await call('query.optional', { authorization })).outcome)
    }
    expect(answers).toEqual(['aaaa', 'bbbb', 'aaaa', 'bbbb', 'aaaa', 'bbbb', 'nobody'])
  })

  it('a caller can repeat its Mutation with a fresh token, and other callers cannot', async () => {
    const operationId = system.ids.make('opn')
    const mutate = async (given: Record<string, unknown>) => {
      const { outcome, body } = await call('mutate.user', {
        operationId,
        authorization: await user(given),
      })
      return [outcome, body.metadata?.replayed]
    }
    expect(await mutate({ sub: 'user-1' })).toEqual(['user', false])
    expect(await mutate({ sub: 'user-1', jti: 'next', roles: ['new'] })).toEqual(['user', true])
    expect(await mutate({ sub: 'user-2' })).toEqual(['OPERATION_REUSED', undefined])
  })

  it('a failure is retryable while the keys of the provider cannot be fetched', async () => {
    const down = await jwtIssuer()
    down.intercept = (response) => response.writeHead(500).end()
    const alone = await openTestGateway({
      functions: [functionManifest('query.user', { auth: 'user', clients })],
      tables: [],
      providers: [jwtProvider({ keys: { uri: down.jwksUri } })],
      handlers: { 'query.user': () => null },
    })
    const authorization = await bearer(down.sign(down.claims(system.nowMillis())))
    const { status, outcome, headers } = await call('query.user', { on: alone, authorization })
    expect([status, outcome]).toEqual([503, 'UNAVAILABLE'])
    expect(headers.get('retry-after')).not.toBeNull()
    await Promise.all([alone.close(), down.close()])
  })
})

it('a request that is not authorized creates no invocation', async () => {
  const authorization = await user({ sub: 'user-1' })
  const begun = await call('query.user', { authorization })
  expect(begun.headers.get('x-service-invocation-id')).toMatch(/^ivc_/)
  for (const presented of [{}, { authorization: 'Bearer wrong' }]) {
    const rejected = await call('query.user', presented)
    expect([rejected.status, rejected.headers.has('x-service-invocation-id')]).toEqual([401, false])
  }
})

describe('a peer', () => {
  const on = () => ({ on: limited, key: limited.issueKey('public') })
  const times = async (count: number, work: () => Promise<{ outcome: unknown }>) => {
    const outcomes: unknown[] = []
    for (let i = 0; i < count; i++) outcomes.push((await work()).outcome)
    return outcomes
  }

  it('a peer over its failure limit has only its invalid tokens rejected', async () => {
    const known = await user({ sub: 'user-1' })
    const at = { ...on(), peer: '192.0.2.1' }
    expect((await call('query.user', { ...at, authorization: known })).outcome).toBe('user')
    const wrong = { ...at, authorization: 'Bearer wrong' }
    const outcomes = await times(60, () => call('query.user', wrong))
    expect(outcomes.slice(0, 20)).toEqual(Array(20).fill('FUNCTIONAL_TOKEN_INVALID'))
    expect(outcomes.at(-1)).toBe('RATE_LIMITED')
    const rejected = await call('query.user', wrong)
    expect([rejected.status, rejected.outcome]).toEqual([429, 'RATE_LIMITED'])
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(0)
    const fresh = { ...at, authorization: await user({ sub: 'user-2' }) }
    expect((await call('query.user', fresh)).outcome).toBe('user')
    expect((await call('query.user', { ...at, authorization: known })).outcome).toBe('user')
    // Calls without a token, and of Functions without identity, do not fail.
    expect((await call('query.user', at)).outcome).toBe('FUNCTIONAL_TOKEN_REQUIRED')
    expect((await call('query.none', wrong)).outcome).toBe('nobody')
  })

  it('a peer that floods the server has only its known tokens accepted', {
    tags: ['slow'],
  }, async () => {
    const known = await user({ sub: 'user-1' })
    const at = { ...on(), peer: '192.0.2.5' }
    expect((await call('query.user', { ...at, authorization: known })).outcome).toBe('user')
    const wrong = { ...at, authorization: 'Bearer wrong' }
    await times(20 + VERIFICATION_LIMIT.burst, () => call('query.user', wrong))
    const fresh = { ...at, authorization: await user({ sub: 'user-2' }) }
    expect((await call('query.user', fresh)).outcome).toBe('RATE_LIMITED')
    expect((await call('query.user', { ...at, authorization: known })).outcome).toBe('user')
    expect((await call('query.user', { ...fresh, peer: '192.0.2.6' })).outcome).toBe('user')
    clock.advance(1_000)
    const later = { ...at, authorization: await user({ sub: 'user-3' }) }
    expect((await call('query.user', later)).outcome).toBe('user')
  })

  it('a peer that guesses Application Keys is rejected', async () => {
    const guess = { on: limited, key: 'rk_pub_v1_x', peer: '192.0.2.3' }
    const outcomes = await times(60, () => call('query.none', guess))
    expect(outcomes.slice(0, 20)).toEqual(Array(20).fill('APPLICATION_KEY_INVALID'))
    expect(outcomes.at(-1)).toBe('RATE_LIMITED')
    expect((await call('query.none', { ...guess, key: limited.key })).outcome).toBe('nobody')
  })

  it('a backend may send the tokens of many users from one address', async () => {
    const wrong = { on: limited, peer: '192.0.2.4', authorization: 'Bearer wrong' }
    const outcomes = await times(60, () => call('query.user', wrong))
    expect(new Set(outcomes)).toEqual(new Set(['FUNCTIONAL_TOKEN_INVALID']))
  })
})

describe('a credential', () => {
  it('a credential has its own rate limit, which does not affect others', async () => {
    const key = limited.issueKey('public', 5)
    const outcomes: string[] = []
    for (let i = 0; i < 30; i++) {
      const { status, headers } = await call('query.none', { on: limited, key })
      outcomes.push(`${status} ${headers.get('retry-after')}`)
    }
    expect(outcomes.slice(0, 10)).toEqual(Array(10).fill('200 null'))
    expect(outcomes).toContain('429 1')
    for (let i = 0; i < 100; i++) {
      expect((await call('query.none', { on: limited })).status).toBe(200)
    }
  })
})
