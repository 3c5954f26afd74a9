/** Goal: every message is charged to the rate of its key, and a ping beyond it waits. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { functionManifest } from '../../../../testing/products.ts'
import { openRealtimeSession, type RealtimeSession } from '../../../../testing/realtime/sessions.ts'
import { nextTurn } from '../../../system/event-loop.ts'
import { realSystem, TestSystem } from '../../../system/system.ts'
import { applicationLimits } from '../../rate-limits.ts'

/** Calls a second, and twice as many at once. */
const RATE = 5

let clock: TestSystem
let gateway: TestGateway

beforeAll(async () => {
  clock = new TestSystem({ millis: realSystem().nowMillis() })
  const manifest = { clients: ['public'] as const, returns: { type: 'any' } as const }
  gateway = await openTestGateway({
    functions: [functionManifest('chat.one', { ...manifest, clients: [...manifest.clients] })],
    tables: [],
    system: clock,
    limits: applicationLimits(clock),
    handlers: { 'chat.one': () => 1 },
  })
})
afterAll(() => gateway.close())

async function authenticated(): Promise<{ session: RealtimeSession; key: string }> {
  const key = gateway.issueKey('public', RATE)
  const session = await openRealtimeSession(gateway)
  session.send({ type: 'authenticate', applicationKey: key })
  await session.next('authenticated')
  return { session, key }
}

async function statusOfCall(key: string): Promise<number> {
  const body = { version: 1, target: 'channel:production', function: 'chat.one' }
  const response = await gateway.application.fetch(
    new Request('http://localhost/v1/query', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': key },
      body: JSON.stringify({ ...body, arguments: { type: 'object', value: [] } }),
    }),
  )
  return response.status
}

test('a ping beyond the rate of its key waits, and only the newest one is answered', async () => {
  const { session, key } = await authenticated()
  for (let i = 1; i <= 20; i++) session.send({ type: 'ping', nonce: `${i}` })
  await nextTurn()
  // The authentication took one of ten.
  expect(session.of('pong').at(-1)).toMatchObject({ nonce: '9' })
  expect(await statusOfCall(key)).toBe(429)
  gateway.realtime.tick()
  expect(session.of('pong')).toHaveLength(9)
  clock.advance(1_000)
  gateway.realtime.tick()
  expect(session.of('pong').slice(9)).toMatchObject([{ nonce: '20' }])
  expect(await statusOfCall(key)).toBe(200)
  session.drop()
})

test('an unsubscribe is charged to the calls that follow, and is done in any case', async () => {
  const { session, key } = await authenticated()
  for (let i = 0; i < 15; i++) session.send({ type: 'unsubscribe', subscriptionId: 'none' })
  await session.next('unsubscribed', 15)
  clock.advance(1_000)
  expect(await statusOfCall(key)).toBe(429)
  clock.advance(1_000)
  expect(await statusOfCall(key)).toBe(200)
  session.drop()
})

test('a long message is charged as a long body is', async () => {
  const { session, key } = await authenticated()
  const ping = JSON.stringify({ version: 1, type: 'ping' })
  session.send(`${' '.repeat(40_000)}${ping}`)
  await session.next('pong')
  // The authentication took one of ten, and the message three.
  for (let i = 0; i < 6; i++) expect(await statusOfCall(key)).toBe(200)
  expect(await statusOfCall(key)).toBe(429)
  session.drop()
})
