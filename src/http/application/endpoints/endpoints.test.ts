/** Endpoints of `http.ts` through the whole application origin. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DeclaredFailure } from '../../../../testing/engine/in-process-pool.ts'
import { ORIGIN, openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { ask, endpointManifest } from '../../../../testing/http/endpoints.ts'
import { mount } from '../../../../testing/http/hooks.ts'
import { functionManifest } from '../../../../testing/products.ts'
import {
  type JwtIssuer,
  jwtIssuer,
  jwtProvider,
} from '../../../../testing/providers/jwt-issuers.ts'
import { realSystem } from '../../../system/system.ts'
import { memoryLog } from '../../../telemetry/log.ts'
import { HTTP_RESPONSE } from '../../../value/http/responses.ts'
import type { FunctionManifest } from '../../../value/manifest.ts'
import { applicationLimits } from '../../rate-limits.ts'

const system = realSystem()
const log = memoryLog(system)
const PAGE = 'https://page.example'
const string = { type: 'string' } as const
const optional = (inner: FunctionManifest['returns']) => ({ type: 'optional', inner }) as const

let runs = 0
const internal = { visibility: 'internal', clients: [] } as const
const functions = [
  functionManifest('api.act', {
    ...internal,
    kind: 'action',
    uses: { network: [], secrets: [] },
    arguments: { text: string },
    returns: HTTP_RESPONSE,
  }),
  functionManifest('api.add', {
    kind: 'mutation',
    arguments: { text: string },
    returns: { type: 'int64' },
    errors: { TAKEN: 'conflict' },
  }),
  functionManifest('api.echo', {
    ...internal,
    arguments: {
      id: string,
      count: optional({ type: 'int64' }),
      ratio: optional({ type: 'float64' }),
      open: optional({ type: 'boolean' }),
      tags: optional({ type: 'array', items: string }),
      since: optional({ type: 'nullable', inner: { type: 'float64' } }),
    },
    returns: {
      type: 'object',
      fields: {
        id: string,
        count: optional({ type: 'int64' }),
        ratio: optional({ type: 'float64' }),
        open: optional({ type: 'boolean' }),
        tags: optional({ type: 'array', items: string }),
        since: optional({ type: 'nullable', inner: { type: 'float64' } }),
      },
    },
  }),
  functionManifest('api.mine', { auth: 'user', returns: HTTP_RESPONSE }),
  functionManifest('api.page', {
    arguments: { kind: string },
    returns: HTTP_RESPONSE,
  }),
]
const RESPONSES: Readonly<Record<string, object>> = {
  bytes: { body: { $b: '-_8' }, contentType: 'image/png' },
  cached: { json: 1, headers: { 'Cache-Control': 'public, max-age=60', ETag: '"1"' } },
  cookie: { headers: { 'Set-Cookie': 'a=b' } },
  html: { body: '<script>', contentType: 'text/html' },
  large: { body: 'x'.repeat(300_000) },
  largeBytes: { body: { $b: 'A'.repeat(400_000) } },
  redirect: { status: 302, headers: { location: '/next' } },
  split: { headers: { etag: 'a\r\nset-cookie: a=b' } },
  teapot: { status: 418, body: 'short' },
}
const INPUT = {
  functions,
  tables: [],
  log: log.log,
  http: [
    endpointManifest('act', { function: 'api.act', methods: ['POST'] }),
    endpointManifest('add', {
      function: 'api.add',
      methods: ['DELETE', 'POST'],
      origins: [PAGE],
      maximumBytes: 100,
    }),
    endpointManifest('any', { function: 'api.page', path: '/any/:kind', origins: ['*'] }),
    endpointManifest('echo', {
      function: 'api.echo',
      path: '/echo/:id',
      methods: ['GET', 'POST'],
    }),
    endpointManifest('mine', { function: 'api.mine', origins: [PAGE] }),
    endpointManifest('page', { function: 'api.page', path: '/page/:kind' }),
  ],
  handlers: {
    'api.act': (_: unknown, { text }: { text: string }) => ({ status: 202, body: text }),
    'api.add': (_: unknown, { text }: { text: string }) => {
      runs += 1
      if (text === 'taken') throw new DeclaredFailure('TAKEN')
      if (text === 'broken') throw new Error('a detail of the handler')
      return { $i: String(runs) }
    },
    'api.echo': (_: unknown, given: unknown) => given,
    'api.mine': (context: { identity(): { subject: string } | null }) => ({
      json: context.identity()!.subject.length,
      headers: { 'cache-control': 'private, max-age=5' },
    }),
    'api.page': (_: unknown, { kind }: { kind: string }) => {
      if (kind === 'throws') throw new Error('a detail of the handler')
      return RESPONSES[kind]!
    },
  },
} as unknown as Parameters<typeof openTestGateway>[0]

let users: JwtIssuer
let gateway: TestGateway
beforeAll(async () => {
  users = await jwtIssuer()
  const providers = [jwtProvider({ keys: { uri: users.jwksUri } })]
  gateway = await openTestGateway({ ...INPUT, providers })
  mount(gateway, 'main')
})
afterAll(async () => {
  await gateway.close()
  await users.close()
})

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(gateway, path, { method: 'POST', body, headers })

async function rejected(response: Response, status: number, code: string): Promise<void> {
  const { error } = (await response.json()) as { error: { code: string } }
  expect([response.status, error.code]).toEqual([status, code])
}

describe('arguments', () => {
  test.each<readonly [string, unknown, object]>([
    ['/echo/a', undefined, { id: 'a' }],
    ['/echo/a%2F%C3%A9+', undefined, { id: 'a/é+' }],
    ['/echo/5?count=7', undefined, { id: '5', count: 7 }],
    ['/echo/a?count=9007199254740993', undefined, { id: 'a', count: '9007199254740993' }],
    ['/echo/a?ratio=1.5&open=true', undefined, { id: 'a', ratio: 1.5, open: true }],
    ['/echo/a?tags=%5B%22x%22%2C%22y+z%22%5D', undefined, { id: 'a', tags: ['x', 'y z'] }],
    ['/echo/a?since=null', undefined, { id: 'a', since: null }],
    ['/echo/true?count=1', { tags: ['x'] }, { id: 'true', count: 1, tags: ['x'] }],
    ['/echo/a?', undefined, { id: 'a' }],
  ])('they come by name from path, query and body: %s %j', async (path, body, expected) => {
    const asked = body === undefined ? {} : { method: 'POST', body }
    const response = await ask(gateway, `/main${path}`, asked)
    expect(await response.json()).toEqual(expected)
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ])
  })

  test.each<readonly [string, unknown]>([
    ['/echo/a?id=b', undefined],
    ['/echo/a?count=1&count=1', undefined],
    ['/echo/a', { id: 'a' }],
    ['/echo/a?count=1', { count: 1 }],
    ['/echo/a?unknown=1', undefined],
    ['/echo/a?__proto__=1', undefined],
    ['/echo/a?constructor=1', undefined],
    ['/echo/a?toString', undefined],
    ['/echo/a?count=1&', undefined],
    ['/echo/a', { unknown: 1 }],
    ['/echo/a?count=1.5', undefined],
    ['/echo/a?count=%2B1', undefined],
    ['/echo/a?ratio=1e999', undefined],
    ['/echo/a?ratio=Infinity', undefined],
    ['/echo/a?ratio=abc', undefined],
    ['/echo/a?open=1', undefined],
    ['/echo/a?open=TRUE', undefined],
    ['/echo/a?tags=x', undefined],
    ['/echo/a', []],
    ['/echo/a', '"text"'],
    ['/echo/a', { count: 1.5 }],
  ])('unknown, repeated and mistyped ones are rejected: %s %j', async (path, body) => {
    const asked = body === undefined ? {} : { method: 'POST', body }
    await rejected(await ask(gateway, `/main${path}`, asked), 400, 'ARGUMENTS_INVALID')
  })

  test.each<readonly [string, string | undefined]>([
    ['/echo/a?count=%zz', undefined],
    ['/echo/a?count=%ff', undefined],
    ['/echo/a', '{'],
    ['/echo/a', '{"count":1,"count":1}'],
    ['/echo/a', '{"__proto__":{}}'],
  ])(
    'a query that is not UTF-8 and a body that is not JSON are rejected: %s %s',
    async (path, body) => {
      const asked = body === undefined ? {} : { method: 'POST', body }
      await rejected(await ask(gateway, `/main${path}`, asked), 400, 'REQUEST_INVALID')
    },
  )

  test('a body has a type, no coding and a bound', async () => {
    const text = { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } }
    await rejected(await ask(gateway, '/main/echo/a', text), 415, 'MEDIA_TYPE_UNSUPPORTED')
    const packed = { method: 'POST', body: '{}', headers: { 'content-encoding': 'gzip' } }
    await rejected(await ask(gateway, '/main/echo/a', packed), 415, 'MEDIA_TYPE_UNSUPPORTED')
    await rejected(await post('/main/add', { text: 'x'.repeat(200) }), 413, 'LIMIT_EXCEEDED')
    const empty = await ask(gateway, '/main/echo/a', { method: 'POST' })
    expect(await empty.json()).toEqual({ id: 'a' })
  })
})

describe('a Mutation', () => {
  test('an operation ID makes a repeat safe', async () => {
    const operationId = system.ids.make('opn')
    const headers = { 'idempotency-key': operationId }
    const first = await (await post('/main/add', { text: 'a' }, headers)).text()
    const before = runs
    expect(await (await post('/main/add', { text: 'a' }, headers)).text()).toBe(first)
    expect(runs).toBe(before)
    await rejected(await post('/main/add', { text: 'b' }, headers), 409, 'OPERATION_REUSED')
    // Another mount is another caller.
    mount(gateway, 'other')
    await rejected(await post('/other/add', { text: 'a' }, headers), 409, 'OPERATION_REUSED')
    expect(runs).toBe(before)
  })

  test('each request without an operation ID runs', async () => {
    const one = await (await post('/main/add', { text: 'a' })).json()
    const two = await (await post('/main/add', { text: 'a' })).json()
    expect(two).toBe((one as number) + 1)
  })

  test('DELETE takes its arguments from the query', async () => {
    const response = await ask(gateway, '/main/add?text=a', { method: 'DELETE' })
    expect(await response.json()).toBe(runs)
  })

  test.each(['x', 'opn_1', `opn_${'0'.repeat(26)}x`])(
    'a header that is no operation ID is rejected: %s',
    async (key) => {
      const headers = { 'idempotency-key': key }
      await rejected(await post('/main/add', { text: 'a' }, headers), 400, 'REQUEST_INVALID')
    },
  )

  test('a Query and an Action have no operation ID', async () => {
    const headers = { 'idempotency-key': system.ids.make('opn') }
    await rejected(await ask(gateway, '/main/echo/a', { headers }), 400, 'REQUEST_INVALID')
    await rejected(await post('/main/act', { text: 'a' }, headers), 400, 'REQUEST_INVALID')
  })

  test('declared errors have their codes, and a failure of the handler is 500', async () => {
    await rejected(await post('/main/add', { text: 'taken' }), 409, 'APP_TAKEN')
    const failed = await post('/main/add', { text: 'broken' })
    expect(await failed.clone().text()).not.toContain('a detail of the handler')
    await rejected(failed, 500, 'FUNCTION_FAILED')
    await rejected(await ask(gateway, '/main/page/throws'), 500, 'FUNCTION_FAILED')
  })
})

describe('responses that Functions decide', () => {
  const page = (kind: string, headers = {}, method = 'GET') =>
    ask(gateway, `/main/page/${kind}`, { headers, method })

  test('status, headers and body are those of the Function', async () => {
    const teapot = await page('teapot')
    expect([teapot.status, await teapot.text()]).toEqual([418, 'short'])
    const bytes = await page('bytes')
    expect(bytes.headers.get('content-type')).toBe('image/png')
    expect([...(await bytes.bytes())]).toEqual([251, 255])
    const redirect = await page('redirect')
    expect([redirect.status, redirect.headers.get('location')]).toEqual([302, '/next'])
    const action = await post('/main/act', { text: 'sent' })
    expect([action.status, await action.text()]).toEqual([202, 'sent'])
  })

  test('long texts and long bytes arrive whole', async () => {
    expect((await (await page('large')).text()).length).toBe(300_000)
    expect((await (await page('largeBytes')).bytes()).length).toBe(300_000)
  })

  test('a long text of a Query is compressed where the client accepts it', async () => {
    const response = await page('large', { 'accept-encoding': 'gzip' })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(response.headers.get('vary')).toContain('Accept-Encoding')
    const bytes = Bun.gunzipSync(await response.bytes())
    expect(bytes.length).toBe(300_000)
  })

  test.each(['html', 'cookie', 'split'])(
    'what no response may say is 500, and the log names it: %s',
    async (kind) => {
      const response = await page(kind)
      const requestId = response.headers.get('x-service-request-id')
      expect(response.headers.get('set-cookie')).toBeNull()
      await rejected(response, 500, 'FUNCTION_FAILED')
      const records = log.records().filter((record) => record.requestId === requestId)
      expect(JSON.stringify(records)).toContain('the response.')
    },
  )

  test('HEAD has the headers of GET without the body', async () => {
    const head = await page('teapot', {}, 'HEAD')
    expect([head.status, head.headers.get('content-length')]).toEqual([418, '5'])
    expect(await head.text()).toBe('')
    const failed = await page('throws', {}, 'HEAD')
    expect([failed.status, await failed.text()]).toEqual([500, ''])
  })

  test('copies are kept only where the Function says so', async () => {
    const cached = await page('cached')
    expect(cached.headers.get('cache-control')).toBe('public, max-age=60')
    expect((await page('teapot')).headers.get('cache-control')).toBe('no-store')
  })
})

describe('identity', () => {
  test('the Function decides whether a token is needed', async () => {
    await rejected(await ask(gateway, '/main/mine'), 401, 'FUNCTIONAL_TOKEN_REQUIRED')
    const invalid = { headers: { authorization: 'Bearer x' } }
    await rejected(await ask(gateway, '/main/mine', invalid), 401, 'FUNCTIONAL_TOKEN_INVALID')
    const token = await users.sign(users.claims(system.nowMillis(), { sub: 'ada' }))
    const response = await ask(gateway, '/main/mine', {
      headers: { authorization: `Bearer ${token}` },
    })
    expect([response.status, await response.json()]).toEqual([200, expect.any(Number)])
    expect(response.headers.get('cache-control')).toBe('private, max-age=5')
    expect(response.headers.get('vary')).toContain('Authorization')
  })

  test('a token is not read where no identity is used', async () => {
    const headers = { authorization: 'Bearer x' }
    expect((await ask(gateway, '/main/echo/a', { headers })).status).toBe(200)
  })
})

describe('pages of browsers', () => {
  const preflight = (path: string, origin: string, method = 'POST') =>
    ask(gateway, path, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': method },
    })

  test('a declared origin may call and read, also a failure', async () => {
    const allowed = await preflight('/main/add', PAGE)
    expect(allowed.status).toBe(204)
    expect(allowed.headers.get('access-control-allow-origin')).toBe(PAGE)
    expect(allowed.headers.get('access-control-allow-methods')).toBe('DELETE, POST')
    expect(allowed.headers.get('access-control-allow-headers')).toContain('Idempotency-Key')
    expect(allowed.headers.get('access-control-allow-credentials')).toBeNull()
    expect(allowed.headers.get('vary')).toContain('Origin')
    for (const text of ['a', 'taken', 5]) {
      const response = await post('/main/add', { text }, { origin: PAGE })
      expect(response.headers.get('access-control-allow-origin')).toBe(PAGE)
      expect(response.headers.get('access-control-expose-headers')).toBe('*')
      expect(response.headers.get('vary')).toContain('Origin')
    }
    expect((await post('/main/add', { text: 'a' })).headers.get('vary')).toContain('Origin')
  })

  test.each([
    'https://page.example.evil.example',
    'https://evil-page.example',
    'http://page.example',
    'https://page.example:8443',
    'HTTPS://PAGE.EXAMPLE',
    'null',
    '',
    ORIGIN,
  ])('another origin neither calls nor reads: %j', async (origin) => {
    const before = runs
    for (const response of [
      await preflight('/main/add', origin),
      await post('/main/add', { text: 'a' }, { origin }),
    ]) {
      expect(response.headers.get('access-control-allow-origin')).toBeNull()
      await rejected(response, 403, 'ORIGIN_DENIED')
    }
    expect(runs).toBe(before)
  })

  test('`*` stands for every origin, never with credentials', async () => {
    expect((await preflight('/main/any/teapot', 'https://a.example', 'GET')).status).toBe(204)
    const response = await ask(gateway, '/main/any/teapot', { headers: { origin: 'null' } })
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([
      418,
      '*',
    ])
    expect(response.headers.get('access-control-allow-credentials')).toBeNull()
  })

  test('an endpoint without origins has no headers of CORS', async () => {
    await rejected(await preflight('/main/echo/a', PAGE, 'GET'), 403, 'ORIGIN_DENIED')
    const headers = { origin: ORIGIN }
    await rejected(await ask(gateway, '/main/echo/a', { headers }), 403, 'ORIGIN_DENIED')
    const response = await ask(gateway, '/main/echo/a')
    const names = [...response.headers.keys()].filter((name) => name.startsWith('access-control'))
    expect(names).toEqual([])
  })

  test('a preflight of another method or path says so', async () => {
    const other = await preflight('/main/add', ORIGIN, 'PUT')
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'DELETE, POST'])
    const unknown = await preflight('/main/none', PAGE)
    expect([unknown.status, await unknown.text()]).toEqual([404, ''])
  })
})

describe('paths and methods', () => {
  test.each([
    '/none/echo/a',
    '/main/echo',
    '/main/echo/',
    '/main/echo/a/',
    '/main',
    '/main/ECHO/a',
  ])('an unknown path is 404 without a body: %s', async (path) => {
    const response = await ask(gateway, path)
    expect([response.status, await response.text()]).toEqual([404, ''])
  })

  test.each([
    ['/main/add', 'GET', 'DELETE, POST'],
    ['/main/add', 'HEAD', 'DELETE, POST'],
    ['/main/echo/a', 'PUT', 'GET, HEAD, POST'],
    ['/main/echo/a', 'OPTIONS', 'GET, HEAD, POST'],
  ])('another method of %s is 405: %s', async (path, method, allow) => {
    const response = await ask(gateway, path, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
  })

  test('a secret part of the path is needed where the mount has one', async () => {
    const token = mount(gateway, 'hidden', { pathToken: true })!
    expect((await ask(gateway, `/hidden/${token}/echo/a`)).status).toBe(200)
    expect((await ask(gateway, '/hidden/echo/a')).status).toBe(404)
  })

  test('a mount whose target serves nothing is 503', async () => {
    mount(gateway, 'early', { target: 'channel:later' })
    await rejected(await ask(gateway, '/early/echo/a'), 503, 'UNAVAILABLE')
  })

  test('every answer forbids browsers to run it', async () => {
    for (const path of ['/main/echo/a', '/main/page/bytes', '/main/page/throws', '/none/a']) {
      const { headers } = await ask(gateway, path)
      expect(headers.get('content-security-policy')).toBe("sandbox; default-src 'none'")
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('x-service-request-id')).toMatch(/^req_/)
    }
  })
})

test('a mount beyond its rate is 429, and bodies cost their length', {
  tags: ['slow'],
}, async () => {
  const limited = await openTestGateway({ ...INPUT, limits: applicationLimits(system) })
  try {
    mount(limited, 'slow', { rateLimit: 1 })
    mount(limited, 'long', { rateLimit: 1 })
    const statuses: number[] = []
    for (let i = 0; i < 30; i++) statuses.push((await ask(limited, '/slow/echo/a')).status)
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(200))
    expect(statuses).toContain(429)
    // 90 KB cost 5 requests beside the one, so that the third finds none left.
    const body = { tags: ['x'.repeat(90_000)] }
    const long = { method: 'POST', body }
    const answers = [1, 2, 3].map(() => ask(limited, '/long/echo/a', long))
    const found = []
    for (const answer of answers) found.push((await answer).status)
    found.push((await ask(limited, '/long/echo/a')).status)
    expect(found.at(-1)).toBe(429)
  } finally {
    await limited.close()
  }
})
