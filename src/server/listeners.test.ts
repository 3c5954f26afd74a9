import { once } from 'node:events'
import { connect } from 'node:net'
import { Hono } from 'hono'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { testManagement } from '../../testing/openapi/checked-origins.ts'
import { mountApplication } from '../http/application/mount.ts'
import { APPLICATION_CODES, MANAGEMENT_CODES } from '../http/errors.ts'
import { healthRoutes } from '../http/management/health.ts'
import { CODE_RECORDS_MAX, RejectionLog } from '../http/rejection-log.ts'
import { requestCounts } from '../http/request-counts.ts'
import { TOKEN_BYTES_MAX } from '../identity/jwt/rejections.ts'
import { TestSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import { type ListenOptions, type OpenListener, openListener } from './listeners.ts'
import { peerAddress } from './peer-addresses.ts'

let open: OpenListener | undefined

afterEach(() => open?.cut())

const listenerLog = memoryLog()
const COMMON = {
  surface: 'management',
  codes: MANAGEMENT_CODES,
  system: new TestSystem(),
  log: listenerLog.log,
  tlsTerminated: false,
} as const
const LISTEN = { host: '127.0.0.1', port: 0, loopback: true }

function openAt(port: number, tlsTerminated: boolean): OpenListener {
  const app = new Hono<{ Bindings: { peer: string } }>()
  app.get('/', (context) => context.text(context.env.peer))
  const listen = { ...LISTEN, port }
  return openListener({ ...COMMON, listen, app: app as unknown as Hono, tlsTerminated })
}

function listen(tlsTerminated: boolean): string {
  open = openAt(0, tlsTerminated)
  return `http://${open.address}/`
}

test('a listener cannot open an address that another server of this user has', () => {
  const port = Number(new URL(listen(false)).port)
  let second: OpenListener | undefined
  onTestFinished(() => second?.cut())
  expect(() => {
    second = openAt(port, false)
  }).toThrow(expect.objectContaining({ code: 'SERVER_LISTEN_FAILED' }))
})

const FORWARDED = { 'x-forwarded-for': '203.0.113.9, 198.51.100.7' }

test('the peer without a trusted proxy is the address of the socket', async () => {
  expect(await (await fetch(listen(false), { headers: FORWARDED })).text()).toBe('127.0.0.1')
})

test('a listener that trusts no proxy warns once that requests seem to come from one', async () => {
  const warnings = () => {
    return listenerLog.records().filter(({ event }) => event === 'server.forwarded_untrusted')
  }
  const before = warnings().length
  const url = listen(false)
  await fetch(url)
  expect(warnings().length).toBe(before)
  for (let i = 0; i < 3; i++) await fetch(url, { headers: FORWARDED })
  expect(warnings().slice(before)).toEqual([
    expect.objectContaining({ level: 'warn', setting: 'SERVICE_MANAGEMENT_TLS_TERMINATED' }),
  ])
  expect(listenerLog.text()).not.toContain('203.0.113.9')
  open?.cut()
  await fetch(listen(true), { headers: FORWARDED })
  expect(warnings().length).toBe(before + 1)
})

test('behind a trusted proxy the peer is the hop that the proxy saw', async () => {
  const url = listen(true)
  expect(await (await fetch(url, { headers: FORWARDED })).text()).toBe('198.51.100.7')
  expect(await (await fetch(url)).text()).toBe('127.0.0.1')
})

test.each([
  ['198.51.100.7', '198.51.100.7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:1:2::1', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::1]', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8::192.0.2.1', '2001:db8:0:0::/64'],
  ['unknown', '192.0.2.1'],
  ['', '192.0.2.1'],
  ['1.2.3', '192.0.2.1'],
  ['x'.repeat(10_000), '192.0.2.1'],
])('the rate-limit key of the hop %j is %s', (hop, key) => {
  const headers = new Headers({ 'x-forwarded-for': `203.0.113.9,${hop}` })
  expect(peerAddress(headers, '192.0.2.1', true)).toBe(key)
})

test('a head with the largest token is accepted, and a larger one is rejected', async () => {
  const url = listen(false)
  const send = async (bytes: number) => {
    const authorization = `Bearer ${'x'.repeat(bytes)}`
    return (await fetch(url, { headers: { authorization, cookie: 'x'.repeat(8 * 1024) } })).status
  }
  expect([await send(TOKEN_BYTES_MAX), await send(2 * TOKEN_BYTES_MAX)]).toEqual([200, 431])
})

test('requests without any address share one rate-limit key', () => {
  expect(peerAddress(new Headers(), undefined, false)).toBe('unknown')
})

const { system } = COMMON
const memory = memoryLog()
const { log } = memory
const { fetch: echo } = new Hono().post('/', async ({ req }) => new Response(await req.text()))

