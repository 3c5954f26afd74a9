/** Requests of foreign code: where they may go, and what comes back. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import {
  type AddressInfo,
  createServer as createRawServer,
  type Server as RawServer,
  type Socket,
} from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { selfSigned } from '../../testing/certificates.ts'
import { isWithin, parseNetwork } from './address-ranges.ts'
import { FetchFailure } from './guarded-fetch.ts'
import { OutboundFetch, type OutboundRequest } from './outbound-fetch.ts'

const PUBLIC = '93.184.216.34'
const { certificate, key } = selfSigned('api.test', 'other.test')
let secure: Server
let plain: Server
let answer: RequestListener = (_, response) => response.end('hi')
let dialled: string[] = []

const listen = (server: RawServer) =>
  new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const portOf = (server: RawServer) => (server.address() as AddressInfo).port

beforeAll(async () => {
  const listener: RequestListener = (request, response) => answer(request, response)
  secure = createSecureServer({ key, cert: certificate }, listener)
  plain = createServer(listener)
  await Promise.all([listen(secure), listen(plain)])
})
afterAll(() => {
  for (const server of [secure, plain]) {
    server.closeAllConnections()
    server.close()
  }
})

interface NetworkOptions {
  readonly addresses?: readonly string[]
  readonly allowed?: readonly string[]
  readonly request?: Partial<OutboundRequest>
  readonly server?: RawServer
}

function fetchOf(url: string, options: NetworkOptions = {}) {
  const { addresses = [PUBLIC], allowed = [], request = {} } = options
  dialled = []
  const outbound = new OutboundFetch({
    allowedNetworks: allowed.map((text) => parseNetwork(text)!),
    responseBytesMax: 1_000,
    network: {
      resolve: async () => addresses.map((address) => ({ address })),
      dial(address, port) {
        dialled.push(`${address}:${port}`)
        const server = options.server ?? (url.startsWith('https:') ? secure : plain)
        return { host: '127.0.0.1', port: portOf(server), authority: certificate }
      },
    },
  })
  return outbound.fetch({
    url,
    method: 'GET',
    headers: [],
    body: null,
    redirect: 'follow',
    hosts: ['api.test', 'api.test:80', 'other.test'],
    signal: new AbortController().signal,
    hold: () => {},
    ...request,
  })
}

async function reasonOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    return error instanceof FetchFailure ? error.reason : String(error)
  }
  return 'none'
}

const SWITCHING = 'HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
const EARLY = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n'
const HALF = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok'
const WHOLE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

function sendAlways(socket: Socket, text: string): void {
  if (socket.destroyed) return
  if (socket.write(text)) setImmediate(sendAlways, socket, text)
  else socket.once('drain', () => sendAlways(socket, text))
}

const PRIVATE = ['127.0.0.1', '10.1.2.3', '169.254.169.254', '::1', 'fd00::1', '::ffff:10.0.0.1']
const ALL = ['0.0.0.0/0', '::/0']

describe('an outbound request', () => {
  test.each(PRIVATE)('%s is rejected unless its network is allowed', async (address) => {
    const options = { addresses: [address] }
    expect(await reasonOf(fetchOf('https://api.test', options))).toBe('address')
    expect(await reasonOf(fetchOf('https://api.test', { addresses: [PUBLIC, address] }))).toBe(
      'address',
    )
    expect(dialled).toEqual([])
    const { status } = await fetchOf('https://api.test', { ...options, allowed: ALL })
    expect(status).toBe(200)
    expect(dialled).toEqual([`${address}:443`])
  })

  test('an outbound request is sent without TLS to allowed networks alone', async () => {
    expect(await reasonOf(fetchOf('http://api.test'))).toBe('scheme')
    const local = { addresses: ['10.1.0.1'], allowed: ['10.1.0.0/16'] }
    expect((await fetchOf('http://api.test', local)).status).toBe(200)
    const mixed = { addresses: ['10.1.0.1', PUBLIC], allowed: ['10.1.0.0/16'] }
    expect(await reasonOf(fetchOf('http://api.test', mixed))).toBe('scheme')
  })

  const rejected: readonly (readonly [string, string])[] = [
    ['https://else.test', 'origin'],
    ['https://api.test:444', 'origin'],
    ['https://api.test.', 'origin'],
    ['https://93.184.216.34', 'origin'],
    ['https://[2606:2800:220:1::1]', 'origin'],
    ['https://user@api.test', 'url'],
    ['https://:word@api.test', 'url'],
    ['file:///etc/passwd', 'url'],
    ['data:text/plain,x', 'url'],
    ['//api.test', 'url'],
  ]
  test.each(rejected)('an outbound request is rejected for %s: %s', async (url, reason) => {
    expect(await reasonOf(fetchOf(url))).toBe(reason)
    expect(dialled).toEqual([])
  })

  test('a request has the headers of the caller except those of the connection', async () => {
    let seen: Record<string, unknown> = {}
    answer = ({ headers }, response) => {
      seen = headers
      response.end('ok')
    }
    const headers = [
      ['X-A', '1'],
      ['x-a', '2'],
      ['Host', 'else.test'],
      ['Transfer-Encoding', 'chunked'],
      ['Content-Length', '999'],
      ['User-Agent', 'mine'],
    ] as const
    const body = new TextEncoder().encode('four')
    await fetchOf('https://api.test', { request: { method: 'POST', headers, body } })
    expect(seen).toMatchObject({
      'x-a': '1, 2',
      host: 'api.test',
      'content-length': '4',
      'user-agent': 'mine',
    })
    expect(seen['transfer-encoding']).toBeUndefined()
    const bad = { request: { headers: [['x', 'a\r\nb: c']] as const } }
    expect(await reasonOf(fetchOf('https://api.test', bad))).toBe('headers')
  })

  const redirects: readonly (readonly [string, number, string, string])[] = [
    ['another host that is named', 302, 'https://other.test/x', 'none'],
    ['a host that is not named', 302, 'https://else.test/x', 'origin'],
    ['another scheme', 302, 'http://api.test/x', 'redirect'],
    ['itself without end', 302, '/', 'redirect'],
    ['no URL', 302, 'https://', 'redirect'],
  ]
  test.each(redirects)(
    'a redirect to %s is followed or fails as allowed',
    async (_, status, location, reason) => {
      answer = ({ url }, response) => {
        if (url === '/x') response.end('there')
        else response.writeHead(status, { location }).end()
      }
      expect(await reasonOf(fetchOf('https://api.test/'))).toBe(reason)
    },
  )

  test('an outbound request drops credentials when a redirect changes the host', async () => {
    const seen: unknown[] = []
    answer = ({ url, method, headers: { host, authorization, cookie } }, response) => {
      seen.push([url, method, host, authorization, cookie])
      const to: Record<string, string> = { '/': '/b', '/b': 'https://other.test/c' }
      const location = to[url!]
      if (location === undefined) response.end()
      else response.writeHead(303, { location }).end()
    }
    const headers = [
      ['authorization', 'Bearer x'],
      ['cookie', 'a=b'],
    ] as const
    const body = new Uint8Array(2)
    await fetchOf('https://api.test/', { request: { method: 'POST', headers, body } })
    expect(seen).toEqual([
      ['/', 'POST', 'api.test', 'Bearer x', 'a=b'],
      ['/b', 'GET', 'api.test', 'Bearer x', 'a=b'],
      ['/c', 'GET', 'other.test', undefined, undefined],
    ])
  })

  test('an outbound request returns a redirect that it must not follow', async () => {
    answer = (_, response) => response.writeHead(302, { location: '/x' }).end('moved')
    const manual = await fetchOf('https://api.test/', { request: { redirect: 'manual' } })
    expect([manual.status, new TextDecoder().decode(manual.body)]).toEqual([302, 'moved'])
    const rejected = fetchOf('https://api.test/', { request: { redirect: 'error' } })
    expect(await reasonOf(rejected)).toBe('redirect')
  })

  test('an outbound request reads at most the bound, compressed or not', async () => {
    const large = 'x'.repeat(2_000)
    const bodies: readonly (readonly [string | undefined, string | Uint8Array])[] = [
      [undefined, large],
      ['gzip', gzipSync(large)],
      ['br', brotliCompressSync(large)],
    ]
    for (const [encoding, body] of bodies) {
      answer = (_, response) => {
        if (encoding !== undefined) response.setHeader('content-encoding', encoding)
        response.end(body)
      }
      expect(await reasonOf(fetchOf('https://api.test/'))).toBe('size')
    }
    answer = (_, response) => {
      response.setHeader('content-encoding', 'gzip')
      response.end(gzipSync('small'))
    }
    const { body } = await fetchOf('https://api.test/')
    expect(new TextDecoder().decode(body)).toBe('small')
    answer = (_, response) => {
      response.setHeader('content-length', '5000')
      response.end()
    }
    const head = await fetchOf('https://api.test/', { request: { method: 'HEAD' } })
    expect(head.headers).toContainEqual(['content-length', '5000'])
  })
})

/** Responses of servers that break the protocol, with the expected failure. */
const broken: readonly (readonly [string, string, (socket: Socket) => void])[] = [
  ['changes the protocol', 'connection', (socket) => socket.write(`${SWITCHING}\r\n`)],
  ['changes the protocol and leaves', 'connection', (socket) => socket.end(`${SWITCHING}\r\n`)],
  ['disconnects without a response', 'connection', (socket) => socket.end()],
  ['informs without end', 'headers', (socket) => sendAlways(socket, `${EARLY}\r\n`.repeat(100))],
  ['informs a little', 'none', (socket) => socket.end(`${EARLY}\r\n`.repeat(9) + WHOLE)],
  ['ends before its body', 'connection', (socket) => socket.end(HALF)],
  ['stops in its body', 'time', (socket) => socket.write(HALF)],
  ['is silent', 'time', () => {}],
  ['stops in its head', 'time', (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-')],
]

describe('a server', () => {
  test.each(broken)(
    'a server that %s fails only its own request: %s',
    { tags: ['slow'] },
    async (_, reason, behaves) => {
      let closed = 0
      const server = createRawServer((socket) => {
        socket.on('error', () => {})
        socket.on('close', () => {
          closed += 1
        })
        socket.once('data', () => behaves(socket))
      })
      await listen(server)
      try {
        const signal = AbortSignal.timeout(reason === 'time' ? 1_000 : 100_000)
        const options = { server, allowed: ALL, request: { signal } }
        expect(await reasonOf(fetchOf('http://api.test/', options))).toBe(reason)
        await expect.poll(() => closed).toBe(1)
      } finally {
        server.close()
      }
    },
  )
})

describe('a network', () => {
  const texts: readonly (readonly [string, boolean])[] = [
    ['10.0.0.0/8', true],
    ['0.0.0.0/0', true],
    ['192.168.1.1/32', true],
    ['fd00::/8', true],
    ['::1/128', true],
    ['10.0.0.1/8', false],
    ['10.0.0.0/33', false],
    ['10.0.0.0', false],
    ['10.0.0/8', false],
    ['fd00::1/8', false],
    ['::/129', false],
    ['10.0.0.0/08', false],
    [' 10.0.0.0/8', false],
    ['localhost/8', false],
    ['0xa.0.0.0/8', false],
    ['167772160/8', false],
    ['fe80::%eth0/10', false],
    ['::ffff:10.0.0.0/104', true],
    ['::ffff:10.0.0.1/104', false],
  ]
  test.each(texts)('%s is a valid network: %s', (text, isOne) => {
    expect(parseNetwork(text) !== null).toBe(isOne)
  })

  test('a network has no addresses of the other family', () => {
    const within = (address: string, text: string) => isWithin(address, [parseNetwork(text)!])
    expect(within('10.255.0.1', '10.0.0.0/8')).toBe(true)
    expect(within('11.0.0.1', '10.0.0.0/8')).toBe(false)
    expect(within('10.1.127.255', '10.1.0.0/17')).toBe(true)
    expect(within('10.1.128.0', '10.1.0.0/17')).toBe(false)
    expect(within('::1', '0.0.0.0/0')).toBe(false)
    expect(within('::ffff:10.0.0.1', '10.0.0.0/8')).toBe(false)
    expect(within('fd12::1', 'fd00::/8')).toBe(true)
    expect(within('fe80::1%eth0', '::/0')).toBe(false)
    expect(within('10.0.0.1', '::/0')).toBe(false)
    expect(within('::ffff:10.0.0.1', '::ffff:10.0.0.0/104')).toBe(true)
    expect(within('127.1', '127.0.0.0/8')).toBe(false)
  })
})

test('an abort does not wait for a lookup that hangs, and the next request joins it', async () => {
  const names: string[] = []
  const { promise: hangs, resolve: found } = Promise.withResolvers<{ address: string }[]>()
  const resolve = (name: string) => {
    names.push(name)
    return hangs
  }
  const dial = () => ({ host: '127.0.0.1', port: portOf(secure), authority: certificate })
  const network = { resolve, dial }
  const outbound = new OutboundFetch({ allowedNetworks: [], responseBytesMax: 9, network })
  const request = { method: 'GET', headers: [], body: null, redirect: 'follow' } as const
  const base = { ...request, url: 'https://api.test/', hosts: ['api.test'], hold() {} }
  const send = (signal: AbortSignal) => outbound.fetch({ ...base, signal })
  await expect(send(AbortSignal.timeout(5))).rejects.toMatchObject({ reason: 'time' })
  await expect(send(AbortSignal.abort())).rejects.toMatchObject({ reason: 'time' })
  answer = (_, response) => response.end('hi')
  const waits = send(new AbortController().signal)
  found([{ address: PUBLIC }])
  expect((await waits).status).toBe(200)
  expect(names).toEqual(['api.test'])
})

const PROBE = `
  import { OutboundFetch } from ${JSON.stringify(join(import.meta.dirname, 'outbound-fetch.ts'))}
  import { requireVerifiedPeers } from ${JSON.stringify(join(import.meta.dirname, 'peers.ts'))}
  requireVerifiedPeers(process.env)
  const [port] = process.argv.slice(-1)
  const outbound = new OutboundFetch({
    allowedNetworks: [],
    responseBytesMax: 1_000,
    network: {
      resolve: async () => [{ address: ${JSON.stringify(PUBLIC)} }],
      dial: () => ({ host: '127.0.0.1', port: Number(port) }),
    },
  })
  const request = { method: 'GET', headers: [], body: null, redirect: 'follow', hold() {} }
  const { signal } = new AbortController()
  outbound.fetch({ url: 'https://api.test/', hosts: ['api.test'], signal, ...request }).then(
    ({ status }) => console.log(status),
    ({ message }) => console.log(message),
  )`

test.each([
  ['does not trust an unknown authority', {}, 'fetch failed: connection'],
  ['trusts the authority of NODE_EXTRA_CA_CERTS', { NODE_EXTRA_CA_CERTS: 'own.pem' }, '200'],
  [
    'requires a certificate regardless of its environment variables',
    { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
    'fetch failed: connection',
  ],
])('a process %s', { tags: ['slow'] }, async (_, environment, printed) => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-authorities-'))
  writeFileSync(join(directory, 'own.pem'), certificate)
  const child = Bun.spawn([process.execPath, '-e', PROBE, String(portOf(secure))], {
    cwd: directory,
    env: { PATH: '/usr/bin:/bin', ...environment },
    stderr: 'ignore',
  })
  const answered = await new Response(child.stdout).text()
  rmSync(directory, { recursive: true })
  expect(answered).toBe(`${printed}\n`)
})
