/** Requests of other services through the whole application origin. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ORIGIN, openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import {
  handlerManifest,
  hookManifest,
  mount,
  SECRET,
  send,
  setSecret,
} from '../../../../testing/http/hooks.ts'
import { publishRelease, REQUEST_ID } from '../../../../testing/products.ts'
import { listScheduled } from '../../../product/schedules/scheduled-work.ts'
import { setServingPolicy } from '../../../product/serving/serving-policy.ts'
import { realSystem } from '../../../system/system.ts'
import { memoryLog } from '../../../telemetry/log.ts'
import { applicationLimits, FAILURE_LIMIT } from '../../rate-limits.ts'

/** Deliveries that the handlers got, in the order of their runs. */
let handled: { readonly [field: string]: unknown }[] = []
const log = memoryLog(realSystem())
const INPUT = {
  functions: [
    handlerManifest('hooks.forward', 'action'),
    handlerManifest('hooks.onEvent'),
  ].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  tables: [],
  log: log.log,
  http: [
    hookManifest('action', { function: 'hooks.forward' }),
    hookManifest('bad', { hasOnce: true }),
    hookManifest('event', { hasOnce: true }),
    hookManifest('github'),
    hookManifest('headers', { headers: ['content-type', 'x-a', 'x-github-event'] }),
    hookManifest('long', { maximumBytes: 512 * 1024 }),
    hookManifest('lost', { verify: { scheme: 'github', secret: 'UNSET' } }),
    hookManifest('open', { verify: null, methods: ['POST', 'PUT'] }),
    hookManifest('shop', { path: '/shops/:shop' }),
  ],
  handlers: {
    'hooks.onEvent': (_: unknown, { delivery }: { delivery: Record<string, unknown> }) => {
      handled.push(delivery)
      return null
    },
    'hooks.forward': (_: unknown, { delivery }: { delivery: Record<string, unknown> }) => {
      handled.push(delivery)
      return null
    },
    'http.ts:event': (_: unknown, { delivery }: { delivery: { json: { id: string } } }) =>
      delivery.json.id,
    'http.ts:bad': (_: unknown, { delivery }: { delivery: { json: { id: unknown } } }) => {
      if (delivery.json.id === 'throw') throw new Error('no event')
      return delivery.json.id
    },
  },
}

let gateway: TestGateway
beforeAll(async () => {
  gateway = await openTestGateway(INPUT)
  setSecret(gateway, 'GITHUB', SECRET)
  mount(gateway, 'main')
})
beforeEach(() => {
  handled = []
})
afterAll(() => gateway.close())

let count = 0
/** A body that no other delivery has. */
const newBody = () => JSON.stringify({ n: ++count })
const settled = () => gateway.engine.scheduler.whenSettled()

async function accepted(response: Response): Promise<string> {
  expect(response.status).toBe(202)
  const { deliveryId, ...rest } = (await response.json()) as Record<string, string>
  const requestId = response.headers.get('x-service-request-id')
  expect(rest).toEqual({ version: 1, status: 'accepted', requestId })
  expect(deliveryId).toMatch(/^sch_[0-9A-Z]{26}$/)
  return deliveryId!
}

