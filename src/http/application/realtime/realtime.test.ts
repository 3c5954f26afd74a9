import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ORIGIN, openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { functionManifest, publishRelease, REQUEST_ID } from '../../../../testing/products.ts'
import { openRealtimeClient, type RealtimeClient } from '../../../../testing/realtime-clients.ts'
import { revokeCredential } from '../../../product/application-clients/application-keys.ts'
import { promote } from '../../../product/channels/promote.ts'
import { type OpenListener, openListener } from '../../../server/listeners.ts'
import { realSystem } from '../../../system/system.ts'
import { memoryLog } from '../../../telemetry/log.ts'
import type { TableManifest } from '../../../value/manifest.ts'
import { type RealtimeVersion, realtimeProtocol } from '../../../wire/realtime.ts'
import { APPLICATION_CODES } from '../../errors.ts'

const clients = ['confidential', 'public'] as const
const TABLES: readonly TableManifest[] = [
  {
    name: 'messages',
    fields: { room: { type: 'string' }, body: { type: 'string' } },
    indexes: [{ name: 'byRoom', fields: ['room'], unique: false }],
  },
]
const ROOM = { room: { type: 'string' } } as const
const ANY = { type: 'any' } as const
const FUNCTIONS = [
  functionManifest('chat.fails', { clients: [...clients], arguments: ROOM, returns: ANY }),
  functionManifest('chat.list', { clients: [...clients], arguments: ROOM, returns: ANY }),
  functionManifest('chat.long', { clients: [...clients], arguments: ROOM, returns: ANY }),
  functionManifest('chat.mine', { clients: [...clients], arguments: ROOM, auth: 'user' }),
  functionManifest('chat.send', {
    kind: 'mutation',
    clients: [...clients],
    returns: ANY,
    arguments: { room: { type: 'string' }, body: { type: 'string' } },
  }),
]

let gateway: TestGateway
let listener: OpenListener
let origin: string
let opened: RealtimeClient[] = []

beforeEach(async () => {
  opened = []
  gateway = await openTestGateway({
    functions: FUNCTIONS,
    tables: TABLES,
    handlers: {
      'chat.list': async (db, { room }) => {
        const request = { table: 'messages', index: 'byRoom', equal: [room], limit: 1_000 }
        const { documents } = await db.range(request)
        return documents.map(({ body }: { body: string }) => body)
      },
      'chat.long': async (db, { room }) => {
        const { documents } = await db.range({ table: 'messages', index: 'byRoom', equal: [room] })
        return 'é"\\😀'.repeat(60_000 + documents.length)
      },
      'chat.fails': () => {
        throw new Error('broken')
      },
      'chat.send': (db, input) => db.insert('messages', input),
    },
  })
  listener = openListener({
    surface: 'application',
    listen: { host: '127.0.0.1', port: 0 } as never,
    app: gateway.application,
    codes: APPLICATION_CODES,
    system: realSystem(),
    log: memoryLog().log,
    tlsTerminated: false,
  })
  origin = `http://${listener.address}`
})
afterEach(async () => {
  for (const client of opened) client.close()
  listener.cut()
  await gateway.close()
})

async function open(): Promise<RealtimeClient> {
  const client = await openRealtimeClient(origin)
  opened.push(client)
  return client
}

async function authenticated(applicationKey = gateway.key): Promise<RealtimeClient> {
  const client = await open()
  client.send({ type: 'authenticate', applicationKey })
  await client.next('authenticated')
  return client
}

const text = (value: string) => ({ type: 'string', value })
const argumentsOf = (entries: Record<string, string>) => ({
  type: 'object',
  value: Object.entries(entries)
    .map(([key, value]) => ({ key, value: text(value) }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1)),
})

function subscription(subscriptionId: string, more: object = {}) {
  return {
    type: 'subscribe',
    subscriptionId,
    target: 'channel:production',
    function: 'chat.list',
    arguments: argumentsOf({ room: 'a' }),
    ...more,
  }
}

async function send(room: string, body: string): Promise<void> {
  const reply = await fetch(`${origin}/v1/mutation`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-key': gateway.key },
    body: JSON.stringify({
      version: 1,
      target: 'channel:production',
      function: 'chat.send',
      arguments: argumentsOf({ room, body }),
      operationId: gateway.harness.system.ids.make('opn'),
    }),
  })
  if (reply.status !== 200) throw new Error(await reply.text())
  await reply.text()
}

