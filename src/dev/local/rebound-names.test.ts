/**
 * Goal: pages whose name is bound to this machine (DNS rebinding) get nothing of `svc dev`.
 * Method: `svc dev` with its two addresses, and requests over raw sockets, which name any host.
 */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestClient } from '../../../testing/client/test-client.ts'
import { type EventOf, LocalDevelopment } from '../../../testing/development/local-development.ts'
import { handshake } from '../../../testing/realtime/raw-web-sockets.ts'
import { ShutdownStack } from '../../server/shutdown-stack.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { parseLocalServer } from '../../wire/files/local-server.ts'
import { openLocalListener } from './local-listener.ts'

const SECRET = 'the number of the order'
const FUNCTIONS = `
import { internalMutation, internalQuery, v } from 'svc'
export const read = internalQuery({
  returns: v.httpResponse(), handler: () => ({ body: '${SECRET}' }),
})
export const add = internalMutation({
  arguments: { text: v.string() }, returns: v.null(),
  handler: async (ctx, { text }) => { await ctx.db.insert('notes', { text }); return null },
})
export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx) => { await ctx.db.insert('notes', { text: 'delivered' }) },
})
`
const HTTP = `
import { endpoint, hook, httpRoutes } from 'svc'
import { internal } from './_generated/api'
export default httpRoutes({
  read: endpoint({ path: '/read', methods: ['GET'], handler: internal.orders.read }),
  add: endpoint({ path: '/add', methods: ['POST'], handler: internal.orders.add }),
  event: hook({
    path: '/event', verify: 'none', once: () => 'one', handler: internal.orders.onEvent,
  }),
})
`
const NAME = 'attacker.test'

let dev: LocalDevelopment
let ready: EventOf<'ready'>
let port: number
let managementPort: number
let token: string
beforeAll(async () => {
  dev = new LocalDevelopment()
  dev.write('functions/orders.ts', FUNCTIONS)
  dev.write('http.ts', HTTP)
  ready = await dev.start()
  port = Number(new URL(ready.url).port)
  const server = parseLocalServer(readFileSync(join(dev.root, 'dev.json')))
  managementPort = Number(new URL(server.managementUrl).port)
  token = server.accessToken.reveal()
})
afterAll(() => dev.dispose())

interface Answer {
  readonly status: number
  readonly text: string
}

/** Sends raw text; resolves with all that is received, or with the first head. */
function send(to: number, text: string, until: 'end' | 'head' = 'end'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = connect(to, '127.0.0.1', () => socket.write(text))
    let received = ''
    const end = (): void => {
      socket.destroy()
      resolve({ status: Number(received.split(' ', 2)[1]), text: received })
    }
    socket.setEncoding('latin1').on('data', (chunk) => {
      received += chunk
      if (until === 'head' && received.includes('\r\n\r\n')) end()
    })
    socket.on('error', reject)
    socket.on('end', end)
  })
}

type Headers = Readonly<Record<string, string>>

interface Sent {
  readonly method?: string
  readonly path: string
  readonly headers?: Headers
  readonly body?: string
}

/** Returns the text of a request with these lines of Host. */
function requestText({ method = 'GET', path, headers = {}, body = '' }: Sent, hosts: string[]) {
  const lines = [
    ...hosts.map((host) => `Host: ${host}`),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
    'Connection: close',
  ]
  return [`${method} ${path} HTTP/1.1`, ...lines, '', body].join('\r\n')
}

const json = { 'content-type': 'application/json' }
const called = (kind: object) =>
  JSON.stringify({ version: 1, target: 'channel:dev', arguments: EMPTY, ...kind })
const EMPTY = { type: 'object', value: [] }
const withKey = (): Headers => ({ ...json, 'x-service-key': ready.applicationKey })

/**
 * Requests to each surface, with the status at an accepted host. A peer whose credentials are
 * invalid is delayed after some of them.
 */