describe('a verified delivery', () => {
  test('the delivery is handled once, however often and in parallel it is sent', async () => {
    const body = newBody()
    const first = await accepted(await send(gateway, '/main/github', { body }))
    await settled()
    const repeats = await Promise.all(
      Array.from({ length: 10 }, () => send(gateway, '/main/github', { body })),
    )
    for (const repeat of repeats) expect(await accepted(repeat)).toBe(first)
    await settled()
    expect(handled).toHaveLength(1)
    expect(handled[0]!.id).toBe(first)
  })

  test('deliveries that arrive at the same time become one', async () => {
    const body = newBody()
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => send(gateway, '/main/github', { body })),
    )
    const ids = await Promise.all(responses.map(accepted))
    await settled()
    expect([new Set(ids).size, handled.length]).toEqual([1, 1])
  })

  test('an Action handles a delivery too', async () => {
    await accepted(await send(gateway, '/main/action', { body: newBody() }))
    await settled()
    expect(handled).toHaveLength(1)
  })

  test('the handler gets the named headers, the query and the body with its JSON', async () => {
    const body = '{"n":1.5,"s":"é","deep":[{"$i":"7"}],"big":12345678901234567890}'
    const headers = {
      'x-a': 'a',
      'x-b': 'b',
      'x-github-event': 'push',
      authorization: 'Bearer x',
      cookie: 'c=1',
    }
    const path = '/main/headers?a=1&a=2&b=%20&__proto__=x'
    await accepted(await send(gateway, path, { body, headers }))
    await settled()
    expect(handled[0]).toEqual({
      id: expect.stringMatching(/^sch_/),
      receivedAt: { $t: expect.stringMatching(/^[0-9]{16}$/) },
      method: 'POST',
      path: '/headers',
      headers: { 'content-type': 'application/json', 'x-a': 'a', 'x-github-event': 'push' },
      query: { a: '1', b: ' ' },
      body: { $b: Buffer.from(body).toString('base64url') },
      json: { n: 1.5, s: 'é', deep: [{ $$i: '7' }], big: 12345678901234567000 },
    })
  })

  test.each([
    ['another type', '{}', { 'content-type': 'text/plain' }],
    ['a broken text', '{"a":', {}],
    ['a key that is no value', '{"__proto__":1}', {}],
    ['half of a surrogate pair', '"\\ud800"', {}],
    ['a number that is infinite', '1e999', {}],
    ['too many levels', `${'['.repeat(70)}${']'.repeat(70)}`, {}],
    ['very many levels', '['.repeat(900), {}],
  ])('a body without usable JSON is delivered as bytes: %s', async (_, body, headers) => {
    await accepted(await send(gateway, '/main/github', { body, headers }))
    await settled()
    expect(handled).toHaveLength(1)
    expect(handled[0]).not.toHaveProperty('json')
  })

  test('the same body under another path is another event if there is no `once`', async () => {
    const body = newBody()
    const one = await accepted(await send(gateway, '/main/shops/one', { body }))
    const two = await accepted(await send(gateway, '/main/shops/two', { body }))
    expect(await accepted(await send(gateway, '/main/shops/one?again', { body }))).toBe(one)
    expect(await accepted(await send(gateway, '/main/%73hops/on%65', { body }))).toBe(one)
    await settled()
    expect(two).not.toBe(one)
    expect(handled.map(({ path }) => path)).toEqual(['/shops/one', '/shops/two'])
  })

  test('`once` decides which deliveries are the same event, for each mount and hook', async () => {
    mount(gateway, 'other')
    const sendEvent = (at: string, id: string) =>
      send(gateway, at, { body: JSON.stringify({ id, n: ++count }) })
    const first = await accepted(await sendEvent('/main/event', 'evt_1'))
    expect(await accepted(await sendEvent('/main/event', 'evt_1'))).toBe(first)
    const others = [
      await accepted(await sendEvent('/main/event', 'evt_2')),
      await accepted(await sendEvent('/other/event', 'evt_1')),
      await accepted(await sendEvent('/main/bad', 'evt_1')),
    ]
    await settled()
    expect(new Set([first, ...others]).size).toBe(4)
    expect(handled).toHaveLength(4)
  })

  test('operators see the work with its mount and its route', async () => {
    const id = await accepted(await send(gateway, '/main/github', { body: newBody() }))
    await settled()
    const { items } = await listScheduled(gateway.harness.product, { after: null, limit: 1_000 })
    expect(items.find(({ scheduledId }) => scheduledId === id)).toMatchObject({
      function: 'hooks.onEvent',
      source: 'function',
      http: { mount: 'main', route: 'github' },
      state: 'succeeded',
    })
  })
})

