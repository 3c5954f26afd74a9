/** Budgets and turns of transfers at the application origin, over real connections. */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'
import { realSystem } from '../../system/system.ts'
import { applicationLimits } from '../rate-limits.ts'
import { Transfers } from './transfers.ts'

const MIB = 1024 * 1024
const FIELDS = { text: { type: 'string' } } as const

let gateway: TestGateway
let server: Bun.Server<undefined>
const transfers = new Transfers(realSystem(), {
  unfinishedBodyBytesMax: 8 * MIB,
  unsentAnswerBytesMax: 32 * MIB,
})

beforeAll(async () => {
  const definition = {
    clients: ['confidential'],
    arguments: FIELDS,
    returns: { type: 'string' },
  } as const
  gateway = await openTestGateway({
    functions: [functionManifest('a.length', definition), functionManifest('a.long', definition)],
    tables: [],
    handlers: {
      'a.length': (_, { text }) => String((text as string).length),
      'a.long': (_, { text }) => 'x'.repeat(Number(text)),
    },
    limits: applicationLimits({ monotonicMillis: () => 0 }),
    transfers,
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

function envelope(name: string, text: string): string {
  const value = [{ key: 'text', value: { type: 'string', value: text } }]
  return JSON.stringify({
    version: 1,
    target: 'channel:production',
    function: name,
    arguments: { type: 'object', value },
  })
}

const headers = (key = gateway.key) => ({
  'content-type': 'application/json',
  'x-service-key': key,
})

function call(name: string, text: string, key?: string): Promise<Response> {
  const init = { method: 'POST', headers: headers(key), body: envelope(name, text) }
  return fetch(new URL('/v1/query', server.url), init)
}

/** Opens a connection that sends all of its request but the last byte of a body of `length`. */
async function unfinished(length: number): Promise<void> {
  const socket = connect(server.port!, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const lines = Object.entries({ host: 'app.test', ...headers(), 'content-length': length })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`POST /v1/query HTTP/1.1\r\n${head}\r\n${' '.repeat(length - 1)}`)
}

test('a long body is processed, and its memory is released', async () => {
  const reply = await call('a.length', 'x'.repeat(MIB))
  expect(reply.status).toBe(200)
  expect(await reply.json()).toMatchObject({ result: { value: String(MIB) } })
  expect(transfers.bodies.used).toBe(0)
})

test('a rejected body leaves no memory reserved', async () => {
  const init = { method: 'POST', headers: headers(), body: '['.repeat(MIB) }
  const reply = await fetch(new URL('/v1/query', server.url), init)
  expect([reply.status, transfers.bodies.used]).toEqual([400, 0])
})

test('a body beyond the budget is rejected at once, and small calls are not', async () => {
  await unfinished(2 * MIB)
  await expect.poll(() => transfers.bodies.used).toBe(2 * MIB)
  const reply = await call('a.length', 'x'.repeat(MIB))
  expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await reply.json()).toMatchObject({ error: { code: 'BUSY', retryable: true } })
  expect((await call('a.length', 'x')).status).toBe(200)
})

test('the memory of a body is released when its sender disconnects', async () => {
  const socket = connect(server.port!, '127.0.0.1')
  const lines = Object.entries({ host: 'app.test', ...headers(), 'content-length': MIB })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  await expect.poll(() => transfers.bodies.used).toBe(0)
  socket.write(`POST /v1/query HTTP/1.1\r\n${head}\r\n `)
  await expect.poll(() => transfers.bodies.used).toBe(MIB)
  socket.destroy()
  await expect.poll(() => transfers.bodies.used).toBe(0)
})

test('an unread response holds memory until its reader disconnects', async () => {
  const socket = connect(server.port!, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const body = envelope('a.long', String(7.5 * MIB))
  const lines = Object.entries({ host: 'app.test', ...headers(), 'content-length': body.length })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.once('data', () => void socket.pause())
  socket.write(`POST /v1/query HTTP/1.1\r\n${head}\r\n${body}`)
  await expect.poll(() => transfers.answers.used).toBeGreaterThan(7 * MIB)
  const reply = await call('a.long', String(MIB))
  expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1'])
  socket.destroy()
  await expect.poll(() => transfers.answers.used).toBe(0)
  const text = await (await call('a.long', String(MIB))).text()
  expect(text.length).toBeGreaterThan(MIB)
  await expect.poll(() => transfers.answers.used).toBe(0)
})

test('long bodies use up the rate of their credential sooner than small ones', async () => {
  const key = gateway.issueKey('confidential', 5)
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) {
    statuses.push((await call('a.length', 'x'.repeat(MIB), key)).status)
  }
  expect(statuses).toEqual([200, 429, 429])
})

test('long bodies of many senders are parsed one at a time, with credentials in turn', async () => {
  const order: string[] = []
  const turns = new Transfers(realSystem())
  const parse = (key: string) =>
    turns.parseInTurn(key, { aborted: false }, () => void order.push(key))
  await Promise.all(['a', 'a', 'a', 'a', 'b'].map(parse))
  expect(order).toEqual(['a', 'a', 'b', 'a', 'a'])
})