/** The options that each origin needs for its probes. */
const ORIGINS: Readonly<Record<string, Pick<ListenOptions, 'app' | 'codes'>>> = {
  '/health/live': {
    app: testManagement({
      app: { identity: { ready: async () => true } } as never,
      routes: healthRoutes,
      system,
      log,
    }),
    codes: MANAGEMENT_CODES,
  },
  '/healthz': {
    app: mountApplication(
      {
        system,
        log,
        rejections: new RejectionLog(log),
        counts: requestCounts(new Metrics(new TestSystem()), 'application'),
      } as never,
      null as never,
    ),
    codes: APPLICATION_CODES,
  },
}

/** Sends raw text and returns the first bytes of the response. */
async function raw(given: Pick<ListenOptions, 'app' | 'codes'>, text: string): Promise<string> {
  open = openListener({ ...COMMON, listen: LISTEN, ...given })
  const socket = connect(Number(open.address.split(':')[1]), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write(text)
  return String((await once(socket, 'data'))[0])
}

describe.each(Object.entries(ORIGINS))('%s', (path, origin) => {
  test.each([
    ['HTTP/1.0 without a Host', '1.0\r\n'],
    ['HTTP/1.0 with an empty Host', '1.0\r\nHost:\r\n'],
    ['HTTP/1.1 with an empty Host', '1.1\r\nHost:\r\n'],
  ])('the probe is answered in %s', { tags: ['slow'] }, async (_, rest) => {
    const answer = await raw(origin, `GET ${path} HTTP/${rest}\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(answer).toContain('{"status":"live"}')
  })

  test('the probe has no other path, also in a request without a host', {
    tags: ['slow'],
  }, async () => {
    const answer = await raw(origin, `GET /12345678${path} HTTP/1.0\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 404 /)
  })

  test.each([
    ['HTTP/1.1 and no Host', ''],
    ['two Hosts', 'Host: a\r\nHost: a\r\n'],
    ['an invalid Host', 'Host: a b\r\n'],
    ['a Host with a path', 'Host: a/b\r\n'],
  ])('the probe is rejected in a request with %s', async (_, host) => {
    const answer = await raw(origin, `GET ${path} HTTP/1.1\r\n${host}\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
  })
})

/** Asks for a path with each Host in turn; returns the statuses. */
async function statusesOf(hosts: readonly string[]): Promise<number[]> {
  const statuses: number[] = []
  for (const host of hosts) {
    statuses.push((await fetch(`http://${open!.address}/healthz`, { headers: { host } })).status)
  }
  return statuses
}

test('a listener with a rule for hosts checks each Host with its own port', async () => {
  const checked: [string, number][] = []
  const hostRule = (host: string, port: number): string | null => {
    checked.push([host, port])
    return host === 'a.example' ? 'another name' : null
  }
  const app = { fetch: () => new Response('served') }
  open = openListener({ ...COMMON, app, listen: LISTEN, hostRule })
  const port = Number(open.address.split(':')[1])
  const hosts = ['a.example', 'b.example', 'b.example', 'a.example', 'b.example', 'a b']
  expect(await statusesOf(hosts)).toEqual([400, 200, 200, 400, 200, 400])
  // A Host that equals the last accepted one is not checked again, and an invalid one never is.
  const names = ['a.example', 'b.example', 'a.example']
  expect(checked).toEqual(names.map((name) => [name, port]))
})

test('records of hosts that a rule rejects are bounded for each peer', async () => {
  const records = memoryLog()
  const rejections = new RejectionLog(records.log)
  const counts = requestCounts(new Metrics(new TestSystem()), 'application')
  const gateway = { system, log: records.log, rejections, counts }
  const app = mountApplication(gateway as never, null as never)
  const hostRule = (): string => 'another name'
  open = openListener({ ...COMMON, app, codes: APPLICATION_CODES, listen: LISTEN, hostRule })
  const hosts = Array.from({ length: 3 * CODE_RECORDS_MAX }, (_, i) => `host${i}.example`)
  expect(new Set(await statusesOf(hosts))).toEqual(new Set([400]))
  const rejected = records.records().filter(({ event }) => event === 'request.rejected')
  expect(rejected).toHaveLength(CODE_RECORDS_MAX)
  expect(rejected[0]).toMatchObject({ peer: '127.0.0.1', detail: 'host: another name' })
  expect(JSON.stringify(rejected)).not.toContain('example')
})

test('a call with two Hosts is rejected, with a record of its peer', async () => {
  const before = memory.records().length
  const head = 'POST /v1/query HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'
  const answer = await raw(ORIGINS['/healthz']!, head)
  const [, requestId] = /x-service-request-id: (req_\w+)/i.exec(answer) ?? []
  expect(memory.records().slice(before)).toMatchObject([
    {
      event: 'request.rejected',
      requestId,
      peer: '127.0.0.1',
      errorCode: 'REQUEST_INVALID',
      detail: 'host: one host, with or without a port',
    },
  ])
})

describe.each(Object.entries(ORIGINS))('%s', (probe, origin) => {
  const hosts = ['[', '%', 'x:99999', 'x:-1', 'a:b', '[::1', '1.2.3.4.5', 'xn--', 'x%2fy']
  const targets = [
    `GET ${probe}`,
    `HEAD ${probe}`,
    'HEAD /nothing',
    'GET /v1/s3',
    'GET /v1/s3/a/b',
    'HEAD /v1/s3/a/b',
    'PUT /v1/files/uploads/a',
    'POST /v1/query',
    'OPTIONS /v1/query',
  ]

  test.each(hosts)('the origin rejects the Host %s before anything else', async (host) => {
    const app = { ...origin, app: { ...origin.app, fetch: () => expect.unreachable() } }
    open = openListener({ ...COMMON, listen: LISTEN, ...app })
    const [, port] = open.address.split(':')
    for (const target of targets) {
      const before = memory.records().length
      const socket = connect(Number(port), '127.0.0.1')
      socket.write(`${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      expect(String((await once(socket, 'data'))[0]), target).toMatch(/^HTTP\/1.1 400 /)
      socket.destroy()
      const records = memory.records().slice(before)
      expect(records.length, target).toBeLessThanOrEqual(1)
      for (const record of records) expect(record.event).toBe('request.rejected')
    }
    open.cut()
  })

  const valid = ['[::1]:80', 'a_b', 'x:', 'EXAMPLE.com:1']
  test.each(valid)('the origin accepts the Host %s', async (host) => {
    const answer = await raw(origin, `GET ${probe} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
  })
})

test('the record of a request with an invalid Host names the peer', async () => {
  const own = memoryLog()
  const application = mountApplication(
    {
      system,
      log: own.log,
      rejections: new RejectionLog(own.log),
      counts: requestCounts(new Metrics(new TestSystem()), 'application'),
    } as never,
    null as never,
  )
  const head = 'HEAD /v1/s3/a HTTP/1.1\r\nHost: [\r\n\r\n'
  await raw({ app: application, codes: APPLICATION_CODES }, head)
  expect(own.records()).toMatchObject([
    {
      event: 'request.rejected',
      peer: '127.0.0.1',
      errorCode: 'REQUEST_INVALID',
      detail: 'host: one host, with or without a port',
    },
  ])
})

test('a request without a host keeps its body', async () => {
  const head = 'POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n'
  const answer = await raw({ app: { fetch: echo }, codes: MANAGEMENT_CODES }, `${head}abc`)
  expect(answer).toMatch(/abc$/)
})

/** Sends raw text. `answered` returns all that was received so far. */
async function rawAnswers(given: Pick<ListenOptions, 'app' | 'codes'>, text: string) {
  open = openListener({ ...COMMON, listen: LISTEN, ...given })
  const socket = connect(Number(open.address.split(':')[1]), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let answers = ''
  socket.on('data', (chunk) => {
    answers += String(chunk)
  })
  socket.write(text)
  return { answered: () => answers }
}

test.each([
  ['/health/live', '/health/live'],
  ['/healthz', '/healthz'],
  ['/health/live', '/nothing'],
  ['/healthz', '/nothing'],
])('the origin of %s answers HEAD of %s with the length of the GET', async (origin, path) => {
  const head = `${path} HTTP/1.1\r\nHost: x\r\n\r\n`
  const get = await raw(ORIGINS[origin]!, `GET ${head}`)
  open?.cut()
  const answer = await raw(ORIGINS[origin]!, `HEAD ${head}`)
  const length = /content-length: (\d+)/i.exec(get)![1]!
  expect(Number(length)).toBeGreaterThan(0)
  expect(answer.match(/content-length: \d+/gi)).toEqual([
    expect.stringMatching(new RegExp(`: ${length}$`)),
  ])
  expect(answer).toMatch(/\r\n\r\n$/)
  expect(answer.split('\r\n')[0]).toBe(get.split('\r\n')[0])
})

test.each(Object.entries(ORIGINS))(
  'the listener of %s leaves the bound of a body to the routes',
  async (_, origin) => {
    const head = `POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 ** 40}\r\n\r\n`
    const answer = await raw(origin, head)
    expect(answer).toMatch(/^HTTP\/1.1 404 /)
    expect(answer).toMatch(/cache-control: no-store/i)
  },
)

test('pipelined requests that are answered at once are all answered', async () => {
  const get = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
  const { answered } = await rawAnswers(ORIGINS['/healthz']!, get + get)
  await expect.poll(() => answered().match(/HTTP\/1.1 200 /g)?.length).toBe(2)
})

test('a draining listener answers requests in flight and closes later connections', async () => {
  const release = Promise.withResolvers<void>()
  const slow = { fetch: () => release.promise.then(() => new Response('slow')) }
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
  const { answered } = await rawAnswers({ app: slow, codes: MANAGEMENT_CODES }, request)
  await expect.poll(() => open?.inFlight()).toBe(1)
  let isDrained = false
  const drained = open!.drain().then(() => {
    isDrained = true
  })
  const later = fetch(`http://${open!.address}/`)
  await expect.poll(() => open?.inFlight()).toBe(2)
  expect([answered(), isDrained]).toEqual(['', false])
  release.resolve()
  expect((await later).headers.get('connection')).toBe('close')
  await drained
  await expect.poll(answered).toMatch(/^HTTP\/1.1 200 [\s\S]*slow$/)
})
