/**
 * Goal: no peer can make the server hold more than its bounds, and each connection leaves a record.
 * Method: connections without a network, where the test decides when the peer reads.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { functionManifest } from '../../../../testing/products.ts'
import { openRealtimeSession, type RealtimeSession } from '../../../../testing/realtime/sessions.ts'
import { nextTurn } from '../../../system/event-loop.ts'
import { realSystem, TestSystem } from '../../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../../telemetry/log.ts'
import type { CounterName } from '../../../telemetry/metrics/definitions.ts'

const clients = ['confidential', 'public'] as const
const returns = { type: 'any' } as const
const FUNCTIONS = [
  functionManifest('chat.huge', { clients: [...clients], returns }),
  functionManifest('chat.list', { clients: [...clients], returns }),
  functionManifest('chat.long', { clients: [...clients], returns }),
  functionManifest('chat.send', { kind: 'mutation', clients: [...clients], returns }),
]
const LIST = {
  type: 'subscribe',
  subscriptionId: 'one',
  target: 'channel:production',
  function: 'chat.list',
  arguments: { type: 'object', value: [] },
}
const PEER = '192.0.2.7'

let clock: TestSystem
let log: MemoryLog
let gateway: TestGateway
let opened: RealtimeSession[] = []

beforeAll(async () => {
  clock = new TestSystem({ millis: realSystem().nowMillis() })
  log = memoryLog()
  gateway = await openTestGateway({
    functions: FUNCTIONS,
    tables: [{ name: 'messages', fields: { body: { type: 'string' } }, indexes: [] }],
    realtime: {
      connectionsMax: 20,
      connectionsPerCredentialMax: 3,
      connectionsPerPeerMax: 5,
      memoryBytesMax: 256 * 1024 * 1024,
    },
    system: clock,
    log: log.log,
    handlers: {
      // 1 MiB as it is stored.
      'chat.huge': () => Array.from({ length: 25 }, () => new Array(9_000).fill(0.5)),
      'chat.list': async (ctx) => (await ctx.range({ table: 'messages' })).documents.length,
      // Several parts.
      'chat.long': async (ctx) =>
        'x'.repeat(200_000 + (await ctx.range({ table: 'messages' })).documents.length),
      'chat.send': (ctx) => ctx.insert('messages', { body: 'hello' }),
    },
  })
})
afterEach(() => {
  for (const session of opened) session.drop()
  opened = []
})
afterAll(() => gateway.close())

async function open(peer = PEER): Promise<RealtimeSession> {
  const session = await openRealtimeSession(gateway, peer)
  opened.push(session)
  return session
}

async function authenticated(applicationKey = gateway.key): Promise<RealtimeSession> {
  const session = await open()
  session.send({ type: 'authenticate', applicationKey })
  await session.next('authenticated')
  return session
}

async function commit(): Promise<void> {
  const operationId = clock.ids.make('opn')
  const { type: _, subscriptionId: __, ...envelope } = { ...LIST, version: 1, operationId }
  const response = await gateway.application.fetch(
    new Request('http://localhost/v1/mutation', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': gateway.key },
      body: JSON.stringify({ ...envelope, function: 'chat.send' }),
    }),
  )
  expect(response.status).toBe(200)
}

describe('connections', () => {
  test('connections beyond the bound of a peer are BUSY, unlike those of other peers', async () => {
    for (let i = 0; i < 5; i++) await open()
    await expect(open()).rejects.toThrow('BUSY')
    await open('192.0.2.8')
    opened[0]!.drop()
    await open()
  })

  test('connections beyond the bound of a credential end when they authenticate', async () => {
    const first = await authenticated()
    await authenticated()
    await authenticated()
    const fourth = await open()
    fourth.send({ type: 'authenticate', applicationKey: gateway.key })
    expect((await fourth.next('error')).error).toMatchObject({ code: 'BUSY', retryable: true })
    expect(fourth.closed?.code).toBe(1008)
    first.drop()
    await authenticated()
  })

  test('the component is unavailable while connections beyond the total are BUSY', async () => {
    const status = () => gateway.application.health().status
    for (let i = 0; i < 17; i++) await open(`192.0.2.${i}`)
    expect(status()).toBe('healthy')
    await open('192.0.2.17')
    expect(status()).toBe('degraded')
    await open('192.0.2.18')
    await open('192.0.2.19')
    expect(status()).toBe('unavailable')
    await expect(open('192.0.2.20')).rejects.toThrow('BUSY')
    opened.pop()!.drop()
    expect(status()).toBe('degraded')
  })
})

describe('messages', () => {
  test('messages beyond the rate of a connection end it', async () => {
    const [session, other] = [await authenticated(), await authenticated()]
    for (let i = 0; i < 2_001; i++) session.send({ type: 'ping' })
    expect((await session.next('error')).error.code).toBe('RATE_LIMITED')
    expect(session.closed?.code).toBe(1008)
    other.send({ type: 'ping' })
    await other.next('pong')
  })

  test('more than 4 MiB of messages that wait for the first one end the connection', async () => {
    const session = await open()
    session.send({ type: 'authenticate', applicationKey: gateway.key })
    // The connection has not processed the first one yet, and processes them in order.
    for (let i = 0; i < 70; i++) session.send(' '.repeat(64 * 1024))
    expect((await session.next('error')).error.code).toBe('RATE_LIMITED')
    expect(await session.closeCode()).toBe(1008)
  })

  test('a peer that reads nothing loses its connection once too many messages wait', async () => {
    const session = await authenticated()
    session.isReading = false
    for (let i = 0; i < 1_900; i++) session.send({ type: 'unsubscribe', subscriptionId: 'none' })
    expect(await session.closeCode()).toBe(1008)
    expect(session.closed?.reason).toBe('LIMIT_EXCEEDED')
    expect(session.of('unsubscribed')).toHaveLength(1)
  })

  test('waiting pings get one answer, to the newest, once the peer reads again', async () => {
    const session = await authenticated()
    session.isReading = false
    for (let i = 0; i < 1_900; i++) session.send({ type: 'ping', nonce: `${i}` })
    // By then all of them are processed, since none waits for anything.
    await nextTurn()
    session.read()
    expect(session.of('pong')).toMatchObject([{ nonce: '0' }, { nonce: '1899' }])
    expect(session.closed).toBeNull()
  })

  test.each<[string, object]>([
    ['a nonce of more than 128 characters', { type: 'ping', nonce: 'n'.repeat(129) }],
    ['an empty subscription ID', { ...LIST, subscriptionId: '' }],
    ['a subscription ID of 65 characters', { ...LIST, subscriptionId: 's'.repeat(65) }],
    ['a subscription ID with a dot', { ...LIST, subscriptionId: 'a.b' }],
    ['arguments that are not an object', { ...LIST, arguments: { type: 'null' } }],
  ])('a message with %s ends the connection', async (_, message) => {
    const session = await authenticated()
    session.send(message)
    expect(await session.next('error')).toMatchObject({ subscriptionId: null })
    expect(await session.closeCode()).toBe(1008)
  })
})

describe('subscriptions', () => {
  test('subscriptions beyond 1,000 of a connection are rejected, and the others stay', async () => {
    const session = await authenticated()
    for (let i = 0; i < 1_000; i++) session.send({ ...LIST, subscriptionId: `s${i}` })
    await session.next('state', 1_000)
    session.send({ ...LIST, subscriptionId: 'more' })
    expect(await session.next('error')).toMatchObject({
      subscriptionId: 'more',
      error: { code: 'LIMIT_EXCEEDED' },
    })
    // One in use is replaced, and one that has ended leaves its place.
    session.send({ ...LIST, subscriptionId: 's0' })
    await session.next('state', 1_001)
    session.send({ type: 'unsubscribe', subscriptionId: 's0' })
    session.send({ ...LIST, subscriptionId: 'more' })
    expect(await session.next('state', 1_002)).toMatchObject({ subscriptionId: 'more' })
    expect(session.of('error')).toHaveLength(1)
  })

  test('subscriptions need the scope query besides realtime', async () => {
    const session = await authenticated(gateway.issueKey('public', null, ['realtime']))
    session.send(LIST)
    expect(await session.next('error')).toMatchObject({
      subscriptionId: 'one',
      error: { code: 'AUTH_POLICY_DENIED' },
    })
    expect(session.closed).toBeNull()
  })

  test('subscriptions to a result of more than 8 MiB end with LIMIT_EXCEEDED', async () => {
    const session = await authenticated()
    session.send({ ...LIST, function: 'chat.huge' })
    expect((await session.next('error')).error.code).toBe('LIMIT_EXCEEDED')
    expect(session.of('state')).toEqual([])
  })

  test('an unknown subscription is unsubscribed without an error', async () => {
    const session = await authenticated()
    session.send({ type: 'unsubscribe', subscriptionId: 'none' })
    expect(await session.next('unsubscribed')).toMatchObject({ subscriptionId: 'none' })
  })
})

test('a pong does not count a state whose parts are still being sent', async () => {
  const session = await authenticated()
  session.isReading = false
  session.send({ ...LIST, function: 'chat.long' })
  const { parts, snapshotSequence } = await session.next('state')
  session.send({ type: 'ping', nonce: 'during' })
  session.read()
  expect(await session.next('pong')).toMatchObject({ nonce: 'during', snapshotSequence: null })
  await session.next('state', parts)
  session.send({ type: 'ping', nonce: 'after' })
  expect(await session.next('pong', 2)).toMatchObject({ nonce: 'after', snapshotSequence })
})

test('a slow reader gets resync_required and the newest state, and holds no backlog', async () => {
  const [slow, fast] = [await authenticated(), await authenticated()]
  for (const each of [slow, fast]) each.send(LIST)
  const before = Number((await slow.next('state')).result.value.length)
  expect(before).toBeGreaterThan(0)
  await fast.next('state')
  slow.isReading = false
  for (let i = 2; i <= 5; i++) {
    await commit()
    await fast.next('state', i)
  }
  // The message that filled the buffer of the socket is the last one until it drains.
  expect(slow.of('state')).toHaveLength(2)
  slow.read()
  const newest = await slow.next('state', 3)
  expect(slow.messages.slice(-2)).toMatchObject([
    { type: 'resync_required', subscriptionId: 'one', reason: 'slow_consumer' },
    { type: 'state', revision: '3' },
  ])
  expect(newest.result).toEqual(fast.of('state').at(-1).result)
  expect(newest.snapshotSequence).toBe(fast.of('state').at(-1).snapshotSequence)
  expect(fast.of('resync_required')).toEqual([])
})

test('a connection leaves records and counts of what it did', async () => {
  const counts = () => gateway.metrics.collect().counters
  const before = counts()
  const session = await authenticated()
  session.send(LIST)
  await session.next('state')
  session.drop()
  const { requestId } = log.records().findLast(({ event }) => event === 'realtime.authenticated')!
  const records = log
    .records()
    .filter((entry) => entry.requestId === requestId && entry.event.startsWith('realtime.'))
  expect(records.map(({ event }) => event)).toEqual([
    'realtime.opened',
    'realtime.authenticated',
    'realtime.closed',
  ])
  expect(records[2]).toMatchObject({
    closeCode: 1006,
    reason: 'lost',
    subscriptions: 1,
    states: 1,
    resyncs: 0,
    messagesReceived: 2,
    messagesSent: 2,
    clientId: expect.stringMatching(/^app_/),
  })
  const sentBytes = session.messages.reduce((sum, each) => sum + JSON.stringify(each).length, 0)
  expect(records[2]!.sentBytes).toBe(sentBytes)
  const grown = (name: CounterName) => counts()[name] - before[name]
  expect(grown('realtimeConnectionsOpened')).toBe(1)
  expect(grown('realtimeMessagesReceived')).toBe(2)
  expect(grown('realtimeStatesSent')).toBe(1)
  expect(grown('realtimeSentBytes')).toBe(sentBytes)
  expect(grown('realtimeReceivedBytes')).toBe(records[2]!.receivedBytes)
})
