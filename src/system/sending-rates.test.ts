/** The rate of a connection, on systems that can bound one. */
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RemoteEnd, SendingRates } from './sending-rates.ts'

const BYTES = new Uint8Array(8 * 1024 * 1024)
/** Less than the system buffers for a connection of this machine at this rate. */
const LOW = 64 * 1024
const DEADLINE = { timeout: 60_000 }

const rates = SendingRates.open()
let ends: RemoteEnd[] = []
let server: Bun.Server<undefined>
beforeAll(() => {
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request, self) {
      ends.push(self.requestIP(request)!)
      return new Response(request.url.endsWith('/long') ? BYTES : 'short')
    },
  })
})
afterAll(() => server.stop(true))

/** Opens a connection, sends one request, and counts what it receives. */
async function connection() {
  ends = []
  const socket: Socket = connect({ host: '127.0.0.1', port: server.port! })
  const got = { bytes: 0 }
  socket.on('data', (data) => {
    got.bytes += data.length
  })
  const ask = (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nhost: a.test\r\n\r\n`)
  ask('/short')
  await expect.poll(() => ends.length, DEADLINE).toBe(1)
  return { socket, got, ask, end: ends[0]! }
}

test.runIf(rates !== null)(
  'a bounded connection sends less than another one meanwhile, and all once it is free',
  { tags: ['slow'] },
  async () => {
    const [bounded, other] = [await connection(), await connection()]
    const descriptor = rates!.find(bounded.end)!
    rates!.limit(descriptor, bounded.end, LOW)
    bounded.ask('/long')
    other.ask('/long')
    await expect.poll(() => other.got.bytes, DEADLINE).toBeGreaterThan(BYTES.length)
    expect(bounded.got.bytes).toBeLessThan(BYTES.length)
    rates!.limit(descriptor, bounded.end, null)
    await expect.poll(() => bounded.got.bytes, DEADLINE).toBeGreaterThan(BYTES.length)
    bounded.socket.destroy()
    other.socket.destroy()
  },
)

test.runIf(rates !== null)('a descriptor of another connection is left alone', async () => {
  const [mistaken, other] = [await connection(), await connection()]
  rates!.limit(rates!.find(other.end)!, mistaken.end, LOW)
  other.ask('/long')
  await expect.poll(() => other.got.bytes, DEADLINE).toBeGreaterThan(BYTES.length)
  mistaken.socket.destroy()
  other.socket.destroy()
})

test.runIf(rates !== null)('an end without a connection has no descriptor', async () => {
  const { socket, end } = await connection()
  expect(rates!.find(end)).not.toBeNull()
  expect(rates!.find({ ...end, address: '127.0.0.2' })).toBeNull()
  expect(rates!.find({ ...end, address: `::ffff:${end.address}` })).toBe(rates!.find(end))
  socket.destroy()
  await expect.poll(() => rates!.find(end), DEADLINE).toBeNull()
})
