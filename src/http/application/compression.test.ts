/*
 * Goal: responses with results are compressed where the client accepts it, and never one that may
 * carry a secret or a grant. Method: calls over real connections to Functions with long results.
 * Bodies are read as they were sent.
 */
import { connect } from 'node:net'
import zlib from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Loose, TestHandler } from '../../../testing/engine/in-process-pool.ts'
import { type FileServer, openFileServer } from '../../../testing/files/file-servers.ts'
import { ORIGIN } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'
import type { ContentCoding } from '../../system/compression.ts'
import { realSystem } from '../../system/system.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { Transfers } from '../transfers/transfers.ts'

const MIB = 1024 * 1024
/** Stands in a result that must not be compressed. */
const SECRET = 'the secret of the result '.repeat(100)
const DOWNLOAD = { expiresInSeconds: 60, fileName: null }

const transfers = new Transfers(realSystem())
let server: FileServer
let file: string

const query = {
  clients: ['confidential', 'public'],
  arguments: { text: { type: 'string' } },
  returns: { type: 'string' },
} as const satisfies Partial<FunctionManifest>
const mutation = { ...query, kind: 'mutation' } as const
const action = {
  ...query,
  kind: 'action',
  uses: { network: [], secrets: [], storage: 'read' },
} as const

const grant: TestHandler = async (ctx) => {
  const { token } = await ctx.send(['grantDownload', file, DOWNLOAD])
  return SECRET + token
}
const sign: TestHandler = async (ctx) => {
  const { url } = await ctx.send(['signDownload', file, { ...DOWNLOAD, inline: false }])
  return SECRET + url
}

const FUNCTIONS: Readonly<Record<string, readonly [Partial<FunctionManifest>, TestHandler]>> = {
  // `text` is a count of characters, and what they are.
  'a.text': [query, (_, { text }) => textOf(text)],
  'a.random': [query, (_, { text }) => new Uint8Array(Number(text)).map(random).toBase64()],
  'a.fails': [query, () => Promise.reject(new Error(SECRET))],
  'a.private': [{ ...query, compress: false }, () => SECRET],
  'a.granted': [query, grant],
  'a.signed': [query, sign],
  'a.calling': [query, (ctx) => ctx.run('query', 'a.granted', { text: '' })],
  'a.changed': [mutation, () => SECRET],
  'a.guest': [mutation, async (ctx) => SECRET + (await ctx.issueGuest(60))],
  'a.acted': [action, () => SECRET],
}

const textOf = (text: Loose): string => (text as string).slice(0, 1).repeat(Number(text.slice(1)))
const random = () => Math.floor(Math.random() * 256)

beforeAll(async () => {
  const entries = Object.entries(FUNCTIONS)
  server = await openFileServer({
    functions: entries.map(([name, [manifest]]) => functionManifest(name, manifest)).sort(byName),
    tables: [],
    handlers: Object.fromEntries(entries.map(([name, [, handler]]) => [name, handler])),
    transfers,
    readsBodies: false,
  })
  file = await server.upload('bytes of a file '.repeat(10_000))
})
afterAll(() => server.close())

const byName = (a: FunctionManifest, b: FunctionManifest) => (a.name < b.name ? -1 : 1)

function envelope(name: string, text: string): string {
  const kind = FUNCTIONS[name]![0].kind ?? 'query'
  return JSON.stringify({
    version: 1,
    target: 'channel:production',
    function: name,
    arguments: { type: 'object', value: [{ key: 'text', value: { type: 'string', value: text } }] },
    ...(kind === 'mutation' && { operationId: realSystem().ids.make('opn') }),
  })
}

interface Sent {
  readonly acceptEncoding: string | null
  readonly headers?: Readonly<Record<string, string>>
}

