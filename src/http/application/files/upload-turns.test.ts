/** The turns that uploads take between calls, over real connections. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../../testing/files/file-servers.ts'
import { realSystem } from '../../../system/system.ts'
import { Transfers } from '../../transfers/transfers.ts'

const transfers = new Transfers(realSystem())
const taken: number[] = []
const take = transfers.turns.take.bind(transfers.turns)
transfers.turns.take = (bytes) => {
  taken.push(bytes)
  return take(bytes)
}

let server: FileServer
beforeAll(async () => {
  server = await openFileServer({ transfers })
})
afterAll(() => server.close())
beforeEach(() => void taken.splice(0))

test('a long upload takes a turn for each piece after its first 64 KiB', async () => {
  const bytes = new Uint8Array(512 * 1024)
  await server.upload(bytes)
  const total = taken.reduce((sum, piece) => sum + piece, 0)
  expect(total).toBeGreaterThan(bytes.length - 128 * 1024)
  expect(total).toBeLessThanOrEqual(bytes.length)
})

test('a short upload takes no turn', async () => {
  await server.upload(new Uint8Array(16 * 1024))
  expect(taken).toEqual([])
})

test('calls of applications delay transfers, and requests without a valid key do not', async () => {
  const called = () => transfers.turns.hasCalls(realSystem().monotonicMillis(), 60_000)
  const call = (key: string) => {
    const headers = { 'content-type': 'application/json', 'x-service-key': key }
    return fetch(`${server.origin}/v1/query`, { method: 'POST', headers, body: '{}' })
  }
  expect((await call('rk_sec_v1_unknown')).status).toBe(401)
  expect(called()).toBe(false)
  expect((await call(server.gateway.key)).status).toBe(400)
  expect(called()).toBe(true)
})