const bodies = (state: { result: { value: { value: string }[] } }) =>
  state.result.value.map(({ value }) => value)

describe('the handshake', () => {
  const upgrade = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  const protocol = { 'sec-websocket-protocol': realtimeProtocol(1) }

  test.each<[string, Record<string, string>, number, string]>([
    ['a plain GET', {}, 426, 'UPGRADE_REQUIRED'],
    ['an upgrade without a subprotocol', upgrade, 400, 'REQUEST_INVALID'],
    [
      'an upgrade to another subprotocol',
      { ...upgrade, 'sec-websocket-protocol': 'chat' },
      ...([400, 'REQUEST_INVALID'] as const),
    ],
    [
      'an upgrade that the header Connection does not name',
      { ...upgrade, ...protocol, connection: 'keep-alive' },
      ...([400, 'REQUEST_INVALID'] as const),
    ],
    [
      'an upgrade of an old version',
      { ...upgrade, ...protocol, 'sec-websocket-version': '8' },
      ...([426, 'UPGRADE_REQUIRED'] as const),
    ],
    [
      'a page of another origin',
      { ...upgrade, ...protocol, origin: 'https://evil.example' },
      ...([403, 'ORIGIN_DENIED'] as const),
    ],
  ])('a handshake is rejected: %s', { tags: ['slow'] }, async (_, headers, status, code) => {
    const reply = await fetch(`${origin}/v1/realtime`, { headers })
    expect(reply.status).toBe(status)
    expect(((await reply.json()) as { error: { code: string } }).error.code).toBe(code)
  })

  test.each([
    ['of HTTP/1.0 without Host', 'HTTP/1.0', []],
    ['of HTTP/1.0 without Connection', 'HTTP/1.0', ['host: localhost', 'connection: close']],
    ['with an empty Host', 'HTTP/1.1', ['host:']],
  ])('a handshake %s is rejected', { tags: ['slow'] }, async (_, version, more) => {
    const { connection, ...rest } = { ...upgrade, ...protocol }
    const options = more.some((line) => line.startsWith('connection'))
      ? rest
      : { ...rest, connection }
    const lines = Object.entries(options).map(([name, value]) => `${name}: ${value}`)
    const head = [`GET /v1/realtime ${version}`, ...lines, ...more, '', ''].join('\r\n')
    const { hostname, port } = new URL(origin)
    const socket = connect({ host: hostname, port: Number(port) })
    const answered = new Promise<string>((resolve, reject) => {
      socket.once('data', (data) => resolve(String(data)))
      socket.once('error', reject)
    })
    socket.write(head)
    expect(await answered).toMatch(/^HTTP\/1\.1 400 [\s\S]*"REQUEST_INVALID"/)
    socket.destroy()
  })

  test.each<[string, string[], RealtimeVersion]>([
    ['version 1', [realtimeProtocol(1)], 1],
    ['version 2', [realtimeProtocol(2)], 2],
    ['version 2 before 1', [realtimeProtocol(1), realtimeProtocol(2)], 2],
    ['version 1 before an unknown one', ['service.realtime.v9', realtimeProtocol(1)], 1],
  ])(
    'a page of a listed origin opens a connection of %s',
    { tags: ['slow'] },
    async (_, protocols, version) => {
      const socket = new WebSocket(`${origin.replace('http', 'ws')}/v1/realtime`, {
        headers: { origin: ORIGIN },
        protocols,
      } as never)
      await new Promise((resolve) => socket.addEventListener('open', resolve))
      expect(socket.protocol).toBe(realtimeProtocol(version))
      socket.close()
    },
  )
})