/** Calls the Function. The body of the response stays as it was sent. */
function call(name: string, text: string, { acceptEncoding, headers }: Sent): Promise<Response> {
  const kind = FUNCTIONS[name]![0].kind ?? 'query'
  return fetch(`${server.origin}/v1/${kind}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': server.gateway.key,
      // Without a value, the runtime would send its own.
      'accept-encoding': acceptEncoding ?? 'identity',
      ...headers,
    },
    body: envelope(name, text),
    decompress: false,
  } as RequestInit)
}

async function decoded(response: Response): Promise<string> {
  const bytes = await response.bytes()
  const coding = response.headers.get('content-encoding')
  if (coding === 'gzip') return zlib.gunzipSync(bytes).toString()
  if (coding === 'zstd') return Buffer.from(Bun.zstdDecompressSync(bytes)).toString()
  return Buffer.from(bytes).toString()
}

async function resultOf(response: Response): Promise<string> {
  const body = JSON.parse(await decoded(response)) as Loose
  expect(body.requestId).toBe(response.headers.get('x-service-request-id'))
  return body.result.value
}

const encodingOf = ({ headers }: Response) => headers.get('content-encoding')

describe.each<ContentCoding>(['zstd', 'gzip'])('%s', (coding) => {
  test.each([1_000, 10_000, 65_000, 70_000, 1_000_000, 8_000_000])(
    'a result of %d characters arrives compressed',
    async (count) => {
      // The third one is cached, and the fourth one has the compressed form that is kept.
      for (let i = 0; i < 4; i++) {
        const response = await call('a.text', `x${count}`, { acceptEncoding: coding })
        expect(encodingOf(response)).toBe(coding)
        expect(response.headers.get('vary')).toBe('Accept-Encoding')
        expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
        expect((await resultOf(response)).length).toBe(count)
      }
    },
  )

  test('a compressed response has the length of its body', async () => {
    const response = await call('a.text', 'y10000', { acceptEncoding: coding })
    const length = Number(response.headers.get('content-length'))
    expect(length).toBeLessThan(1_000)
    expect((await response.bytes()).length).toBe(length)
  })

  test('texts of every character arrive compressed', async () => {
    for (const character of ['é', '€']) {
      const response = await call('a.text', `${character}50000`, { acceptEncoding: coding })
      expect(encodingOf(response)).toBe(coding)
      expect(await resultOf(response)).toBe(character.repeat(50_000))
    }
  })
})

test('a response that is not compressed says that it depends on Accept-Encoding', async () => {
  for (const acceptEncoding of [
    'identity',
    '',
    'br',
    'gzip;q=0',
    'gzip;q=x',
    `${'a,'.repeat(8_000)}gzip`,
  ]) {
    const response = await call('a.text', 'x5000', { acceptEncoding })
    expect(encodingOf(response)).toBeNull()
    expect(response.headers.get('vary')).toBe('Accept-Encoding')
    expect((await resultOf(response)).length).toBe(5_000)
  }
})

test('a response to a page depends on Origin too', async () => {
  const sent = { acceptEncoding: 'gzip', headers: { origin: ORIGIN } }
  const response = await call('a.text', 'x5000', sent)
  expect([encodingOf(response), response.headers.get('vary')]).toEqual([
    'gzip',
    'Accept-Encoding, Origin',
  ])
})

test('responses are compressed from 1 KiB of bytes on', async () => {
  const sent = { acceptEncoding: 'gzip' }
  const around = (await (await call('a.text', 'x1', sent)).bytes()).length - 1
  const short = await call('a.text', `x${1_023 - around}`, sent)
  expect([encodingOf(short), short.headers.get('vary')]).toEqual([null, null])
  expect((await short.bytes()).length).toBe(1_023)
  expect(encodingOf(await call('a.text', `x${1_024 - around}`, sent))).toBe('gzip')
  // Two bytes each.
  const half = Math.floor((1_023 - around) / 2)
  expect(encodingOf(await call('a.text', `é${half}`, sent))).toBeNull()
  expect(encodingOf(await call('a.text', `é${half + 1}`, sent))).toBe('gzip')
})

test('a text that cannot be shortened much is still whole', async () => {
  for (const acceptEncoding of ['gzip', 'zstd']) {
    const response = await call('a.random', '30000', { acceptEncoding })
    expect(encodingOf(response)).toBe(acceptEncoding)
    expect((await resultOf(response)).length).toBe(40_000)
  }
})

describe('secrets', () => {
  const sent = { acceptEncoding: 'gzip, zstd' }

  test.each([
    ['a Query whose result has a grant', 'a.granted'],
    ['a Query whose result has a signed URL', 'a.signed'],
    ['a Query that calls one whose result has a grant', 'a.calling'],
    ['a Query with `compress: false`', 'a.private'],
    ['a Mutation', 'a.changed'],
    ['a Mutation that issued a guest', 'a.guest'],
    ['an Action', 'a.acted'],
  ])('the response to %s is never compressed', async (_, name) => {
    // Repeats may come from the cache.
    for (let i = 0; i < 3; i++) {
      const response = await call(name, '', sent)
      expect(response.status).toBe(200)
      expect([encodingOf(response), response.headers.get('vary')]).toEqual([null, null])
      expect(await response.text()).toContain(SECRET)
    }
  })

  test('a failure is never compressed', async () => {
    const response = await call('a.fails', '', sent)
    expect([response.status, encodingOf(response)]).toEqual([500, null])
  })

  test('a file and a range of it are never compressed', async () => {
    const granted = server.grantDownload(file)
    const accepts = { 'accept-encoding': 'gzip, zstd' }
    for (const [headers, method, status] of [
      [{}, 'GET', 200],
      [{}, 'HEAD', 200],
      [{ range: 'bytes=0-49999' }, 'GET', 206],
    ] as const) {
      const response = await server.get(granted, { ...accepts, ...headers }, method)
      expect([response.status, encodingOf(response)]).toEqual([status, null])
      expect(response.headers.get('content-length')).toBe(status === 206 ? '50000' : '160000')
    }
    const tag = (await server.get(granted, accepts, 'HEAD')).headers.get('etag')!
    const unchanged = await server.get(granted, { ...accepts, 'if-none-match': tag })
    expect([unchanged.status, encodingOf(unchanged)]).toEqual([304, null])
  })
})

test('a cached result is compressed once for each coding', async () => {
  const deflated = vi.spyOn(zlib, 'deflateRawSync')
  onTestFinished(() => deflated.mockRestore())
  const sent = { acceptEncoding: 'gzip' }
  // The second one is kept, so the third one is the first hit.
  for (let i = 0; i < 3; i++) await call('a.text', 'z20000', sent)
  expect(deflated).toHaveBeenCalledTimes(3)
  for (let i = 0; i < 3; i++) {
    const response = await call('a.text', 'z20000', sent)
    expect(await resultOf(response)).toBe('z'.repeat(20_000))
  }
  expect(deflated).toHaveBeenCalledTimes(3)
})

test('a long result is sent as it is while two others are compressed', async () => {
  const ends = [transfers.compressions.begin()!, transfers.compressions.begin()!]
  expect(transfers.compressions.begin()).toBeNull()
  const sent = { acceptEncoding: 'gzip' }
  const plain = await call('a.text', 'p100000', sent)
  expect([encodingOf(plain), plain.headers.get('vary')]).toEqual([null, 'Accept-Encoding'])
  expect((await resultOf(plain)).length).toBe(100_000)
  // Shorter ones are compressed on the event loop.
  expect(encodingOf(await call('a.text', 'p60000', sent))).toBe('gzip')
  for (const end of ends) end()
  expect(encodingOf(await call('a.text', 'p100000', sent))).toBe('gzip')
})

test('a compressed response that is not read holds the memory of its text', {
  tags: ['slow'],
}, async () => {
  const body = envelope('a.random', String(5.5 * MIB))
  const head = {
    host: 'app.test',
    'content-type': 'application/json',
    'x-service-key': server.gateway.key,
    'accept-encoding': 'gzip',
    'content-length': body.length,
  }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  const { hostname, port } = new URL(server.origin)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  socket.pause()
  socket.write(`POST /v1/query HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  const started = Promise.withResolvers<void>()
  socket.once('readable', () => started.resolve())
  await started.promise
  // The text has a third more characters than the random bytes, and compressed as many bytes.
  expect(transfers.answers.used).toBeGreaterThan((5.5 * MIB * 4) / 3)
  expect(transfers.answers.used).toBeLessThan((5.5 * MIB * 4) / 3 + 1_000)
  expect(socket.read(20)?.toString()).toContain('HTTP/1.1 200')
  socket.destroy()
  await vi.waitFor(() => expect(transfers.answers.used).toBe(0), 60_000)
})