describe('a rejected delivery', () => {
  afterAll(async () => {
    await settled()
  })

  async function rejected(response: Response, status: number, code: string): Promise<void> {
    expect([response.status, (await response.json()).error.code]).toEqual([status, code])
    await settled()
    expect(handled).toEqual([])
  }

  test('a signature that does not match is 401, and its reason is in the log alone', async () => {
    const response = await send(gateway, '/main/github', { secret: 'wrong' })
    const text = await response.clone().text()
    await rejected(response, 401, 'SIGNATURE_INVALID')
    expect(text).not.toContain('match')
    const requestId = response.headers.get('x-service-request-id')
    const records = log.records().filter((record) => record.requestId === requestId)
    expect(records.map(({ event }) => event)).toEqual(['request.rejected'])
    expect(JSON.stringify(records)).toContain('the signature does not match')
    expect(log.text()).not.toContain(SECRET)
  })

  test('a missing secret is 503, so that the service tries again', async () => {
    await rejected(await send(gateway, '/main/lost'), 503, 'UNAVAILABLE')
  })

  test.each(['throw', '', 5, null, { a: 1 }, 'x'.repeat(257)])(
    'a `once` that names no event is 500: %j',
    async (id) => {
      const body = JSON.stringify({ id, n: ++count })
      await rejected(await send(gateway, '/main/bad', { body }), 500, 'FUNCTION_FAILED')
    },
  )

  test('a body beyond the bound of the hook is 413, whatever its length says', async () => {
    const body = 'x'.repeat(1_001)
    await rejected(await send(gateway, '/main/github', { body }), 413, 'LIMIT_EXCEEDED')
    const stream = new ReadableStream({
      start(end) {
        end.enqueue(new TextEncoder().encode(body))
        end.close()
      },
    })
    const url = 'https://app.test/v1/http/main/open'
    const request = new Request(url, { method: 'POST', body: stream })
    await rejected(await gateway.application.fetch(request, {}), 413, 'LIMIT_EXCEEDED')
  })

  test('a compressed body is 415', async () => {
    const headers = { 'content-encoding': 'gzip' }
    await rejected(await send(gateway, '/main/github', { headers }), 415, 'MEDIA_TYPE_UNSUPPORTED')
  })

  test('a page of an unknown origin is 403', async () => {
    const headers = { origin: 'https://evil.example' }
    await rejected(await send(gateway, '/main/open', { headers }), 403, 'ORIGIN_DENIED')
  })

  test.each([
    '/unknown/github',
    '/main',
    '/main/',
    '/main/unknown',
    '/main/github/',
    '/main//github',
    '/main/GITHUB',
    '/main/%zz',
    '/Main/github',
    '/__proto__/github',
    '/',
  ])('an unknown path is 404 without a body: %s', async (path) => {
    const response = await send(gateway, path)
    expect([response.status, await response.text()]).toEqual([404, ''])
  })

  test.each(['GET', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'])(
    'another method of a known path is 405 with those that it has: %s',
    async (method) => {
      const response = await send(gateway, '/main/open', { method })
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST, PUT'])
    },
  )

  test('a mount whose target serves nothing is 503', async () => {
    mount(gateway, 'early', { target: 'channel:later' })
    await rejected(await send(gateway, '/early/github'), 503, 'UNAVAILABLE')
  })
})

test('a key of the service that is no operation ID is accepted by a serving policy', async () => {
  const { harness, releaseId } = gateway
  const { product, actor, system } = harness
  const { releaseId: second } = await publishRelease(harness, { ...INPUT, source: 'second' })
  await setServingPolicy(product, actor, {
    operationId: system.ids.make('opn'),
    expectedRevision: 0n,
    mode: 'weighted',
    releases: [releaseId, second].map((each) => ({ releaseId: each, weight: 5_000 })),
    changedAtMicros: system.nowMicros(),
    requestId: REQUEST_ID,
  })
  await product.serving.whenIdle()
  mount(gateway, 'shared', { target: 'environment:default' })
  const headers = { 'idempotency-key': '9f0c6c1e-retry-1' }
  await accepted(await send(gateway, '/shared/github', { headers, body: newBody() }))
})

describe('the secret part of a path', () => {
  test('only paths with the secret reach the routes', async () => {
    const token = mount(gateway, 'hidden', { pathToken: true })!
    await accepted(await send(gateway, `/hidden/${token}/github`, { body: newBody() }))
    await settled()
    expect(handled[0]!.path).toBe('/github')
    for (const path of ['/hidden/github', `/hidden/${token}`, `/hidden/${token}A/github`]) {
      const response = await send(gateway, path)
      expect([response.status, await response.text()]).toEqual([404, ''])
    }
    expect(log.text()).not.toContain(token)
  })
})

test('every answer forbids browsers to run, to cache or to read it', async () => {
  const headers = { origin: ORIGIN }
  const answers = [
    await send(gateway, '/main/open', { headers, body: newBody() }),
    await send(gateway, '/main/github', { headers, secret: 'wrong' }),
    await send(gateway, '/unknown/github', { headers }),
    await send(gateway, '/main/open', { headers, method: 'OPTIONS' }),
  ]
  for (const { headers: sent } of answers) {
    expect(sent.get('content-security-policy')).toBe("sandbox; default-src 'none'")
    expect(sent.get('x-content-type-options')).toBe('nosniff')
    expect(sent.get('cache-control')).toBe('no-store')
    expect(sent.get('access-control-allow-origin')).toBeNull()
    expect(sent.get('set-cookie')).toBeNull()
  }
  await settled()
})

describe('rates', () => {
  let limited: TestGateway
  beforeAll(async () => {
    // No token is gained meanwhile, however long a request takes.
    const limits = applicationLimits({ monotonicMillis: () => 0 })
    limited = await openTestGateway({ ...INPUT, limits })
    setSecret(limited, 'GITHUB', SECRET)
    mount(limited, 'slow', { rateLimit: 1 })
    mount(limited, 'main')
  })
  afterAll(() => limited.close())

  test('a mount beyond its rate is 429, and others are not delayed', async () => {
    const statuses: number[] = []
    for (let i = 0; i < 30; i++) {
      const response = await send(limited, '/slow/github', { body: newBody() })
      statuses.push(response.status)
      if (response.status === 429) {
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      }
    }
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(202))
    expect(statuses).toContain(429)
    await accepted(await send(limited, '/main/github', { body: newBody() }))
  })

  test('a long body takes as much of the rate as many requests', async () => {
    mount(limited, 'long', { rateLimit: 1 })
    const body = JSON.stringify('x'.repeat(30 * 16 * 1024))
    await accepted(await send(limited, '/long/long', { body }))
    const later = await send(limited, '/long/long', { body: newBody() })
    expect(later.status).toBe(429)
    expect(Number(later.headers.get('retry-after'))).toBeGreaterThanOrEqual(10)
  })

  test('an address that fails too often is 429, and takes nothing from the mount', async () => {
    const statuses: number[] = []
    for (let i = 0; i < 3 * FAILURE_LIMIT.burst; i++) {
      const stranger = { secret: 'wrong', peer: 'stranger' }
      statuses.push((await send(limited, '/main/github', stranger)).status)
    }
    expect(statuses.slice(0, 5)).toEqual(Array(5).fill(401))
    expect(statuses).toContain(429)
    const body = newBody()
    expect((await send(limited, '/main/github', { peer: 'stranger', body })).status).toBe(429)
    await accepted(await send(limited, '/main/github', { peer: 'service', body }))
    await limited.engine.scheduler.whenSettled()
  })
})
