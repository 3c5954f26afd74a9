import { expect, test } from 'vitest'
import { Fault } from '../errors/fault.ts'
import type { Actor } from '../identity/actor.ts'
import { TestSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { schema } from '../wire/schema.ts'
import { healthRoutes } from './management/health.ts'
import { mountManagement } from './mount.ts'
import { type PeerLimits, peerLimits, RateLimiter } from './rate-limits.ts'
import { operatorRoute, publicRoute } from './route.ts'

const LIMIT = { perSecond: 2, burst: 4 }

test('a burst passes at once, then as many a second as the limit says', () => {
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

test('what is charged late delays what follows, for a bounded time', () => {
  const system = new TestSystem()
  const limiter = new RateLimiter(system, LIMIT)
  expect(limiter.wait('a')).toBe(0)
  for (let i = 0; i < 1000; i++) limiter.charge('a')
  // From -4 to 1 at two a second.
  expect(limiter.wait('a')).toBe(3)
  system.advance(2_500)
  expect(limiter.wait('a')).toBe(0)
})

test('memory is bounded: the key that was used longest ago is forgotten', () => {
  const system = new TestSystem()
  const limiter = new RateLimiter(system, { perSecond: 0.1, burst: 1 }, 3)
  for (const key of ['a', 'b', 'c']) limiter.take(key)
  // Uses within a second count as one.
  system.advance(1_001)
  for (const key of ['a', 'd']) limiter.take(key)
  expect(limiter.size).toBe(3)
  // b made room; a was used since.
  for (const key of ['a', 'c', 'd']) expect(limiter.wait(key), key).toBeGreaterThan(0)
  expect(limiter.take('b')).toBe(0)
  for (let i = 0; i < 50_000; i++) limiter.take(`peer ${i}`)
  expect(limiter.size).toBe(3)
})

interface App {
  answer(token: string): void
}

const DESCRIBED = { name: 'test', summary: 'A test.', replies: { 204: null } } as const

function mounted(limits: PeerLimits | null, system: TestSystem) {
  const actor = { grants: [] } as unknown as Actor
  const hono = mountManagement<App & Parameters<(typeof healthRoutes)[0]['handle']>[0]['app']>({
    system,
    log: memoryLog().log,
    limits,
    app: {
      identity: { ready: async () => true },
      environment: null,
      answer: (token) => {
        if (token !== 'right') throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
      },
      authenticate: async (token) => {
        if (token !== `rk_at_v1_${'A'.repeat(43)}`)
          throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
        return actor
      },
    },
    routes: [
      ...healthRoutes,
      publicRoute({
        method: 'GET',
        path: '/v1/auth/open',
        ...DESCRIBED,
        query: schema({ 'token?': 'string' }),
        handle({ app, query }) {
          app.answer(query.token ?? '')
          return { status: 204 }
        },
      }),
      operatorRoute({
        method: 'GET',
        path: '/v1/closed',
        ...DESCRIBED,
        handle: () => ({ status: 204 }),
      }),
    ],
  })
  return (path: string, peer: string, letter = 'A') =>
    hono.request(
      path,
      { headers: { authorization: `Bearer rk_at_v1_${letter.repeat(43)}` } },
      { peer },
    )
}

async function statuses(count: number, send: () => Response | Promise<Response>) {
  const seen: Record<string, number> = {}
  for (let i = 0; i < count; i++) {
    const { status } = await send()
    seen[status] = (seen[status] ?? 0) + 1
  }
  return seen
}

test('a public route passes 60 at once of one peer, then 20 a second', async () => {
  const system = new TestSystem()
  const send = mounted(peerLimits(system), system)
  const open = (peer: string) => () => send('/v1/auth/open?token=right', peer)
  expect(await statuses(70, open('a'))).toEqual({ 204: 60, 429: 10 })
  expect(await statuses(60, open('b'))).toEqual({ 204: 60 })
  system.advance(1_000)
  expect(await statuses(30, open('a'))).toEqual({ 204: 20, 429: 10 })
})

test('a refusal is 429 with its code and the time to wait', async () => {
  const system = new TestSystem()
  const send = mounted(peerLimits(system), system)
  await statuses(60, () => send('/v1/auth/open?token=right', 'a'))
  const response = await send('/v1/auth/open?token=right', 'a')
  expect(response.status).toBe(429)
  expect(response.headers.get('retry-after')).toBe('1')
  expect(await response.json()).toMatchObject({
    error: { code: 'PLATFORM_RATE_LIMITED', retryable: true },
  })
})

test('failed authentication is limited to 20 at once of one peer, then 5 a second', async () => {
  const system = new TestSystem()
  const send = mounted(peerLimits(system), system)
  expect(await statuses(25, () => send('/v1/closed', 'a', 'B'))).toEqual({ 401: 20, 429: 5 })
  // Whatever it presents now, and wherever; another peer is not concerned.
  expect((await send('/v1/closed', 'a')).status).toBe(429)
  expect((await send('/v1/auth/open?token=right', 'a')).status).toBe(429)
  expect((await send('/v1/closed', 'b')).status).toBe(204)
  system.advance(1_000)
  expect(await statuses(7, () => send('/v1/auth/open?token=wrong', 'a'))).toEqual({
    401: 5,
    429: 2,
  })
})

test('requests that succeed are not counted against an operator', async () => {
  const system = new TestSystem()
  const send = mounted(peerLimits(system), system)
  expect(await statuses(200, () => send('/v1/closed', 'a'))).toEqual({ 204: 200 })
})

test('health is never limited, not even for a peer that is', async () => {
  const system = new TestSystem()
  const send = mounted(peerLimits(system), system)
  await statuses(100, () => send('/v1/closed', 'a', 'B'))
  expect(await statuses(200, () => send('/health/live', 'a'))).toEqual({ 200: 200 })
  expect(await statuses(200, () => send('/health/ready', 'a'))).toEqual({ 200: 200 })
})

test('without limits nothing is limited', async () => {
  const system = new TestSystem()
  const send = mounted(null, system)
  expect(await statuses(100, () => send('/v1/closed', 'a', 'B'))).toEqual({ 401: 100 })
})
