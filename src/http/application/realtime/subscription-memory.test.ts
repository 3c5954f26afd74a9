/**
 * Goal: the memory of subscriptions is bounded for an address, for a key and in total, and shared
 * memory is charged once. Beyond the bound one subscription ends, and nothing else.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { functionManifest } from '../../../../testing/products.ts'
import { openRealtimeSession, type RealtimeSession } from '../../../../testing/realtime/sessions.ts'
import { realSystem, TestSystem } from '../../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../../telemetry/log.ts'

/** One address may hold 512 KiB. */
const MEMORY_BYTES = 2 * 1024 * 1024
const LIST_CHARACTERS = 200_000
/** The messages of one state of that length. */
const PARTS = 10

let clock: TestSystem
let log: MemoryLog
let gateway: TestGateway
let opened: RealtimeSession[]
/** Runs of the list. */
let runs = 0

beforeEach(async () => {
  const returns = { type: 'any' } as const
  const input = { type: 'optional', inner: returns } as const
  const manifest = { clients: ['confidential' as const], arguments: { input }, returns }
  opened = []
  runs = 0
  log = memoryLog()
  clock = new TestSystem({ millis: realSystem().nowMillis() })
  gateway = await openTestGateway({
    functions: [
      functionManifest('chat.list', manifest),
      functionManifest('chat.send', { ...manifest, kind: 'mutation' }),
      functionManifest('chat.small', manifest),
    ],
    tables: [{ name: 'messages', fields: { body: { type: 'string' } }, indexes: [] }],
    realtime: {
      connectionsMax: 100,
      connectionsPerCredentialMax: 100,
      connectionsPerPeerMax: 100,
      memoryBytesMax: MEMORY_BYTES,
    },
    system: clock,
    log: log.log,
    handlers: {
      'chat.small': () => 1,
      'chat.list': async (ctx) => {
        runs += 1
        const { documents } = await ctx.range({ table: 'messages' })
        return 'x'.repeat(LIST_CHARACTERS + documents.length)
      },
      'chat.send': (ctx) => ctx.insert('messages', { body: 'hello' }),
    },
  })
})
afterEach(async () => {
  for (const session of opened) session.drop()
  expect(held()).toBe(0)
  await gateway.close()
})

const held = (): number => Number(gateway.metrics.collect().gauges.realtimeMemoryBytes)

async function authenticated(peer: string): Promise<RealtimeSession> {
  const session = await openRealtimeSession(gateway, peer)
  opened.push(session)
  session.send({ type: 'authenticate', applicationKey: gateway.key })
  await session.next('authenticated')
  return session
}

function subscribe(session: RealtimeSession, id: string, name: string, input: string): void {
  session.send({
    type: 'subscribe',
    subscriptionId: id,
    target: 'channel:production',
    function: name,
    arguments: {
      type: 'object',
      value: [{ key: 'input', value: { type: 'string', value: input } }],
    },
  })
}

async function commit(): Promise<void> {
  const response = await gateway.application.fetch(
    new Request('http://localhost/v1/mutation', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': gateway.key },
      body: JSON.stringify({
        version: 1,
        target: 'channel:production',
        function: 'chat.send',
        operationId: clock.ids.make('opn'),
        arguments: { type: 'object', value: [] },
      }),
    }),
  )
  expect(response.status).toBe(200)
}

const LIMIT = { error: { code: 'LIMIT_EXCEEDED', retryable: false } }

test('long arguments beyond a quarter end one subscription, and others stay', {
  tags: ['slow'],
}, async () => {
  const [session, other] = [await authenticated('a'), await authenticated('b')]
  const long = 'x'.repeat(60_000)
  for (let i = 0; i < 8; i++) subscribe(session, `s${i}`, 'chat.small', `${i}${long}`)
  await session.next('state', 7)
  expect(await session.next('error')).toMatchObject({ subscriptionId: 's7', ...LIMIT })
  expect(held()).toBeGreaterThan(7 * 60_000)
  expect(gateway.application.health().status).toBe('degraded')
  expect(gateway.metrics.collect().counters.realtimeMemoryRejections).toBe(1)
  const records = log.records().filter(({ event }) => event === 'request.rejected')
  expect(records).toMatchObject([{ errorCode: 'LIMIT_EXCEEDED' }])
  subscribe(other, 's7', 'chat.small', `7${long}`)
  await other.next('state')
  session.send({ type: 'unsubscribe', subscriptionId: 's0' })
  await session.next('unsubscribed')
  subscribe(session, 's7', 'chat.small', `7${long}`)
  await session.next('state', 8)
  expect(session.closed).toBeNull()
  clock.advance(60_000)
  expect(gateway.application.health().status).toBe('healthy')
})

test('a result is charged once for all its readers, and distinct ones each', {
  tags: ['slow'],
}, async () => {
  const session = await authenticated('a')
  for (let i = 0; i < 20; i++) subscribe(session, `same${i}`, 'chat.list', 'same')
  await session.next('state', 20 * PARTS)
  expect(held()).toBeLessThan(1.5 * LIST_CHARACTERS)
  for (let i = 0; i < 4; i++) subscribe(session, `s${i}`, 'chat.list', `${i}`)
  await session.next('error', 3)
  expect(session.of('error')).toMatchObject(Array(3).fill(LIMIT))
  expect(held()).toBeLessThan(MEMORY_BYTES / 4)
})

test('a result without memory is not computed again once its length is known', {
  tags: ['slow'],
}, async () => {
  const session = await authenticated('a')
  // All of them are accepted before the first result.
  for (let i = 0; i < 20; i++) subscribe(session, `s${i}`, 'chat.list', `${i}`)
  await session.next('error', 18)
  expect(session.of('error')).toMatchObject(Array(18).fill(LIMIT))
  expect(runs).toBeLessThan(5)
})

test('a state that a slow reader has not read is charged until it has', async () => {
  const [slow, fast] = [await authenticated('a'), await authenticated('b')]
  slow.isReading = false
  subscribe(slow, 'one', 'chat.list', 'same')
  await slow.next('state')
  subscribe(fast, 'one', 'chat.list', 'same')
  await fast.next('state', PARTS)
  const before = held()
  await commit()
  await fast.next('state', 2 * PARTS)
  expect(held() - before).toBeGreaterThan(LIST_CHARACTERS)
  slow.read()
  await slow.next('state', 2 * PARTS)
  expect(Math.abs(held() - before)).toBeLessThan(1_000)
})

test('a shared Query outlives the subscriber that was charged for it', {
  tags: ['slow'],
}, async () => {
  const [first, second] = [await authenticated('a'), await authenticated('b')]
  subscribe(first, 'one', 'chat.list', 'same')
  await first.next('state', PARTS)
  subscribe(second, 'one', 'chat.list', 'same')
  await second.next('state', PARTS)
  first.drop()
  expect(held()).toBeGreaterThan(LIST_CHARACTERS)
  await commit()
  await second.next('state', 2 * PARTS)
  expect(second.of('error')).toEqual([])
  // The address of the first one has room for two again, and that of the second one for one.
  const third = await authenticated('a')
  for (const id of ['x', 'y']) subscribe(third, id, 'chat.list', `third ${id}`)
  for (const id of ['x', 'y']) subscribe(second, id, 'chat.list', `second ${id}`)
  await third.next('state', 2 * PARTS)
  await second.next('state', 3 * PARTS)
  expect(await second.next('error')).toMatchObject({ subscriptionId: 'y', ...LIMIT })
  expect(third.of('error')).toEqual([])
})
