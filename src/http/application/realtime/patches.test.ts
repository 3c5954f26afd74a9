import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { functionManifest, publishRelease, REQUEST_ID } from '../../../../testing/products.ts'
import { openMessageCheck } from '../../../../testing/realtime/declared-messages.ts'
import { openRealtimeSession, type RealtimeSession } from '../../../../testing/realtime/sessions.ts'
import { promote } from '../../../product/channels/promote.ts'
import type { TableManifest } from '../../../value/manifest.ts'
import type { ValidatorJson } from '../../../value/validators.ts'
import type { RealtimeVersion } from '../../../wire/realtime.ts'

const clients = ['confidential'] as const
const TABLES: readonly TableManifest[] = [
  {
    name: 'messages',
    fields: { room: { type: 'string' }, body: { type: 'string' } },
    indexes: [{ name: 'byRoom', fields: ['room'], unique: false }],
  },
]
const returns: ValidatorJson = {
  type: 'array',
  items: {
    type: 'object',
    fields: { _id: { type: 'id', table: 'messages' }, body: { type: 'string' } },
  },
}
const FUNCTIONS = [
  functionManifest('chat.list', { clients: [...clients], returns }),
  functionManifest('chat.send', {
    kind: 'mutation',
    clients: [...clients],
    returns: { type: 'any' },
    arguments: { body: { type: 'string' } },
  }),
]
const BODY = 'x'.repeat(200)

let gateway: TestGateway

beforeEach(async () => {
  gateway = await openTestGateway({
    functions: FUNCTIONS,
    tables: TABLES,
    handlers: {
      'chat.list': async (db) => {
        const request = { table: 'messages', index: 'byRoom', equal: ['a'], limit: 1_000 }
        const { documents } = await db.range(request)
        return documents.map(({ _id, body }: { _id: unknown; body: string }) => ({ _id, body }))
      },
      'chat.send': (db, { body }) => db.insert('messages', { room: 'a', body }),
    },
  })
  for (let i = 0; i < 5; i++) await send(`${i}`)
})
afterEach(() => gateway.close())

async function send(name: string): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-service-key': gateway.key }
  const body = { key: 'body', value: { type: 'string', value: `${name} ${BODY}` } }
  const request = new Request('http://localhost/v1/mutation', {
    method: 'POST',
    headers,
    body: JSON.stringify({
      version: 1,
      target: 'channel:production',
      function: 'chat.send',
      operationId: gateway.harness.system.ids.make('opn'),
      arguments: { type: 'object', value: [body] },
    }),
  })
  const reply = await gateway.application.fetch(request, { peer: '192.0.2.9' })
  expect(reply.status).toBe(200)
}

async function authenticated(version: RealtimeVersion): Promise<RealtimeSession> {
  const session = await openRealtimeSession(gateway, undefined, version)
  session.send({ type: 'authenticate', applicationKey: gateway.key })
  await session.next('authenticated')
  return session
}

const SUBSCRIBE = {
  type: 'subscribe',
  subscriptionId: 'one',
  target: 'channel:production',
  function: 'chat.list',
  arguments: { type: 'object', value: [] },
}

async function subscribed(version: RealtimeVersion, more: object = {}): Promise<RealtimeSession> {
  const session = await authenticated(version)
  session.send({ ...SUBSCRIBE, ...more })
  await session.next('state')
  return session
}

// biome-ignore lint/suspicious/noExplicitAny: messages of many shapes.
type Loose = any

const bodiesOf = (list: Loose) => list.value.map((entry: Loose) => entry.value[1].value.value)