const SURFACES: Readonly<Record<string, [statuses: number | number[], () => Sent]>> = {
  'an endpoint': [200, () => ({ path: '/v1/http/dev/read' })],
  'the HEAD of an endpoint': [200, () => ({ method: 'HEAD', path: '/v1/http/dev/read' })],
  'an endpoint with a Mutation': [
    200,
    () => ({ method: 'POST', path: '/v1/http/dev/add', headers: json, body: '{"text":"sent"}' }),
  ],
  'a hook': [202, () => ({ method: 'POST', path: '/v1/http/dev/event', body: 'x' })],
  'a call': [
    200,
    () => ({
      method: 'POST',
      path: '/v1/query',
      headers: withKey(),
      body: called({ function: 'notes.version' }),
    }),
  ],
  'a plain call': [
    200,
    () => ({
      path: '/v1/functions/notes.version',
      headers: { ...withKey(), 'x-service-target': 'channel:dev' },
    }),
  ],
  'a download': [401, () => ({ path: '/v1/files/downloads/fil_01M84217E8DMK01HV0P3A4NVEC' })],
  'a signed download': [
    [401, 429],
    () => ({ path: `/v1/files/signed-downloads/rk_url_v1_${'x'.repeat(64)}` }),
  ],
  'an upload': [
    [401, 429],
    () => ({
      method: 'PUT',
      path: '/v1/files/uploads/upl_01M84217E8DMK01HV0P3A4NVEC',
      body: 'bytes',
    }),
  ],
  'the S3 API': [[403, 503], () => ({ path: '/v1/s3/bucket' })],
  'the development API': [[401, 429], () => ({ path: '/v1/workspaces/chat' })],
  liveness: [200, () => ({ path: '/healthz' })],
  readiness: [200, () => ({ path: '/readyz' })],
  'the front page': [200, () => ({ path: '/', headers: { accept: 'text/html' } })],
  'a preflight': [
    204,
    () => ({
      method: 'OPTIONS',
      path: '/v1/query',
      headers: { origin: 'http://localhost:5173', 'access-control-request-method': 'POST' },
    }),
  ],
}

const MANAGEMENT: typeof SURFACES = {
  'a call of a command': [
    200,
    () => ({ path: '/v1/auth/me', headers: { authorization: `Bearer ${token}` } }),
  ],
  'a call without a token': [[401, 429], () => ({ path: '/v1/auth/me' })],
  'an unknown route': [404, () => ({ path: '/nothing' })],
}

const ADDRESSES = [
  ['application', 'REQUEST_INVALID', () => port, SURFACES],
  ['management', 'PLATFORM_REQUEST_INVALID', () => managementPort, MANAGEMENT],
] as const

const notes = async (): Promise<string> => JSON.stringify((await dev.call('notes.list')).result)

describe.each(ADDRESSES)('the %s address', (_, code, portOf, surfaces) => {
  test.each(Object.entries(surfaces))('%s is rejected at a rebound name', async (_name, given) => {
    const [, request] = given
    const stored = await notes()
    for (const host of [NAME, NAME.toUpperCase(), `${NAME}.`, `a.${NAME}`, `user@${NAME}`]) {
      const sent = request()
      const { status, text } = await send(portOf(), requestText(sent, [`${host}:${portOf()}`]))
      expect([host, status]).toEqual([host, 400])
      expect(text).not.toContain(SECRET)
      if (sent.method !== 'HEAD') expect(text).toContain(`"code":"${code}"`)
    }
    expect(await notes()).toBe(stored)
  })

  test.each(Object.entries(surfaces))('%s is answered at other hosts', async (_name, given) => {
    const [expected, request] = given
    const at = (host: string): string => `${host}:${portOf()}`
    const hosts = [
      ...['127.0.0.1', '[::1]', 'localhost', 'app.localhost', 'app'].map(at),
      ...['host.docker.internal', 'desk.local', 'LOCALHOST.', hostname()].map(at),
      // Tunnels have a name and a port of their own.
      'quiet-river.trycloudflare.com',
      'abc.ngrok-free.app:443',
      'tunnel.example.com:8080',
    ]
    for (const host of hosts) {
      const { status } = await send(portOf(), requestText(request(), [host]))
      expect([expected].flat(), host).toContain(status)
    }
  })
})

