/** The requests that pass to the main process, which a server on a Unix socket stands for. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Fault } from '../../errors/fault.ts'
import type { ApplicationBinding } from '../../http/application/incoming.ts'
import { Downloads } from '../../http/transfers/downloads.ts'
import { namedResponse, TAKES_NAMED_BYTES } from '../../http/transfers/named-bytes.ts'
import { sizedStreamOf } from '../../http/transfers/sized-streams.ts'
import { TransferTurns } from '../../http/transfers/transfer-turns.ts'
import type { BlobBody } from '../../storage/blobs/blobs.ts'
import { realSystem } from '../../system/system.ts'
import { FORWARDED } from '../peer-addresses.ts'
import { ForwardedRequests } from './forwarded-requests.ts'

const SIZE = 100_000
const content = { sha256: 'a'.repeat(64), size: SIZE }

let directory: string
let main: Bun.Server<undefined>
/** The requests of the main process: their peer, and whether the response may name bytes. */
let asked: { readonly peer: string | null; readonly takesNamedBytes: boolean }[]
let answer: (request: Request) => Response
let open: () => Promise<BlobBody>
let timeTaken: number

const downloads = new Downloads(realSystem(), new TransferTurns(realSystem()), { permitsPerKey: 1 })
const binding = {
  peer: '192.0.2.7',
  takeTime: () => {
    timeTaken += 1
  },
  returnTime: () => {
    timeTaken -= 1
  },
  isAnswered: () => false,
  setTime: () => undefined,
  setRate: () => undefined,
} as Partial<ApplicationBinding> as ApplicationBinding

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'forwarded-'))
  asked = []
  timeTaken = 0
  open = async () => new Uint8Array(10)
  main = Bun.serve({
    unix: join(directory, 'origin'),
    fetch: (request) => {
      const { headers } = request
      asked.push({ peer: headers.get(FORWARDED), takesNamedBytes: headers.has(TAKES_NAMED_BYTES) })
      return answer(request)
    },
  })
})
afterEach(async () => {
  await main.stop(true)
  rmSync(directory, { recursive: true })
})

const forwarded = () =>
  new ForwardedRequests({
    originPath: join(directory, 'origin'),
    s3Host: 's3.example',
    downloads,
    blobs: { open: () => open() },
    reject: (_, { status, code }) => new Response(code, { status }),
  })

const named = (end: number) =>
  namedResponse(
    { content, slice: { start: 0, end } },
    {
      status: 206,
      headers: new Headers({ etag: '"e"', 'access-control-allow-origin': 'https://a.example' }),
    },
  )

const send = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  forwarded().answer(new Request(`http://app.example${path}`, { method, headers }), binding)

test('transfers, development and the S3-compatible API pass to the main process', () => {
  const included = [
    'http://app.example/v1/files/downloads/fil_1',
    'http://app.example/v1/workspaces/w/revisions',
    'http://app.example/v1/s3/bucket/key',
    'http://s3.example/bucket/key',
  ]
  const others = ['http://app.example/v1/query', 'http://app.example/v1/realtime']
  expect(included.map((url) => forwarded().includes(url))).toEqual(included.map(() => true))
  expect(others.map((url) => forwarded().includes(url))).toEqual(others.map(() => false))
})

test('this process sends the named bytes with the other headers of the download', async () => {
  answer = () => named(10)
  open = async () => new TextEncoder().encode('0123456789')
  const response = await send('/v1/files/downloads/fil_1')
  expect(response.status).toBe(206)
  expect([...response.headers]).toEqual([
    ['access-control-allow-origin', 'https://a.example'],
    ['content-length', '10'],
    ['etag', '"e"'],
  ])
  expect(await response.text()).toBe('0123456789')
  expect(asked).toEqual([{ peer: '192.0.2.7', takesNamedBytes: true }])
  expect(timeTaken).toBe(0)
})

test('a client cannot say who it is, nor ask for names', async () => {
  answer = () => new Response('stored')
  const forged = { [FORWARDED]: '203.0.113.9', [TAKES_NAMED_BYTES]: '1' }
  await (await send('/v1/files/uploads/upl_1', forged, 'PUT')).text()
  expect(asked).toEqual([{ peer: '192.0.2.7', takesNamedBytes: false }])
})

test('the main process answers when this process cannot open the bytes', async () => {
  answer = ({ headers }) =>
    headers.has(TAKES_NAMED_BYTES) ? named(10) : new Response('damaged', { status: 500 })
  open = () => Promise.reject(new Fault('PRODUCT_CORRUPT'))
  const response = await send('/v1/s3/bucket/key')
  expect([response.status, await response.text()]).toEqual([500, 'damaged'])
  expect(asked.map(({ takesNamedBytes }) => takesNamedBytes)).toEqual([true, false])
})

test('a download beyond the bound of its address is rejected, and pages may read why', async () => {
  answer = () => named(SIZE)
  open = async () => new Uint8Array(SIZE)
  expect((await send('/v1/files/downloads/fil_1')).status).toBe(206)
  const rejected = await send('/v1/files/downloads/fil_1')
  expect([rejected.status, await rejected.text()]).toEqual([503, 'BUSY'])
  expect(rejected.headers.get('access-control-allow-origin')).toBe('https://a.example')
  expect(asked).toHaveLength(2)
})

test('a short response keeps its length, and a long one is a stream with its length', async () => {
  answer = () => new Response('short')
  const short = await send('/v1/files/downloads/fil_1')
  expect(sizedStreamOf(short)).toBeNull()
  expect(await short.text()).toBe('short')
  answer = () => new Response(new Uint8Array(SIZE))
  const long = await send('/v1/files/downloads/fil_1')
  expect(long.headers.get('content-length')).toBe(String(SIZE))
  expect(sizedStreamOf(long)).not.toBeNull()
  expect((await long.bytes()).length).toBe(SIZE)
})
