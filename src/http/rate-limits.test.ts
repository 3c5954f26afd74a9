import { expect, test } from 'vitest'
import { testManagement } from '../../testing/openapi/checked-origins.ts'
import { unstoredSessions } from '../../testing/operators.ts'
import { Fault } from '../errors/fault.ts'
import type { Actor } from '../identity/actor.ts'
import { TestSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { operatorOperation, publicOperation } from '../wire/operations/operation.ts'
import { schema } from '../wire/schema.ts'
import { healthRoutes } from './management/health.ts'
import { bind } from './management/route.ts'
import { type ManagementLimits, managementLimits, RateLimiter } from './rate-limits.ts'
import { OwnBuckets } from './token-buckets.ts'

const LIMIT = { perSecond: 2, burst: 4 }

test('a burst passes at once, then requests pass at the limited rate', () => {
  const system = new TestSystem()
  const limiter = new RateLimiter(system, LIMIT)
  const takes = (count: number) => Array.from({ length: count }, () => limiter.take('a'))
  expect(takes(5)).toEqual([0, 0, 0, 0, 1])
  system.advance(499)
  expect(takes(1)).toEqual([1])
  system.advance(1)
  expect(takes(2)).toEqual([0, 1])
  system.advance(3_600_000)
  expect(takes(5)).toEqual([0, 0, 0, 0, 1])
})

test('keys do not share their tokens, and each may have a limit of its own', () => {
  const limiter = new RateLimiter(new TestSystem(), LIMIT)
  for (let i = 0; i < 4; i++) limiter.take('a')
  expect(limiter.take('a')).toBe(1)
  expect(limiter.take('b')).toBe(0)
  const large = { perSecond: 1, burst: 100 }
  expect(Array.from({ length: 100 }, () => limiter.take('c', large)).every((s) => s === 0)).toBe(
    true,
  )
})

test('requests charged afterwards delay later requests for a bounded time', () => {
  const system = new TestSystem()
  const limiter = new RateLimiter(system, LIMIT)
  expect(limiter.wait('a')).toBe(0)
  for (let i = 0; i < 1000; i++) limiter.charge('a')
  // From -4 to 1 at two a second.
  expect(limiter.wait('a')).toBe(3)
  system.advance(2_500)
  expect(limiter.wait('a')).toBe(0)
})

test('a charge of many tokens delays later requests as that many calls would', () => {
  const system = new TestSystem()
  const limiter = new RateLimiter(system, LIMIT)
  limiter.charge('a', LIMIT, 6)
  // From -2 to 1 at two a second.
  expect(limiter.wait('a')).toBe(2)
})

test('the least recently used key is evicted, so that memory is bounded', () => {
  const system = new TestSystem()
  const limit = { perSecond: 0.1, burst: 1 }
  const limiter = new RateLimiter(system, limit, new OwnBuckets(system, 3))
  for (const key of ['a', 'b', 'c']) limiter.take(key)
  // Uses within a second count as one.
  system.advance(1_001)
  for (const key of ['a', 'd']) limiter.take(key)
  expect(limiter.size).toBe(3)
  // b was evicted, since a was used after it.
  for (const key of ['a', 'c', 'd']) expect(limiter.wait(key), key).toBeGreaterThan(0)
  expect(limiter.take('b')).toBe(0)
  for (let i = 0; i < 50_000; i++) limiter.take(`peer ${i}`)
  expect(limiter.size).toBe(3)
})

interface App {
  answer(token: string): void
  /** Number of look-ups of a token so far. */
  lookUps: number
}

/** First characters of tokens that this server issued. Only the token of `A` is active. */
const ISSUED = ['A', 'D', 'E']

const DESCRIBED = { name: 'test', summary: 'A test.', replies: { 204: null } } as const
const OPERATIONS = {
  open: publicOperation({
    method: 'GET',
    path: '/v1/auth/open',
    ...DESCRIBED,
    query: schema({ 'token?': 'string' }),
  }),
  recognized: publicOperation({
    method: 'POST',
    path: '/v1/auth/recognized',
    ...DESCRIBED,
    body: { schema: schema({ token: 'string' }) },
  }),
  closed: operatorOperation({ method: 'GET', path: '/v1/closed', ...DESCRIBED }),
}

function mounted(limits: ManagementLimits | null, system: TestSystem) {
  const actor = { grants: [] } as unknown as Actor
  const letterOf = (token: string) => token.charAt('rk_at_v1_'.length)
  const app = {
    identity: { ready: async () => true },
    environment: null,
    lookUps: 0,
    answer: (token: string) => {
      if (token !== 'right') throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
    },
    sessions: {
      ...unstoredSessions(async (token) => {
        if (ISSUED.includes(letterOf(token))) app.lookUps += 1
        if (letterOf(token) !== 'A') throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
        return actor
      }),
      recognize: (token: string) => (ISSUED.includes(letterOf(token)) ? letterOf(token) : null),
    },
  }
  const hono = testManagement<App & Parameters<(typeof healthRoutes)[0]['handle']>[0]['app']>({
    system,
    log: memoryLog().log,
    limits,
    app,
    routes: [
      ...healthRoutes,
      ...bind<App, typeof OPERATIONS>(OPERATIONS, {
        open({ app, query }) {
          app.answer(query.token ?? '')
          return { status: 204 }
        },
        recognized: {
          recognize: ({ body }) => (ISSUED.includes(body.token) ? body.token : null),
          handle({ body }) {
            if (body.token !== 'A') throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
            return { status: 204 }
          },
        },
        closed: () => ({ status: 204 }),
      }),
    ],
  })
  const send = (path: string, peer: string, letter = 'A') =>
    hono.request(
      path,
      { headers: { authorization: `Bearer rk_at_v1_${letter.repeat(43)}` } },
      { peer },
    )
  const present = (peer: string, token: string) =>
    hono.request(
      '/v1/auth/recognized',
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token }),
      },
      { peer },
    )
  return Object.assign(send, { present, app })
}

