/** Downloads and uploads of the page, over real connections on both sides. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type Answered,
  DOCUMENT,
  type HeaderMap,
  headersOfCall,
  rawHead,
  rawRequest,
  SAVED,
} from '../../../testing/client/raw-requests.ts'
import { TestSystem } from '../../system/system.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import { CAPABILITIES } from '../../value/capabilities.ts'
import { CONSOLE_OBJECT_BYTES_MAX } from '../../value/files/buckets.ts'
import type { ManagementOperation } from '../../wire/operations/operation.ts'
import { createFetch } from '../network/fetch.ts'
import { type AnyInput, anyRequestOf } from '../requests/operation-requests.ts'
import { type OnBytes, type OnHead, sendForBytes, sendFromStream } from '../requests/requests.ts'
import { CALL_HEADER, ConsoleServer, TRANSFERS_MAX } from './console-server.ts'
import { type ConsoleEnvironment, ConsoleSessions } from './console-sessions.ts'
import { Downloads } from './downloads.ts'
import { PageAccess } from './page-access.ts'
import { PageCalls } from './page-calls.ts'
import { RANGE_BYTES } from './page-transfers.ts'

const MIB = 1024 * 1024
/** Bytes that the buffers of four sockets and of the streams between them hold at most. */
const BUFFERED_BYTES_MAX = 48 * MIB
const HTML = '<!doctype html><script>document.title = "attacked"</script>'

const system = new TestSystem()
const ENVIRONMENT: ConsoleEnvironment = {
  projectId: system.ids.make('prj'),
  environmentId: system.ids.make('env'),
  name: 'here',
  capabilities: CAPABILITIES,
}

let access: PageAccess
let server: ConsoleServer
let cookie: string
let upstream: Server
/** Answers the requests that reach the server of the Environment. */
let answer: (request: IncomingMessage, response: ServerResponse) => unknown
let asked: { path: string; range: string | undefined }[]