describe('Realtime', () => {
  test.each([1, 2])('version %i is upgraded at names of this machine alone', async (version) => {
    const upgrade = async (host: string): Promise<number> => {
      const headers = { 'sec-websocket-protocol': `service.realtime.v${version}` }
      return (await send(port, handshake(host, headers), 'head')).status
    }
    const local = [`127.0.0.1:${port}`, `localhost:${port}`, `host.docker.internal:${port}`]
    expect(await Promise.all(local.map(upgrade))).toEqual([101, 101, 101])
    expect(await upgrade('quiet-river.trycloudflare.com')).toBe(101)
    const rebound = [`${NAME}:${port}`, `${NAME}.:${port}`, `user@127.0.0.1:${port}`]
    expect(await Promise.all(rebound.map(upgrade))).toEqual([400, 400, 400])
  })
})

describe('the Host of a request', () => {
  const read = { path: '/v1/http/dev/read' }

  test('a Host that occurs twice is rejected, and so is HTTP/1.1 without one', async () => {
    const own = `127.0.0.1:${port}`
    const statusOf = async (hosts: string[]): Promise<number> =>
      (await send(port, requestText(read, hosts))).status
    expect(await statusOf([own])).toBe(200)
    expect(await statusOf([own, own])).toBe(400)
    expect(await statusOf([own, `${NAME}:${port}`])).toBe(400)
    expect(await statusOf([`${NAME}:${port}`, own])).toBe(400)
    expect(await statusOf([])).toBe(400)
  })

  test('a request of HTTP/1.0, which no browser speaks, needs no Host', async () => {
    const { status, text } = await send(port, `GET ${read.path} HTTP/1.0\r\n\r\n`)
    expect([status, text.includes(SECRET)]).toEqual([200, true])
  })

  test('each request of a connection is checked', async () => {
    const answers = await send(
      port,
      [
        `GET ${read.path} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`,
        `GET ${read.path} HTTP/1.1\r\nHost: ${NAME}:${port}\r\n\r\n`,
        `GET ${read.path} HTTP/1.1\r\nHost: ${NAME}:${port}\r\n\r\n`,
        `GET ${read.path} HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`,
      ].join(''),
    )
    const statuses = [...answers.text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)
    expect(statuses).toEqual(['200', '400', '400', '200'])
    expect(answers.text.split(SECRET)).toHaveLength(3)
  })

  test('a rejected Host is shown with the next step, and leaves a record', async () => {
    const from = dev.events.length
    const { text } = await send(port, requestText(read, [`${NAME}:${port}`]))
    expect(text).toContain('"message":"The request is not valid."')
    expect(text).not.toContain('127.0.0.1')
    const detail = expect.stringContaining(`open http://127.0.0.1:${port} instead`)
    const shown = await dev.next('call', ({ kind }) => kind === 'request', from)
    expect(shown).toMatchObject({ outcome: 'REQUEST_INVALID', detail })
    using client = new TestClient()
    await expect
      .poll(async () => (await client.run('logs', '--root', dev.root, '--json')).out, {
        timeout: 120_000,
      })
      .toContain(`open http://127.0.0.1:${port} instead`)
    const { out } = await client.run('logs', '--root', dev.root, '--json')
    expect(out).not.toContain(NAME)
  })
})

test.each([
  ['this machine alone', []],
  ['the local network', ['192.0.2.1']],
])('a listener for %s rejects a name before anything is served', async (_, networkAddresses) => {
  const { log } = memoryLog()
  const closing = new ShutdownStack(log)
  const options = { system: new TestSystem(), log, closing, networkAddresses }
  const { url } = openLocalListener(options, { port: 0, preferred: 0 })
  try {
    const to = Number(new URL(url).port)
    const call = { method: 'POST', path: '/v1/query', headers: json, body: '{}' }
    const { status, text } = await send(to, requestText(call, [`${NAME}:${to}`]))
    expect([status, text.includes('"code":"REQUEST_INVALID"')]).toEqual([400, true])
    const live = await send(to, requestText({ path: '/healthz' }, [`desk.local:${to}`]))
    expect(live.status).toBe(200)
  } finally {
    await closing.close(0)
  }
})
