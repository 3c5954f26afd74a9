/** Responses beside the runtime, on systems that have the functions for it. */
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SendingRates } from '../sending-rates.ts'
import { ConnectionStreams } from './connection-streams.ts'

const DEADLINE = { timeout: 60_000 }
const PIECE = 100_000

const streams = ConnectionStreams.open()
const rates = SendingRates.open()
let server: Bun.Server<undefined>
let body: ReadableStream<Uint8Array>
let idleMillis = 60_000
/** Results of `send`. */
let sent: boolean[] = []

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 3000000\r\nx-name: caf\u00e9\r\n\r\n'

beforeAll(() => {
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request, self) {
      if (request.url.endsWith('/short')) return new Response('short')
      const descriptor = rates!.find(self.requestIP(request)!)!
      self.timeout(request, 0)
      const { signal } = request
      sent.push(await streams!.send(descriptor, { head: HEAD, body, signal, idleMillis }))
      return new Response(null)
    },
  })
})
afterAll(() => server.stop(true))

interface Received {
  readonly socket: Socket
  readonly bytes: () => Buffer
  readonly closed: Promise<void>
}

function request(text: string): Received {
  const socket = connect({ host: '127.0.0.1', port: server.port! })
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => undefined)
  socket.write(text)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  return { socket, bytes: () => Buffer.concat(chunks), closed }
}

const LONG = 'GET /long HTTP/1.1\r\nhost: a.test\r\n\r\n'
const SHORT = 'GET /short HTTP/1.1\r\nhost: a.test\r\n\r\n'

interface Source {
  pieces: number
  isCancelled: boolean
}

/** A body of this many pieces, each with its number, which may fail after them. */
function bodyOf(pieces: number, failure?: Error): Source {
  const source: Source = { pieces: 0, isCancelled: false }
  body = new ReadableStream({
    pull(controller) {
      if (source.pieces === pieces) {
        if (failure === undefined) controller.close()
        else controller.error(failure)
        return
      }
      controller.enqueue(new Uint8Array(PIECE).fill(source.pieces))
      source.pieces += 1
    },
    cancel() {
      source.isCancelled = true
    },
  })
  return source
}

const descriptors = () => new Bun.Glob('*').scanSync({ cwd: '/proc/self/fd', onlyFiles: false })
const openDescriptors = () => [...descriptors()].length

test.runIf(streams !== null)(
  'a peer gets the head and every byte, and then the connection ends',
  async () => {
    const before = openDescriptors()
    sent = []
    for (let i = 0; i < 3; i++) {
      bodyOf(30)
      const { bytes, closed } = request(LONG)
      await closed
      const expected = Buffer.concat([
        Buffer.from(HEAD, 'latin1'),
        ...Array.from({ length: 30 }, (_, number) => new Uint8Array(PIECE).fill(number)),
      ])
      expect(bytes().equals(expected)).toBe(true)
    }
    await expect.poll(() => sent, DEADLINE).toEqual([true, true, true])
    await expect.poll(openDescriptors, DEADLINE).toBeLessThanOrEqual(before)
  },
)

test.runIf(streams !== null)('a stream that fails ends the connection too early', async () => {
  bodyOf(3, new Error('the store has ended'))
  const { bytes, closed } = request(LONG)
  await closed
  expect(bytes().length).toBe(HEAD.length + 3 * PIECE)
})

test.runIf(streams !== null)(
  'a slow peer holds the source back, and one that left ends it',
  { tags: ['slow'] },
  async () => {
    const before = openDescriptors()
    sent = []
    const source = bodyOf(10_000)
    const slow = request(LONG)
    slow.socket.pause()
    await expect.poll(() => source.pieces, DEADLINE).toBeGreaterThan(0)
    // The buffers of the system are full once the number of pieces stays.
    for (let last = -1; last !== source.pieces; await Bun.sleep(500)) last = source.pieces
    expect(source.pieces).toBeLessThan(1_000)
    expect(source.isCancelled).toBe(false)
    slow.socket.destroy()
    await expect.poll(() => source.isCancelled, DEADLINE).toBe(true)
    await expect.poll(() => sent, DEADLINE).toEqual([true])
    await expect.poll(openDescriptors, DEADLINE).toBeLessThanOrEqual(before)
  },
)

test.runIf(streams !== null)('a peer that takes nothing for the time given is cut', async () => {
  const source = bodyOf(10_000)
  idleMillis = 100
  const slow = request(LONG)
  slow.socket.pause()
  await expect.poll(() => source.isCancelled, DEADLINE).toBe(true)
  idleMillis = 60_000
  slow.socket.destroy()
})

test.runIf(streams !== null)('a request on the same connection is not answered', async () => {
  bodyOf(30)
  const { socket, bytes, closed } = request(LONG)
  socket.write(SHORT)
  await closed
  const text = bytes().toString('latin1')
  expect(text.startsWith(HEAD)).toBe(true)
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1)
})

test.runIf(streams !== null)('a connection of an earlier response may be used', async () => {
  bodyOf(30)
  const { socket, bytes, closed } = request(SHORT)
  await expect.poll(() => bytes().toString('latin1'), DEADLINE).toMatch(/short$/)
  const { length } = bytes()
  socket.write(LONG)
  await closed
  expect(bytes().length).toBe(length + HEAD.length + 30 * PIECE)
})

test.runIf(streams !== null)('a descriptor that is not open sends nothing', async () => {
  bodyOf(1)
  const { signal } = new AbortController()
  const response = { head: HEAD, body, signal, idleMillis }
  expect(await streams!.send(100_000, response)).toBe(false)
})
