/** What requests of all Actions together may hold in the server. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseNetwork } from '../../system/address-ranges.ts'
import { REQUESTS_BYTES_MAX } from '../limits.ts'
import { Requests } from './outgoing-requests.ts'
import { Slots } from './slots.ts'

let server: Server
let answer: RequestListener = (_, response) => response.end('ok')
beforeAll(async () => {
  server = createServer((request, response) => answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** `room` is what runners leave of the bound. */
function requestsOf(room: number) {
  /** `asked` counts what is to be held: each request, and each part of a response. */
  const backlog = { bytes: REQUESTS_BYTES_MAX - room, asked: 0 }
  const { port } = server.address() as AddressInfo
  const network = {
    resolve: async () => [{ address: '127.0.0.1' }],
    dial: () => ({ host: '127.0.0.1', port }),
  }
  const options = { allowedNetworks: [parseNetwork('127.0.0.0/8')!], network }
  const actionBacklogBytes = () => {
    backlog.asked += 1
    return backlog.bytes
  }
  const requests = new Requests(options, { actionBacklogBytes })
  const turns = new Slots(16)
  const request = { url: 'http://a.test/', headers: [], redirect: 'follow' } as const
  const send = (body: string | null = null, signal = new AbortController().signal) =>
    requests
      .perform(
        { ...request, method: body === null ? 'GET' : 'PUT', body },
        { hosts: ['a.test'], turns, signal },
      )
      .then(
        () => 'answered',
        (error: Error) => `${error.name}: ${error.message}`,
      )
  return { backlog, send }
}

const REFUSED = `TypeError: fetch: requests of all Actions hold over ${REQUESTS_BYTES_MAX} bytes`

test('responses that come in together hold no more than the bound', async () => {
  const { backlog, send } = requestsOf(5_000)
  const finish = Promise.withResolvers<void>()
  answer = (_, response) => {
    response.write('x'.repeat(3_000))
    void finish.promise.then(() => response.end())
  }
  const first = send()
  await expect.poll(() => backlog.asked).toBe(2)
  expect(await send()).toContain(REFUSED)
  answer = (_, response) => response.end('small')
  expect(await send()).toBe('answered')
  const abort = new AbortController()
  answer = (_, response) => response.write('x'.repeat(1_500))
  backlog.asked = 0
  const second = send(null, abort.signal)
  await expect.poll(() => backlog.asked).toBe(2)
  finish.resolve()
  expect(await first).toBe('answered')
  abort.abort()
  expect(await second).toContain('aborted')
  answer = (_, response) => response.end('x'.repeat(4_500))
  for (let i = 0; i < 4; i++) expect(await send()).toBe('answered')
})

test('a response counts as what it is decompressed to', async () => {
  const { send } = requestsOf(5_000)
  answer = (_, response) => {
    response.setHeader('content-encoding', 'gzip')
    response.end(gzipSync('x'.repeat(10_000)))
  }
  expect(await send()).toContain(REFUSED)
})

test('requests count while they wait for their turn', async () => {
  const { send } = requestsOf(5_000)
  const abort = new AbortController()
  answer = () => {}
  const silent = Array.from({ length: 16 }, () => send(null, abort.signal))
  const waits = send('A'.repeat(4_000), abort.signal)
  expect(await send('A'.repeat(4_000))).toContain(REFUSED)
  abort.abort()
  await Promise.allSettled([...silent, waits])
  answer = (_, response) => response.end('ok')
  expect(await send('A'.repeat(4_000))).toBe('answered')
})

test('answers that a runner did not take count', async () => {
  const { backlog, send } = requestsOf(5_000)
  answer = (_, response) => response.end('x'.repeat(4_000))
  expect(await send()).toBe('answered')
  backlog.bytes += 2_000
  expect(await send()).toContain(REFUSED)
  backlog.bytes -= 2_000
  expect(await send()).toBe('answered')
})