beforeEach(async () => {
  asked = []
  answer = (_, response) => response.end(HTML)
  upstream = createServer((request, response) => {
    asked.push({ path: request.url!, range: request.headers.range })
    void answer(request, response)
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', () => resolve()))
  const origin = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const { signal } = new AbortController()
  const network = { environment: { fetch: createFetch(() => undefined), system }, signal } as never
  const session = {
    anyBytes: (operation: ManagementOperation, onBytes: OnBytes, input: AnyInput, onHead: OnHead) =>
      sendForBytes(network, { ...anyRequestOf(operation, input), origin }, onBytes, onHead),
    anyUpload: (operation: ManagementOperation, input: AnyInput, length: number) => {
      const request = anyRequestOf(operation, input)
      const headers = { ...request.headers, 'content-length': String(length) }
      return sendFromStream(network, { ...request, headers, origin, reply: null })
    },
  }
  const derive = async () => ({ session: session as never, end: async () => {} })
  access = new PageAccess((length) => crypto.getRandomValues(new Uint8Array(length)))
  server = await ConsoleServer.open({
    access,
    calls: new PageCalls(new ConsoleSessions(derive, [ENVIRONMENT], null), system),
    assets: {},
    about: () => ({}),
    onUse: () => {},
    onRepeatedStart: () => {},
  })
  await rawRequest(server.origin, start())
  cookie = access.setCookie.split(';')[0]!
})

afterEach(() => {
  server.close()
  upstream.closeAllConnections()
  upstream.close()
})

const start = () => ({ method: 'GET', path: access.startPath.reveal(), headers: DOCUMENT })
const { environmentId } = ENVIRONMENT
const OBJECT = { bucketId: 'bkt_1', objectKey: 'a/b.html' }

function prepare(fileName = 'b.html', headers: HeaderMap = {}): Promise<Answered> {
  return rawRequest(server.origin, {
    method: 'POST',
    path: `${access.basePath}prepare/readObject`,
    headers: { ...headersOfCall(server.origin), cookie, ...headers },
    body: JSON.stringify({ environmentId, params: OBJECT, fileName }),
  })
}

/** Begins a download as the page does, and returns its path. */
async function prepared(fileName?: string): Promise<string> {
  const { status, body } = await prepare(fileName)
  expect([status, body]).toEqual([200, expect.stringContaining('download/')])
  return `${access.basePath}${JSON.parse(body).result.path}`
}

function save(path: string, headers: HeaderMap = {}, method = 'GET'): Promise<Answered> {
  return rawRequest(server.origin, { method, path, headers: { ...SAVED, cookie, ...headers } })
}

function uploadHeaders(): Record<string, string> {
  const call = JSON.stringify({ environmentId, params: OBJECT, contentType: 'text/html' })
  return {
    ...headersOfCall(server.origin),
    'content-type': 'application/octet-stream',
    cookie,
    [CALL_HEADER]: encodeBase64Url(Buffer.from(call)),
  }
}

function upload(body: string, headers: HeaderMap = {}): Promise<Answered> {
  const path = `${access.basePath}upload/putObject`
  const all = { ...uploadHeaders(), ...headers }
  return rawRequest(server.origin, { method: 'POST', path, headers: all, body })
}

describe('a download', () => {
  test('a stored HTML file is saved, and never runs in the origin of the page', async () => {
    answer = (_, response) => {
      response.setHeader('content-type', 'text/html')
      response.setHeader('content-disposition', 'inline')
      response.setHeader('content-security-policy', "default-src 'unsafe-inline'")
      response.setHeader('set-cookie', 'svc-console=other')
      response.end(HTML)
    }
    const { status, headers, body } = await save(await prepared())
    expect([status, body.endsWith(HTML) || body.includes(HTML)]).toEqual([200, true])
    expect(headers).toContain('content-disposition: attachment; filename="b.html"')
    expect(headers).toContain('content-type: application/octet-stream')
    expect(headers).toContain('x-content-type-options: nosniff')
    expect(headers).toContain("content-security-policy: sandbox; default-src 'none'")
    expect(headers).toContain('cross-origin-resource-policy: same-origin')
    expect(headers).toContain('cache-control: no-store')
    expect(headers).toContain('x-frame-options: deny')
    expect(headers).not.toMatch(/text\/html|set-cookie|unsafe|inline/)
  })

  test('a name opens one download, once', async () => {
    const path = await prepared()
    expect((await save(path)).status).toBe(200)
    expect((await save(path)).status).toBe(404)
    expect((await save(`${path}x`)).status).toBe(404)
    expect((await save(`${access.basePath}download/`)).status).toBe(404)
    expect(asked).toHaveLength(1)
  })

  test('a stolen address gives other pages, programs and users nothing', {
    tags: ['slow'],
  }, async () => {
    const path = await prepared()
    const { port } = new URL(server.origin)
    const attacks: readonly [string, HeaderMap][] = [
      ['another site', { 'sec-fetch-site': 'cross-site' }],
      ['another port', { 'sec-fetch-site': 'same-site' }],
      ['an address that was typed, or that a program opened', { 'sec-fetch-site': 'none' }],
      ['no site', { 'sec-fetch-site': undefined }],
      ['a script that reads it', { 'sec-fetch-mode': 'cors' }],
      ['a script of the page that reads it', { 'sec-fetch-mode': 'same-origin' }],
      ['a part of a document', { 'sec-fetch-mode': 'no-cors' }],
      ['no mode', { 'sec-fetch-mode': undefined }],
      ['a frame', { 'sec-fetch-dest': 'iframe' }],
      ['an object', { 'sec-fetch-dest': 'object' }],
      ['a script', { 'sec-fetch-dest': 'script' }],
      ['no destination', { 'sec-fetch-dest': undefined }],
      ['another origin', { origin: 'http://127.0.0.1:1' }],
      ['an opaque origin', { origin: 'null' }],
      ['no cookie', { cookie: undefined }],
      ['a wrong cookie', { cookie: 'svc-console=wrong' }],
      ['DNS rebinding', { host: `attacker.test:${port}` }],
      ['localhost', { host: `localhost:${port}` }],
      ['a browser that loads ahead', { 'sec-purpose': 'prefetch' }],
      ['a program that knows only HTTP', { ...NOTHING, cookie: undefined }],
    ]
    for (const [name, headers] of attacks) {
      const { status, body } = await save(path, headers)
      expect([name, status, body.includes('script')]).toEqual([name, 403, false])
    }
    expect((await save(path, {}, 'POST')).status).toBe(403)
    const other = `/${'a'.repeat(43)}/${path.split('/').slice(2).join('/')}`
    expect((await save(other)).status).toBe(403)
    expect((await save(path, { 'sec-fetch-dest': 'document' })).status).toBe(200)
  })

  test('only the page begins a download, of the operations in its list', async () => {
    for (const headers of [
      { origin: 'http://127.0.0.1:1' },
      { origin: undefined },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-mode': 'navigate' },
      { 'content-type': 'text/plain' },
      { cookie: undefined },
    ]) {
      expect((await prepare('b', headers)).status).toBe(403)
    }
    for (const name of ['readHealth', 'putObject', '__proto__', '']) {
      const { status } = await rawRequest(server.origin, {
        method: 'POST',
        path: `${access.basePath}prepare/${name}`,
        headers: { ...headersOfCall(server.origin), cookie },
        body: JSON.stringify({ environmentId, params: OBJECT }),
      })
      expect([name, status]).toEqual([name, 400])
    }
    expect(asked).toEqual([])
  })

  test('a name that a file system or a terminal could misread is replaced', {
    tags: ['slow'],
  }, async () => {
    for (const [name, saved] of [
      ['../../.ssh/config', 'filename="config"'],
      ['a\r\nset-cookie: x=1', 'filename="download"'],
      ['safe\u202egnp.exe', 'filename="download"'],
      ['.bashrc', 'filename="download"'],
      ['größe "1".txt', 'filename="download"'],
      ['größe.txt', "filename*=utf-8''gr%c3%b6%c3%9fe.txt"],
    ] as const) {
      const { headers } = await save(await prepared(name))
      expect(headers).toContain(saved)
      expect(headers).not.toContain('set-cookie')
    }
  })

  test('a failure of the server is an answer to the page, and leaves no name', async () => {
    answer = (_, response) => {
      const error = { code: 'PRODUCT_NOT_FOUND', message: 'It does not exist.' }
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ version: 1, status: 'error', requestId: null, error }))
    }
    const { status, body } = await prepare()
    expect([status, JSON.parse(body).error.code]).toEqual([404, 'PRODUCT_NOT_FOUND'])
  })

  test('an object of several ranges is saved whole, and cut off where it is replaced', {
    tags: ['slow'],
  }, async () => {
    const size = RANGE_BYTES + 5
    const bytes = Buffer.alloc(size, 'a')
    let tag = '"1"'
    answer = (request, response) => {
      const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range!)!
      const condition = request.headers['if-range']
      if (condition !== undefined && condition !== tag) {
        response.writeHead(200, { etag: tag, 'content-length': size }).end(bytes)
        return
      }
      const part = bytes.subarray(Number(from), Number(to) + 1)
      const range = `bytes ${from}-${Number(from) + part.length - 1}/${size}`
      response.writeHead(206, { etag: tag, 'content-range': range, 'content-length': part.length })
      response.end(part)
    }
    const whole = await save(await prepared())
    expect([whole.body.length, asked.map(({ range }) => range)]).toEqual([
      size,
      [`bytes=0-${RANGE_BYTES - 1}`, `bytes=${RANGE_BYTES}-${2 * RANGE_BYTES - 1}`],
    ])
    const path = await prepared()
    tag = '"2"'
    const cut = await save(path)
    expect(cut.headers).toContain(`content-length: ${size}`)
    expect(cut.body.length).toBeLessThan(size)
  })

  test('an empty object is an empty file', async () => {
    answer = (request, response) => {
      if (request.headers.range === undefined) {
        response.writeHead(200, { 'content-length': 0 }).end()
        return
      }
      const error = { code: 'RANGE_INVALID', message: 'It has no such range.' }
      response.writeHead(416, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ version: 1, status: 'error', requestId: null, error }))
    }
    const { status, headers, body } = await save(await prepared())
    expect([status, body]).toEqual([200, ''])
    expect(headers).toContain('content-length: 0')
  })

  test('a browser that reads nothing stops the server, so nothing is kept in memory', {
    tags: ['slow'],
  }, async () => {
    const size = 256 * MIB
    let [written, isWaiting] = [0, false]
    answer = async (_, response) => {
      response.writeHead(200, { 'content-length': size })
      for (; written < size; written += MIB) {
        if (response.write(Buffer.alloc(MIB, written / MIB))) continue
        isWaiting = true
        await new Promise((resolve) => response.once('drain', resolve))
        isWaiting = false
      }
      response.end()
    }
    const request = { method: 'GET', path: await prepared(), headers: { ...SAVED, cookie } }
    const socket = await opened(rawHead(server.origin, request))
    socket.pause()
    await whenBlocked(
      () => isWaiting,
      () => written,
    )
    expect(written).toBeLessThan(BUFFERED_BYTES_MAX)
    let received = 0
    socket.on('data', (chunk) => {
      received += chunk.length
    })
    socket.resume()
    await new Promise((resolve) => socket.once('close', resolve))
    expect(written).toBe(size)
    expect(received).toBeGreaterThan(size)
  })

  test('downloads beyond those at a time are rejected until one has ended', {
    tags: ['slow'],
  }, async () => {
    const paths = await Promise.all(Array.from({ length: TRANSFERS_MAX }, () => prepared()))
    expect((await prepare()).status).toBe(503)
    expect((await save(paths[0]!)).status).toBe(200)
    await expect.poll(async () => (await prepare()).status).toBe(200)
  })

  test('a name that the browser does not ask for ends, and all end with the page', async () => {
    const short = new Downloads(() => 'name', 1)
    const offer = short.offer()
    expect(await offer.taken).toBeNull()
    expect(short.take('name', {} as ServerResponse)).toBe(false)

    const path = await prepared()
    await rawRequest(server.origin, start())
    expect((await save(path)).status).toBe(403)
    access.renew()
    await rawRequest(server.origin, start())
    cookie = access.setCookie.split(';')[0]!
    const name = path.split('/').at(-1)
    expect((await save(`${access.basePath}download/${name}`)).status).toBe(404)
  })
})

