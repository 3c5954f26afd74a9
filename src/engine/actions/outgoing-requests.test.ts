/** The bound on the memory that the requests of all Actions take in the server. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseNetwork } from '../../system/address-ranges.ts'
import { REQUESTS_BYTES_MAX } from '../limits.ts'
import { Requests } from './outgoing-requests.ts'
import { Semaphore } from './semaphore.ts'

let server: Server
let listener: RequestListener = (_, response) => response.end('ok')
beforeAll(async () => {
  server = createServer((request, response) => listener(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** `available` is the part of the bound that the backlog of the runners leaves. */
function requestsOf(available: number) {
  /** `reservations` counts the requests and the parts of responses. */
  const backlog = { bytes: REQUESTS_BYTES_MAX - available, reservations: 0 }
  const { port } = server.address() as AddressInfo
  const network = {
    resolve: async () => [{ address: '127.0.0.1' }],
    dial: () => ({ host: '127.0.0.1', port }),
  }
  const options = { allowedNetworks: [parseNetwork('127.0.0.0/8')!], network }
  const actionBacklogBytes = () => {
    backlog.reservations += 1
    return backlog.bytes
  }
  const requests = new Requests(options, { actionBacklogBytes })
  const semaphore = new Semaphore(16)
  const request = { url: 'http://a.test/', headers: [], redirect: 'follow' } as const
  const send = (body: string | null = null, signal = new AbortController().signal) =>
    requests
      .perform(
        { ...request, method: body === null ? 'GET' : 'PUT', body },
        { hosts: ['a.test'], semaphore, signal },
      )
      .then(
        () => 'succeeded',
        (error: Error) => `${error.name}: ${error.message}`,
      )
  return { backlog, send }
}

const REJECTED = `TypeError: fetch: requests of all Actions hold over ${REQUESTS_BYTES_MAX} bytes`

test('concurrent responses take no more memory than the bound', async () => {
  const { backlog, send } = requestsOf(5_000)
  const finish = Promise.withResolvers<void>()
  listener = (_, response) => {
    response.write('x'.repeat(3_000))
    void finish.promise.then(() => response.end())
  }
  const first = send()
  await expect.poll(() => backlog.reservations).toBe(2)
  expect(await send()).toContain(REJECTED)
  listener = (_, response) => response.end('small')
  expect(await send()).toBe('succeeded')
  const abort = new AbortController()
  listener = (_, response) => response.write('x'.repeat(1_500))
  backlog.reservations = 0
  const second = send(null, abort.signal)
  await expect.poll(() => backlog.reservations).toBe(2)
  finish.resolve()
  expect(await first).toBe('succeeded')
  abort.abort()
  expect(await second).toContain('aborted')
  listener = (_, response) => response.end('x'.repeat(4_500))
  for (let i = 0; i < 4; i++) expect(await send()).toBe('succeeded')
})

test('a response counts with its decompressed size', async () => {
  const { send } = requestsOf(5_000)
  listener = (_, response) => {
    response.setHeader('content-encoding', 'gzip')
    response.end(gzipSync('x'.repeat(10_000)))
  }
  expect(await send()).toContain(REJECTED)
})

test('requests count while they wait for a permit', async () => {
  const { send } = requestsOf(5_000)
  const abort = new AbortController()
  listener = () => {}
  const silent = Array.from({ length: 16 }, () => send(null, abort.signal))
  const waits = send('A'.repeat(4_000), abort.signal)
  expect(await send('A'.repeat(4_000))).toContain(REJECTED)
  abort.abort()
  await Promise.allSettled([...silent, waits])
  listener = (_, response) => response.end('ok')
  expect(await send('A'.repeat(4_000))).toBe('succeeded')
})

test('replies that a runner has not read count', async () => {
  const { backlog, send } = requestsOf(5_000)
  listener = (_, response) => response.end('x'.repeat(4_000))
  expect(await send()).toBe('succeeded')
  backlog.bytes += 2_000
  expect(await send()).toContain(REJECTED)
  backlog.bytes -= 2_000
  expect(await send()).toBe('succeeded')
})