describe('authentication', () => {
  test('an authentication returns the session and the bound on subscriptions', {
    tags: ['slow'],
  }, async () => {
    const client = await open()
    client.send({ type: 'authenticate', applicationKey: gateway.key })
    expect(await client.next('authenticated')).toMatchObject({
      version: 1,
      expiresAtMicros: null,
      maximumSubscriptions: 1_000,
      sessionId: expect.stringMatching(/^req_/),
    })
  })

  test.each<[string, () => object, string]>([
    ['an unknown key', () => ({ applicationKey: 'rk_sec_v1_x' }), 'APPLICATION_KEY_INVALID'],
    [
      'a key without the scope',
      () => ({ applicationKey: gateway.issueKey('public', null, ['query']) }),
      'AUTH_POLICY_DENIED',
    ],
    [
      'a malformed token',
      () => ({ applicationKey: gateway.key, token: 'x' }),
      'FUNCTIONAL_TOKEN_INVALID',
    ],
  ])(
    'an authentication with %s ends the connection',
    { tags: ['slow'] },
    async (_, credentials, code) => {
      const client = await open()
      client.send({ type: 'authenticate', ...credentials() })
      const { subscriptionId, error } = await client.next('error')
      expect([subscriptionId, error.code]).toEqual([null, code])
      expect(await client.closed()).toBe(1008)
    },
  )

  test('a connection that begins with another message is ended', { tags: ['slow'] }, async () => {
    const client = await open()
    client.send(subscription('one'))
    expect((await client.next('error')).error.code).toBe('APPLICATION_KEY_REQUIRED')
    expect(await client.closed()).toBe(1008)
  })

  test('a renewal for another Application Client is rejected and changes nothing', {
    tags: ['slow'],
  }, async () => {
    const client = await authenticated()
    client.send({ type: 'authenticate', applicationKey: gateway.issueKey('confidential') })
    expect((await client.next('error')).error.code).toBe('AUTH_POLICY_DENIED')
    client.send(subscription('one'))
    expect(bodies(await client.next('state'))).toEqual([])
  })

  test('a revoked key ends the connection', { tags: ['slow'] }, async () => {
    const key = gateway.issueKey('public')
    const client = await authenticated(key)
    const { product, actor } = gateway.harness
    const { clientId, credentialId } = product.keys.authenticate(key)!
    revokeCredential(product, actor, {
      clientId,
      credentialId,
      requestId: REQUEST_ID,
    })
    expect((await client.next('error')).error.code).toBe('APPLICATION_KEY_INVALID')
    expect(await client.closed()).toBe(1008)
  })
})

