/** Tests that the application origin counts each request once, by its outcome. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'
import { applicationLimits, CREDENTIAL_LIMIT, FAILURE_LIMIT } from '../rate-limits.ts'

/** Aborts the request to a.left, as a client does that disconnects. */
const caller = new AbortController()
let gateway: TestGateway
beforeAll(async () => {
  const common = { clients: ['confidential'], returns: { type: 'any' } } as const
  gateway = await openTestGateway({
    functions: ['a.bad', 'a.left', 'a.one'].map((name) => functionManifest(name, common)),
    tables: [],
    handlers: {
      'a.one': () => 1,
      'a.left': () => {
        caller.abort()
        throw new TypeError('x')
      },
      'a.bad': () => {
        throw new TypeError('x')
      },
    },
    // No token is gained meanwhile, however long a request takes.
    limits: applicationLimits({ monotonicMillis: () => 0 }),
  })
})
afterAll(() => gateway.close())

async function request(path: string, init: RequestInit = {}): Promise<number> {
  const response = await gateway.application.fetch(new Request(`http://app.test${path}`, init))
  await response.text()
  return response.status
}

const query = (name: string, key: string, init: RequestInit = {}) =>
  request('/v1/query', {
    ...init,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-key': key },
    body: JSON.stringify({
      version: 1,
      target: 'channel:production',
      function: name,
      arguments: { type: 'object', value: [] },
    }),
  })

/** Counts: succeeded, rejected, failed, authentication failures, rate limited. */
async function counted(work: () => Promise<unknown>): Promise<number[]> {
  const figures = () => {
    const { counters } = gateway.metrics.collect()
    return [
      counters.applicationRequestsSucceeded,
      counters.applicationRequestsRefused,
      counters.applicationRequestsFailed,
      counters.applicationAuthenticationFailures,
      counters.applicationRateLimited,
    ]
  }
  const before = figures()
  await work()
  return figures().map((value, i) => value - before[i]!)
}

test.each<[string, () => Promise<number>, number, readonly number[]]>([
  ['an answer', () => query('a.one', gateway.key), 200, [1, 0, 0, 0, 0]],
  ['code that throws', () => query('a.bad', gateway.key), 500, [0, 0, 1, 0, 0]],
  [
    'a caller who left',
    () => query('a.left', gateway.key, { signal: caller.signal }),
    500,
    [0, 1, 0, 0, 0],
  ],
  ['an unknown key', () => query('a.one', 'rk_sec_v1_x'), 401, [0, 1, 0, 1, 0]],
  ['a URL with more', () => request('/v1/query?x=1', { method: 'POST' }), 400, [0, 1, 0, 0, 0]],
  ['another method', () => request('/v1/query'), 405, [0, 1, 0, 0, 0]],
  ['an unknown route', () => request('/v2'), 404, [0, 1, 0, 0, 0]],
  ['a probe', () => request('/healthz'), 200, [1, 0, 0, 0, 0]],
])('%s counts once', async (_, send, status, figures) => {
  expect(
    await counted(async () => {
      expect(await send()).toBe(status)
    }),
  ).toEqual(figures)
})

test('requests over a limit are counted as rate limited', async () => {
  expect(FAILURE_LIMIT.burst).toBeLessThan(CREDENTIAL_LIMIT.burst)
  const sent = FAILURE_LIMIT.burst + 10
  const [, rejected, , failures, limited] = await counted(async () => {
    for (let i = 0; i < sent; i++) await query('a.one', 'rk_sec_v1_x')
  })
  expect(rejected).toBe(sent)
  expect([failures, limited]).toEqual([FAILURE_LIMIT.burst - 1, 11])
})

test('only requests that call a Function are measured as calls, failed ones too', async () => {
  const measured = () => gateway.metrics.collect().histograms.callRequestDurationMicros.count
  const before = measured()
  for (const name of ['a.one', 'a.bad', 'a.none']) await query(name, gateway.key)
  await query('a.one', 'rk_sec_v1_x')
  await request('/healthz')
  await request('/v1/query')
  expect(measured() - before).toBe(4)
})
