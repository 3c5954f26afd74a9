/** Tests results of any length over a real connection. Results over 14 KiB are streamed. */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'

const FIELDS = { count: { type: 'float64' } } as const

let gateway: TestGateway
let server: Bun.Server<undefined>

beforeAll(async () => {
  const functions = [
    functionManifest('a.text', {
      clients: ['confidential'],
      arguments: FIELDS,
      returns: { type: 'string' },
    }),
  ]
  const textOf = (count: number): string => 'é'.repeat(count)
  gateway = await openTestGateway({
    functions,
    tables: [],
    handlers: { 'a.text': (_, { count }) => textOf(count as number) },
    readsBodies: false,
  })
  const { application } = gateway
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => application.fetch(request),
  })
})
afterAll(async () => {
  await server.stop(true)
  await gateway.close()
})

function requestBody(count: number): string {
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, count)
  const value = { type: 'float64', value: bits.getBigUint64(0).toString(16).padStart(16, '0') }
  return JSON.stringify({
    version: 1,
    target: 'channel:production',
    function: 'a.text',
    arguments: { type: 'object', value: [{ key: 'count', value }] },
  })
}

const headers = () => ({ 'content-type': 'application/json', 'x-service-key': gateway.key })

test('results of every length arrive complete, with the headers of a call', async () => {
  for (const count of [0, 100, 4_000, 6_900, 7_000, 7_100, 8_192, 100_000, 2_000_000]) {
    const reply = await fetch(new URL('/v1/query', server.url), {
      method: 'POST',
      headers: headers(),
      body: requestBody(count),
    })
    const answered = await reply.text()
    if (reply.status !== 200) throw new Error(answered)
    const { result } = JSON.parse(answered) as { result: { value: string } }
    expect([reply.status, result.value.length]).toEqual([200, count])
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(reply.headers.get('x-service-release-id')).toBe(gateway.releaseId)
  }
})

test('a long response is sent in a few pieces', async () => {
  const body = requestBody(20_000)
  const lines = Object.entries({ host: 'app.test', ...headers(), 'content-length': body.length })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let text = ''
  const socket = connect(server.port!, '127.0.0.1', () => {
    socket.write(`POST /v1/query HTTP/1.1\r\n${head}\r\n${body}`)
  })
  const pieces: number[] = []
  socket.on('data', (chunk) => {
    pieces.push(chunk.length)
    text += chunk.toString('latin1')
    if (text.endsWith('\r\n0\r\n\r\n')) resolve(text)
  })
  socket.on('error', reject)
  expect(await promise).toContain('"status":"ok"')
  socket.destroy()
  // A head sent in pieces would arrive as a status line, or as a name and a value.
  expect(pieces[0]).toBeGreaterThan(200)
})