describe('version 2', () => {
  test('a change reaches one who takes patches as a patch, and all others as a state', {
    tags: ['slow'],
  }, async () => {
    const takes = await subscribed(2, { patches: true })
    const others = [
      await subscribed(2),
      await subscribed(2, { patches: false }),
      await subscribed(1),
    ]
    await send('new')
    const patch = await takes.next('patch')
    expect(patch).toMatchObject({
      version: 2,
      subscriptionId: 'one',
      base: '1',
      revision: '2',
      path: [],
      remove: [],
      update: [],
      move: [],
    })
    expect(patch.insert).toHaveLength(1)
    expect(patch.insert[0].at).toBe(5)
    for (const other of others) {
      const state = await other.next('state', 2)
      const { snapshotSequence, releaseId } = state
      expect(patch).toMatchObject({ snapshotSequence, releaseId })
      expect(state.result.value[5]).toEqual(patch.insert[0].value)
      expect(bodiesOf(state.result)).toHaveLength(6)
    }
    expect(takes.of('state')).toHaveLength(1)
    const { counters } = gateway.metrics.collect()
    expect(counters).toMatchObject({ realtimePatchesSent: 1, realtimeStatesSent: 8 })
    expect(counters.realtimePatchBytes).toBeGreaterThan(BODY.length)
  })

  test('all messages of a connection are declared ones of its version', {
    tags: ['slow'],
  }, async () => {
    const isDeclared = await openMessageCheck()
    for (const version of [1, 2] as const) {
      const session = await subscribed(version, version === 2 ? { patches: true } : {})
      await send('new')
      await session.next(version === 2 ? 'patch' : 'state', version === 2 ? 1 : 2)
      session.send({ ...SUBSCRIBE, subscriptionId: 'two', function: 'chat.unknown' })
      await session.next('error')
      session.send({ type: 'ping' })
      session.send({ type: 'unsubscribe', subscriptionId: 'one' })
      await session.next('pong')
      await session.next('unsubscribed')
      for (const message of session.messages) {
        expect([message, isDeclared(message, version)]).toEqual([message, true])
      }
    }
  })

  test('subscribers share a patch, each with its own revisions', { tags: ['slow'] }, async () => {
    const early = await subscribed(2, { patches: true })
    await send('first')
    await early.next('patch')
    const late = await subscribed(2, { patches: true })
    await send('second')
    const [second, first] = [await early.next('patch', 2), await late.next('patch')]
    expect(second).toMatchObject({ base: '2', revision: '3' })
    expect(first).toMatchObject({ base: '1', revision: '2' })
    expect(second.insert).toEqual(first.insert)
  })

  test.each<[string, RealtimeVersion, object]>([
    ['a message of version 1 in version 2', 2, { version: 1, type: 'ping' }],
    ['a message of version 2 in version 1', 1, { version: 2, type: 'ping' }],
    ['patches in version 1', 1, { ...SUBSCRIBE, patches: true }],
    ['patches that are no boolean', 2, { ...SUBSCRIBE, patches: 1 }],
    ['an unknown field in version 2', 2, { ...SUBSCRIBE, patch: true }],
  ])('the connection ends with %s', { tags: ['slow'] }, async (_, version, message) => {
    const session = await authenticated(version)
    session.send(message)
    expect(await session.closeCode()).toBe(1008)
    const { error } = await session.next('error')
    expect(error.code).toBe('REQUEST_INVALID')
  })
})

describe('a whole state', () => {
  test('reaches a slow reader that missed a state', async () => {
    const session = await subscribed(2, { patches: true })
    const witness = await subscribed(2, { patches: true })
    session.isReading = false
    // The socket accepts one more message, so that only the second state is skipped.
    for (const [i, name] of ['first', 'second', 'third'].entries()) {
      await send(name)
      await witness.next('patch', i + 1)
    }
    session.read()
    const whole = await session.next('state', 2)
    expect(session.of('patch')).toHaveLength(1)
    expect(bodiesOf(whole.result).at(-1)).toMatch(/^third/)
    expect(whole.revision).toBe('3')
    await send('fourth')
    expect(await session.next('patch', 2)).toMatchObject({ base: '3', revision: '4' })
  })

  test('follows a promotion, also where nothing has changed', { tags: ['slow'] }, async () => {
    const session = await subscribed(2, { patches: true })
    const { product, actor } = gateway.harness
    const options = { functions: FUNCTIONS, tables: TABLES, source: 'second' }
    const { releaseId } = await publishRelease(gateway.harness, options)
    const expectedReleaseId = gateway.releaseId
    const input = { channel: 'production', releaseId, expectedReleaseId, requestId: REQUEST_ID }
    promote(product, actor, input)
    gateway.realtime.tick()
    await session.next('resync_required')
    expect(await session.next('state', 2)).toMatchObject({ revision: '2', releaseId })
    await send('new')
    expect(await session.next('patch')).toMatchObject({ base: '2', revision: '3', releaseId })
  })
})