async function statuses(count: number, send: () => Response | Promise<Response>) {
  const seen: Record<string, number> = {}
  for (let i = 0; i < count; i++) {
    const { status } = await send()
    seen[status] = (seen[status] ?? 0) + 1
  }
  return seen
}

test('a public route admits 60 requests of one peer at once, then 20 a second', async () => {
  const system = new TestSystem()
  const send = mounted(managementLimits(system), system)
  const open = (peer: string) => () => send('/v1/auth/open?token=right', peer)
  expect(await statuses(70, open('a'))).toEqual({ 204: 60, 429: 10 })
  expect(await statuses(60, open('b'))).toEqual({ 204: 60 })
  system.advance(1_000)
  expect(await statuses(30, open('a'))).toEqual({ 204: 20, 429: 10 })
})

test('a request over the limit is 429 with its code and the time to wait', async () => {
  const system = new TestSystem()
  const send = mounted(managementLimits(system), system)
  await statuses(60, () => send('/v1/auth/open?token=right', 'a'))
  const response = await send('/v1/auth/open?token=right', 'a')
  expect(response.status).toBe(429)
  expect(response.headers.get('retry-after')).toBe('1')
  expect(await response.json()).toMatchObject({
    error: { code: 'PLATFORM_RATE_LIMITED', retryable: true },
  })
})

test('failed authentication of one peer is limited to 20 at once, then 5 a second', async () => {
  const system = new TestSystem()
  const send = mounted(managementLimits(system), system)
  expect(await statuses(25, () => send('/v1/closed', 'a', 'B'))).toEqual({ 401: 20, 429: 5 })
  // Only a look-up could distinguish a login from a guess. Another peer is not limited.
  expect((await send('/v1/auth/open?token=right', 'a')).status).toBe(429)
  expect((await send('/v1/auth/open?token=right', 'b')).status).toBe(204)
  system.advance(1_000)
  expect(await statuses(7, () => send('/v1/auth/open?token=wrong', 'a'))).toEqual({
    401: 5,
    429: 2,
  })
})

test('a session that verifies is never rejected because of the failures of its peer', async () => {
  const system = new TestSystem()
  const send = mounted(managementLimits(system), system)
  for (let i = 0; i < 50; i++) {
    await statuses(10, () => send('/v1/closed', 'a', 'B'))
    await statuses(10, () => send.present('a', 'B'))
    expect((await send('/v1/closed', 'a')).status).toBe(204)
    expect((await send.present('a', 'A')).status).toBe(204)
    // A public route admits 20 requests a second of one credential.
    system.advance(50)
  }
})

test('a revoked token causes at most 20 look-ups, then 5 a second, from any peer', async () => {
  const system = new TestSystem()
  const send = mounted(managementLimits(system), system)
  let i = 0
  const dead = () => send('/v1/closed', `peer ${i++}`, 'D')
  expect(await statuses(30, dead)).toEqual({ 401: 20, 429: 10 })
  expect(send.app.lookUps).toBe(20)
  system.advance(1_000)
  expect(await statuses(10, dead)).toEqual({ 401: 5, 429: 5 })
  // Neither its peers nor other sessions are limited by it.
  expect((await send('/v1/closed', 'peer 0')).status).toBe(204)
  expect((await send('/v1/closed', 'peer 0', 'E')).status).toBe(401)
})

test('a public route admits 60 requests of a credential at once, then 20 a second', async () => {
  const system = new TestSystem()
  const send = mounted(managementLimits(system), system)
  expect(await statuses(70, () => send.present('a', 'A'))).toEqual({ 204: 60, 429: 10 })
  system.advance(1_000)
  expect(await statuses(30, () => send.present('b', 'A'))).toEqual({ 204: 20, 429: 10 })
})

test('requests that succeed are not counted against an operator', async () => {
  const system = new TestSystem()
  const send = mounted(managementLimits(system), system)
  expect(await statuses(200, () => send('/v1/closed', 'a'))).toEqual({ 204: 200 })
})

test('health is never limited, not even for a peer over its limits', async () => {
  const system = new TestSystem()
  const send = mounted(managementLimits(system), system)
  await statuses(100, () => send('/v1/closed', 'a', 'B'))
  expect(await statuses(200, () => send('/health/live', 'a'))).toEqual({ 200: 200 })
  expect(await statuses(200, () => send('/health/ready', 'a'))).toEqual({ 200: 200 })
})

test('no request is limited if there are no limits', async () => {
  const system = new TestSystem()
  const send = mounted(null, system)
  expect(await statuses(100, () => send('/v1/closed', 'a', 'B'))).toEqual({ 401: 100 })
})
