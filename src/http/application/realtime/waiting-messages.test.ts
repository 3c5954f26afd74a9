/** Goal: messages that wait for the authentication are charged to the address of their sender. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { functionManifest } from '../../../../testing/products.ts'
import { openRealtimeSession } from '../../../../testing/realtime/sessions.ts'
import { realSystem } from '../../../system/system.ts'
import { Transfers } from '../../transfers/transfers.ts'

const KIB = 1024
/** A quarter of it, 256 KiB, is for one address. */
const BUDGET_BYTES = 1024 * KIB
const LONG = ' '.repeat(60 * KIB)

const transfers = new Transfers(realSystem(), {
  unfinishedBodyBytesMax: BUDGET_BYTES,
  unsentAnswerBytesMax: BUDGET_BYTES,
})
let gateway: TestGateway

beforeAll(async () => {
  gateway = await openTestGateway({
    functions: [functionManifest('chat.list', { clients: ['confidential'] })],
    tables: [],
    handlers: {},
    transfers,
  })
})
afterAll(() => gateway.close())

test('messages that wait on all connections of an address hold its share at most', async () => {
  const first = await openRealtimeSession(gateway, '192.0.2.1')
  const second = await openRealtimeSession(gateway, '192.0.2.1')
  const other = await openRealtimeSession(gateway, '192.0.2.2')
  const authenticate = { type: 'authenticate', applicationKey: gateway.key }
  // The first message of each is processed when this function waits; the others follow it.
  for (const session of [first, second, other]) session.send(authenticate)
  for (let i = 0; i < 3; i++) first.send(LONG)
  second.send(LONG)
  expect(first.closed).toBeNull()
  expect(transfers.bodies.used).toBeGreaterThan(4 * LONG.length)
  second.send(LONG)
  expect(second.closed?.code).toBe(1008)
  expect(second.of('error')).toMatchObject([{ error: { code: 'RATE_LIMITED', retryable: true } }])
  other.send(LONG)
  other.send(LONG)
  expect(other.closed).toBeNull()
  for (const session of [first, other]) {
    await session.closeCode()
    session.drop()
  }
  second.drop()
  await expect.poll(() => transfers.bodies.used).toBe(0)
})