describe('a subscription', () => {
  test('a subscription receives its first state and one for each change of its bytes', async () => {
    const client = await authenticated()
    client.send(subscription('one'))
    const first = await client.next('state')
    expect(first).toMatchObject({ subscriptionId: 'one', revision: '1' })
    expect(first.releaseId).toBe(gateway.releaseId)
    await send('b', 'elsewhere')
    await send('a', 'hello')
    const second = await client.next('state')
    expect([second.revision, bodies(second)]).toEqual(['2', ['hello']])
    expect(Number(second.snapshotSequence)).toBeGreaterThan(Number(first.snapshotSequence))
    client.send({ type: 'unsubscribe', subscriptionId: 'one' })
    await client.next('unsubscribed')
    await send('a', 'unseen')
    client.send({ type: 'ping', nonce: 'n' })
    await client.next('pong')
    expect(client.messages.filter(({ type }) => type === 'state')).toHaveLength(2)
  })

  test('a subscription with an ID in use replaces the previous one', {
    tags: ['slow'],
  }, async () => {
    const client = await authenticated()
    client.send(subscription('one'))
    await client.next('state')
    client.send(subscription('one', { arguments: argumentsOf({ room: 'b' }) }))
    expect((await client.next('state')).revision).toBe('1')
    await send('b', 'hello')
    expect(bodies(await client.next('state'))).toEqual(['hello'])
  })

  test.each<[string, object, string]>([
    ['of an unknown Function', { function: 'chat.none' }, 'FUNCTION_NOT_FOUND'],
    ['of a Mutation', { function: 'chat.send' }, 'FUNCTION_NOT_FOUND'],
    ['of an unknown target', { target: 'channel:none' }, 'TARGET_NOT_FOUND'],
    ['with other arguments', { arguments: argumentsOf({ place: 'a' }) }, 'ARGUMENTS_INVALID'],
    ['that needs a user', { function: 'chat.mine' }, 'FUNCTIONAL_TOKEN_REQUIRED'],
    ['whose Function throws', { function: 'chat.fails' }, 'FUNCTION_FAILED'],
  ])('a subscription %s ends with its own error', { tags: ['slow'] }, async (_, more, code) => {
    const client = await authenticated()
    client.send(subscription('bad', more))
    client.send(subscription('good'))
    const { subscriptionId, error } = await client.next('error')
    expect([subscriptionId, error.code]).toEqual(['bad', code])
    expect((await client.next('state')).subscriptionId).toBe('good')
  })

  test('a state of more than 64 KiB comes in parts that make up its text', {
    tags: ['slow'],
  }, async () => {
    const client = await authenticated()
    client.send(subscription('long', { function: 'chat.long' }))
    const first = await client.next('state')
    const states = [first]
    while (states.length < first.parts) states.push(await client.next('state'))
    expect(states.map(({ part }) => part)).toEqual(states.map((_, i) => i + 1))
    expect(new Set(states.map(({ revision }) => revision))).toEqual(new Set(['1']))
    const value = JSON.parse(states.map(({ fragment }) => fragment).join('')) as { value: string }
    expect(value.value).toBe('é"\\😀'.repeat(60_000))
    for (const state of states) {
      expect(Buffer.byteLength(JSON.stringify(state))).toBeLessThanOrEqual(64 * 1024)
    }
  })

  test('a promotion moves a subscription to the new Release with a new state', {
    tags: ['slow'],
  }, async () => {
    const client = await authenticated()
    client.send(subscription('one'))
    await client.next('state')
    const { product, actor } = gateway.harness
    const next = await publishRelease(gateway.harness, {
      functions: FUNCTIONS,
      tables: TABLES,
      source: 'second',
    })
    const expectedReleaseId = gateway.releaseId
    const { releaseId } = next
    const input = { channel: 'production', releaseId, expectedReleaseId, requestId: REQUEST_ID }
    promote(product, actor, input)
    expect(await client.next('resync_required')).toMatchObject({
      subscriptionId: 'one',
      reason: 'release_changed',
    })
    expect(await client.next('state')).toMatchObject({ revision: '2', releaseId })
  })

  test('a pong has the sequence up to which all states were sent', { tags: ['slow'] }, async () => {
    const client = await authenticated()
    client.send(subscription('one'))
    await client.next('state')
    await send('b', 'elsewhere')
    const { durableSequence } = gateway.engine.statistics()
    client.send({ type: 'ping', nonce: 'now' })
    expect(await client.next('pong')).toEqual({
      version: 1,
      type: 'pong',
      nonce: 'now',
      snapshotSequence: String(durableSequence),
    })
  })
})

describe('a message', () => {
  test.each<[string, string, number]>([
    ['that is no JSON', 'hello', 1008],
    ['of another version', '{"version":2,"type":"ping"}', 1008],
    ['with an unknown field', '{"version":1,"type":"ping","x":1}', 1008],
    ['with a repeated key', '{"version":1,"type":"ping","type":"ping"}', 1008],
    ['of an unknown type', '{"version":1,"type":"shout"}', 1008],
  ])('%s ends the connection', { tags: ['slow'] }, async (_, message, code) => {
    const client = await authenticated()
    client.socket.send(message)
    expect((await client.next('error')).error.code).toBe('REQUEST_INVALID')
    expect(await client.closed()).toBe(code)
  })

  test.each<[string, string | Uint8Array<ArrayBuffer>, number]>([
    ['that is binary', new Uint8Array(4), 1003],
    ['of more than 64 KiB', ' '.repeat(64 * 1024 + 1), 1009],
  ])('%s ends the connection with its code', { tags: ['slow'] }, async (_, message, code) => {
    const client = await authenticated()
    client.socket.send(message)
    expect(await client.closed()).toBe(code)
  })
})

test('clients are requested to reconnect at shutdown', { tags: ['slow'] }, async () => {
  const client = await authenticated()
  client.send(subscription('one'))
  await client.next('state')
  const drained = gateway.application.drain()
  expect(await client.next('reconnect')).toMatchObject({ reason: 'draining' })
  expect(await client.closed()).toBe(1001)
  await drained
  await expect(open()).rejects.toThrow('not upgraded')
})