const NOTHING = {
  'sec-fetch-site': undefined,
  'sec-fetch-mode': undefined,
  'sec-fetch-dest': undefined,
}

describe('an upload', () => {
  test('a file is sent as it is, with the media type that the page names', async () => {
    const received = Promise.withResolvers<[IncomingMessage, string]>()
    answer = async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      received.resolve([request, text])
      response.writeHead(201, { 'content-type': 'application/json' }).end('{}')
    }
    expect((await upload(HTML)).status).toBe(200)
    const [{ method, url, headers }, text] = await received.promise
    expect([method, text]).toEqual(['PUT', HTML])
    expect(url).toMatch(/\/buckets\/bkt_1\/objects\/a%2Fb\.html$/)
    expect(headers).toMatchObject({
      'content-type': 'text/html',
      'content-length': String(HTML.length),
      'idempotency-key': expect.stringMatching(/^opn_/),
    })
  })

  test('another page, and a request without its headers, upload nothing', {
    tags: ['slow'],
  }, async () => {
    const { host } = new URL(server.origin)
    const attacks: readonly [string, HeaderMap][] = [
      ['another origin', { origin: 'http://127.0.0.1:1' }],
      ['no origin', { origin: undefined }],
      ['an opaque origin', { origin: 'null' }],
      ['another site', { 'sec-fetch-site': 'cross-site' }],
      ['a form', { 'sec-fetch-mode': 'navigate' }],
      ['a body of a form', { 'content-type': 'multipart/form-data; boundary=a' }],
      ['a call', { 'content-type': 'application/json' }],
      ['no fetch metadata', NOTHING],
      ['no cookie', { cookie: undefined }],
      ['DNS rebinding', { host: host.replace('127.0.0.1', 'attacker.test') }],
    ]
    for (const [name, headers] of attacks) {
      expect([name, (await upload(HTML, headers)).status]).toEqual([name, 403])
    }
    expect((await upload(HTML, { [CALL_HEADER]: undefined })).status).toBe(400)
    expect((await upload(HTML, { [CALL_HEADER]: '%' })).status).toBe(400)
    const call = { environmentId, params: OBJECT, contentType: 'a\r\nx: y' }
    const header = encodeBase64Url(Buffer.from(JSON.stringify(call)))
    expect((await upload(HTML, { [CALL_HEADER]: header })).status).toBe(400)
    expect(asked).toEqual([])
  })

  test('a file above the bound is rejected before the server is asked', {
    tags: ['slow'],
  }, async () => {
    const { status, body } = await upload('x'.repeat(CONSOLE_OBJECT_BYTES_MAX + 1))
    expect([status, JSON.parse(body).error.code]).toEqual([413, 'PLATFORM_BODY_TOO_LARGE'])
    expect(asked).toEqual([])
  })

  test('a server that reads nothing stops the page, so nothing is kept in memory', {
    tags: ['slow'],
  }, async () => {
    const size = CONSOLE_OBJECT_BYTES_MAX
    const reading = Promise.withResolvers<void>()
    const digest = Promise.withResolvers<string>()
    answer = async (request, response) => {
      await reading.promise
      const hash = createHash('sha256')
      for await (const chunk of request) hash.update(chunk)
      digest.resolve(hash.digest('hex'))
      response.writeHead(201, { 'content-type': 'application/json' }).end('{}')
    }
    const path = `${access.basePath}upload/putObject`
    const headers = { ...uploadHeaders(), 'content-length': String(size) }
    const socket = await opened(rawHead(server.origin, { method: 'POST', path, headers }))
    const hash = createHash('sha256')
    let [written, isWaiting] = [0, false]
    const sent = (async () => {
      for (; written < size; written += MIB) {
        const bytes = Buffer.alloc(MIB, written / MIB)
        hash.update(bytes)
        if (socket.write(bytes)) continue
        isWaiting = true
        await new Promise((resolve) => socket.once('drain', resolve))
        isWaiting = false
      }
    })()
    await whenBlocked(
      () => isWaiting,
      () => written,
    )
    expect(written).toBeLessThan(BUFFERED_BYTES_MAX)
    reading.resolve()
    await sent
    expect(await digest.promise).toBe(hash.digest('hex'))
    socket.destroy()
  })

  test('a file that the browser stops sending is not stored', async () => {
    const ended = Promise.withResolvers<string>()
    answer = async (request) => {
      try {
        for await (const _ of request);
        ended.resolve('whole')
      } catch {
        ended.resolve('cut off')
      }
    }
    const path = `${access.basePath}upload/putObject`
    const headers = { ...uploadHeaders(), 'content-length': '100' }
    const socket = await opened(rawHead(server.origin, { method: 'POST', path, headers }))
    socket.write('x')
    await expect.poll(() => asked.length).toBe(1)
    socket.destroy()
    expect(await ended.promise).toBe('cut off')
  })
})

function opened(head: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(server.origin)
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(head)
      resolve(socket)
    })
    socket.on('error', reject)
  })
}

/** Waits until the writer has waited for its reader for a time. */
async function whenBlocked(isWaiting: () => boolean, written: () => number): Promise<void> {
  for (let before = -1; ; ) {
    await pause(250)
    const at = written()
    if (at > 0 && isWaiting() && at === before) return
    before = at
  }
}
