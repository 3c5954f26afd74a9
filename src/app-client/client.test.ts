import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  answer,
  FakePlatform,
  failure,
  IDS,
  runReactions,
} from '../../testing/app-client/fake-platform.ts'
import { Client, type ClientOptions } from './client.ts'
import type { CallError } from './errors.ts'
import type { Action, Mutation, Query } from './references.ts'
import { memoryStore } from './stores/mutation-store.ts'

const list = { kind: 'query', name: 'm.list', arguments: {} } as Query<
  Record<string, never>,
  readonly string[],
  never
>
const send = { kind: 'mutation', name: 'm.send', arguments: { body: 'string' } } as Mutation<
  { body: string },
  null,
  never
>
const charge = { kind: 'action', name: 'm.charge', arguments: {} } as Action<
  Record<string, never>,
  null,
  never
>
const QUERY = { kind: 'query', snapshotSequence: '1' }
const MUTATION = { kind: 'mutation', commitSequence: '9', replayed: false, attempts: 1 }
const ACTION = { kind: 'action', schedulesCreated: '0' }
const NONE = { type: 'array', value: [] }

let platform: FakePlatform
let client: Client
beforeEach(() => {
  platform = new FakePlatform()
  client = open()
})
afterEach(() => client.close())

function open(options: Partial<ClientOptions> = {}): Client {
  const base = { url: 'http://a.test/', applicationKey: 'key', target: 'channel:production' }
  return new Client({ ...base, ...options }, platform)
}

/** Moves the clock past all attempts of a call and returns its error. */
async function failed(call: Promise<unknown>, millis = 60_000): Promise<CallError> {
  const caught = call.then(
    () => Promise.reject(new Error('the call succeeded')),
    (error: CallError) => error,
  )
  await platform.pass(millis)
  return caught
}

describe('calls', () => {
  test('a call is sent eight times, with full jitter after lost connections', async () => {
    const error = await failed(client.query(list))
    expect(error).toMatchObject({ code: 'CLIENT_SERVER_UNREACHABLE', retryable: true })
    expect(platform.requests).toHaveLength(8)
    const pauses = platform.delays.filter((delay) => delay !== 30_000)
    expect(pauses).toEqual([125, 250, 500, 1_000, 2_000, 2_500, 2_500])
  })

  test('a call has one deadline for all attempts', async () => {
    platform.respond = () => new Promise(() => undefined)
    const error = await failed(client.query(list, {}, { deadlineMillis: 1_000 }), 1_000)
    expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED', retryable: true })
  })

  test('a Query is retried only for retryable errors, and not before Retry-After', async () => {
    platform.respond = () =>
      platform.requests.length === 1
        ? failure(503, 'BUSY', true, { 'retry-after': '3' })
        : failure(404, 'FUNCTION_NOT_FOUND', false)
    const error = await failed(client.query(list))
    expect(error).toMatchObject({ code: 'FUNCTION_NOT_FOUND', requestId: IDS.request })
    expect(platform.requests).toHaveLength(2)
    expect(platform.delays).toContain(3_000)
  })

  test('a repeated Mutation is sent byte for byte', async () => {
    platform.respond = () => {
      if (platform.requests.length < 3) throw new TypeError('cut')
      return answer(MUTATION)
    }
    const sent = client.mutation(send, { body: 'a' })
    await platform.pass(5_000)
    expect(await sent).toBe(null)
    expect(new Set(platform.requests.map(({ init }) => init.body)).size).toBe(1)
    expect(platform.requests[0]!.body.operationId).toMatch(/^opn_/)
  })

  test('a Mutation without a response has an unknown outcome and keeps its ID', async () => {
    const error = await failed(client.mutation(send, { body: 'a' }))
    expect(error).toMatchObject({ code: 'CLIENT_RESULT_UNCERTAIN', outcomeKnown: false })
    expect(error.operationId).toBe(platform.requests[0]!.body.operationId)
  })

  test('an Action is never sent twice', async () => {
    const lost = await failed(client.action(charge))
    expect(lost).toMatchObject({ code: 'CLIENT_RESULT_UNCERTAIN', outcomeKnown: false })
    platform.respond = () => failure(503, 'BUSY', true)
    await failed(client.action(charge))
    const tokens = open({ token: ({ refresh }) => (refresh ? 'new' : 'old') })
    platform.respond = () => failure(401, 'FUNCTIONAL_TOKEN_INVALID', false)
    await failed(tokens.action(charge))
    expect(platform.requests).toHaveLength(3)
    platform.respond = () => answer(ACTION)
    expect(await tokens.action(charge)).toBe(null)
  })

  test('a call with a rejected token is sent again with a refreshed one', async () => {
    const refreshes: boolean[] = []
    const tokens = open({
      token: ({ refresh }) => {
        refreshes.push(refresh)
        return refresh ? 'new' : 'old'
      },
    })
    const sent = () =>
      platform.requests.map(({ init }) => new Headers(init.headers).get('authorization'))
    platform.respond = () => {
      if (sent().at(-1) !== 'Bearer new') return failure(401, 'FUNCTIONAL_TOKEN_INVALID', false)
      return sent().length < 3 ? failure(503, 'BUSY', true) : answer(QUERY, NONE)
    }
    const called = tokens.query(list)
    await platform.pass(5_000)
    expect(await called).toEqual([])
    expect(sent()).toEqual(['Bearer old', 'Bearer new', 'Bearer new'])
    expect(refreshes).toEqual([false, true])
  })

  test.each<[string, () => Response]>([
    ['another kind of metadata', () => answer(MUTATION, NONE)],
    ['the kind of another call', () => answer({ ...QUERY, kind: 'action' }, NONE)],
    ['another request ID in the header', () => answer(QUERY, NONE, wrong('x-service-request-id'))],
    ['another Release in the header', () => answer(QUERY, NONE, wrong('x-service-release-id'))],
    ['another version', () => answer(QUERY, NONE, { body: { version: 2 } })],
    ['text', () => answer(QUERY, NONE, { headers: { 'content-type': 'text/plain' } })],
    ['an int64 that is not canonical', () => answer(QUERY, { type: 'int64', value: '01' })],
    ['unsorted keys', () => answer(QUERY, unsorted())],
    ['a sequence that is not canonical', () => answer({ ...QUERY, snapshotSequence: '01' }, NONE)],
    ['too many bytes', () => answer(QUERY, { type: 'string', value: 'x'.repeat(2_000) })],
  ])('a response with %s is rejected without a retry', async (_, respond) => {
    const bounded = open({ responseBytesMax: 1_500 })
    platform.respond = respond
    expect((await failed(bounded.query(list))).code).toBe('CLIENT_RESPONSE_INVALID')
    expect(platform.requests).toHaveLength(1)
  })
})

const wrong = (header: string) => ({ headers: { [header]: `req_${'1'.repeat(26)}` } })
const unsorted = () => {
  const entry = (key: string) => ({ key, value: { type: 'null' } })
  return { type: 'object', value: [entry('b'), entry('a')] }
}

describe('Mutations', () => {
  test('Mutations are sent one after the other, in the order of their calls', async () => {
    let release: () => void = () => undefined
    platform.respond = () => new Promise((resolve) => (release = () => resolve(answer(MUTATION))))
    const calls = ['a', 'b'].map((body) => client.mutation(send, { body }))
    await runReactions()
    expect(platform.requests).toHaveLength(1)
    expect(client.connection.current().pendingMutations).toBe(2)
    release()
    await calls[0]
    await runReactions()
    release()
    await calls[1]
    const bodies = platform.requests.map(({ body }) => body.arguments.value[0].value.value)
    expect(bodies).toEqual(['a', 'b'])
  })

  test('stored Mutations are sent by the next page with the same IDs, in order', async () => {
    const store = memoryStore()
    const before = open({ store })
    const calls = ['a', 'b'].map((body) => before.mutation(send, { body }).catch(() => null))
    await platform.pass(10)
    before.close()
    await Promise.all(calls)
    const stored = (await store.load()).map(({ operationId }) => operationId)
    expect(stored).toHaveLength(2)
    platform.requests.length = 0
    platform.respond = () => answer(MUTATION)
    const settled: string[] = []
    const next = open({ store, onSettled: ({ operationId }) => settled.push(operationId) })
    await platform.pass(10)
    expect(platform.requests.map(({ body }) => body.operationId)).toEqual(stored)
    expect(settled).toEqual(stored)
    expect(await store.load()).toEqual([])
    next.close()
  })

  test('Mutations that were stored too long ago are not sent', async () => {
    const store = memoryStore()
    const old = {
      operationId: `opn_${'0'.repeat(26)}`,
      function: 'm.send',
      target: 't',
      body: '{}',
    }
    await store.put({ ...old, createdAtMillis: platform.nowMillis() - 30 * 86_400_000 })
    const settled: unknown[] = []
    open({ store, onSettled: ({ error }) => settled.push(error?.code) }).close()
    await platform.pass(10)
    expect(settled).toEqual(['CLIENT_RESULT_UNCERTAIN'])
    expect(platform.requests).toEqual([])
  })
})

const texts = (...items: string[]) => ({
  type: 'array',
  value: items.map((value) => ({ type: 'string', value })),
})

function state(revision: number, sequence: number, ...items: string[]): object {
  const { subscriptionId } = platform.socket.ofType('subscribe').at(-1)
  const head = { type: 'state', subscriptionId, releaseId: IDS.release }
  const at = { revision: String(revision), snapshotSequence: String(sequence) }
  return { ...head, ...at, result: texts(...items) }
}

describe('watches', () => {
  let shown: (readonly string[])[]
  let failures: string[]
  beforeEach(async () => {
    shown = []
    failures = []
    client.watch(
      list,
      {},
      (value) => shown.push(value),
      ({ code }) => failures.push(code),
    )
    await runReactions()
    platform.socket.accept()
  })

  test('a watch shows states in order, and equal Queries share one subscription', () => {
    client.watch(list, {}, () => undefined)
    platform.socket.receive(state(1, 1, 'a'))
    platform.socket.receive(state(2, 2, 'a', 'b'))
    expect(shown).toEqual([['a'], ['a', 'b']])
    expect(platform.socket.ofType('subscribe')).toHaveLength(1)
  })

  test('a state in parts is joined', () => {
    const { result, ...head } = state(1, 1, 'é"\\', 'b') as { result: object }
    const text = JSON.stringify(result)
    platform.socket.receive({ ...head, part: 1, parts: 2, fragment: text.slice(0, 20) })
    expect(shown).toEqual([])
    platform.socket.receive({ ...head, part: 2, parts: 2, fragment: text.slice(20) })
    expect(shown).toEqual([['é"\\', 'b']])
  })

  test('a gap in the states causes a new connection and a fresh state', async () => {
    platform.socket.receive(state(1, 1, 'a'))
    platform.socket.receive(state(3, 3, 'c'))
    expect(shown).toEqual([['a']])
    expect(platform.socket.isClosed).toBe(true)
    await platform.pass(1_000)
    platform.socket.accept()
    platform.socket.receive(state(1, 3, 'c'))
    expect(shown).toEqual([['a'], ['c']])
  })

  test('reconnections have growing random delays, and none when the page is back', async () => {
    platform.delays.length = 0
    for (let i = 0; i < 4; i++) {
      platform.socket.onclose?.({ code: 1006 })
      await platform.pass(4_000)
    }
    const waits = platform.delays.filter((delay) => delay !== 15_000 && delay !== 25_000)
    expect(waits).toEqual([250, 500, 1_000, 2_000])
    const opened = platform.sockets.length
    platform.socket.onclose?.({ code: 1006 })
    expect(client.connection.current().status).toBe('waiting')
    platform.wake()
    await runReactions()
    expect(platform.sockets).toHaveLength(opened + 1)
  })

  test('a silent connection is closed if it does not answer a ping', async () => {
    await platform.pass(25_000)
    expect(platform.socket.ofType('ping')).toHaveLength(1)
    await platform.pass(10_000)
    expect(platform.sockets[0]!.isClosed).toBe(true)
  })

  test('a watch is retried after a retryable error and ends with any other', async () => {
    const { subscriptionId } = platform.socket.ofType('subscribe')[0]
    const error = { code: 'UNAVAILABLE', message: '', retryable: true }
    platform.socket.receive({ type: 'error', subscriptionId, error })
    await platform.pass(1_000)
    expect(platform.socket.ofType('subscribe')).toHaveLength(2)
    const again = platform.socket.ofType('subscribe')[1].subscriptionId
    const gone = { ...error, code: 'RELEASE_RETIRED', retryable: false }
    platform.socket.receive({ type: 'error', subscriptionId: again, error: gone })
    await platform.pass(60_000)
    expect(failures).toEqual(['RELEASE_RETIRED'])
    expect(platform.sockets.flatMap((socket) => socket.ofType('subscribe'))).toHaveLength(2)
  })

  test('an optimistic update is shown until the states include the Mutation', async () => {
    platform.socket.receive(state(1, 8, 'a'))
    platform.respond = () => answer(MUTATION)
    await client.mutation(
      send,
      { body: 'b' },
      {
        optimistic: (local) => local.set(list, {}, [...(local.get(list, {}) ?? []), 'b?']),
      },
    )
    expect(shown.at(-1)).toEqual(['a', 'b?'])
    platform.socket.receive(state(2, 8, 'z'))
    expect(shown.at(-1)).toEqual(['z', 'b?'])
    platform.socket.receive(state(3, 9, 'z', 'b'))
    expect(shown.at(-1)).toEqual(['z', 'b'])
  })

  test('an optimistic update is dropped after a failure or a pong with its commit', async () => {
    platform.socket.receive(state(1, 8, 'a'))
    const optimistic = { optimistic: (local: { set: typeof set }) => local.set(list, {}, ['?']) }
    platform.respond = () => failure(409, 'APP_NO', false)
    const call = client.mutation(send, { body: 'b' }, optimistic)
    expect(shown.at(-1)).toEqual(['?'])
    await call.catch(() => undefined)
    expect(shown.at(-1)).toEqual(['a'])
    platform.respond = () => answer(MUTATION)
    await client.mutation(send, { body: 'b' }, optimistic)
    expect(shown.at(-1)).toEqual(['?'])
    await platform.pass(100)
    expect(platform.socket.ofType('ping')).toHaveLength(1)
    platform.socket.receive({ type: 'pong', snapshotSequence: '9' })
    expect(shown.at(-1)).toEqual(['a'])
  })
})
declare function set(reference: typeof list, args: Record<string, never>, value: string[]): void

const SIGNED = '/v1/files/signed-downloads/rk_url_v1_A-b_c'
test('a signed URL is its path at the address of the server, and no other path', () => {
  expect(client.downloadUrl({ path: SIGNED })).toBe(`http://a.test${SIGNED}`)
  const others = ['', '/', `/..${SIGNED}`, `${SIGNED}/..`, `${SIGNED}?a`, `//evil.test${SIGNED}`]
  for (const path of [...others, SIGNED.replace('signed-', ''), `${SIGNED}\n`, `@evil${SIGNED}`]) {
    expect(() => client.downloadUrl({ path }), path).toThrow('another path')
  }
})

test('an authorization is renewed in place, and all is subscribed after its expiry', async () => {
  const refreshes: boolean[] = []
  const renewing = open({ token: ({ refresh }) => `token ${refreshes.push(refresh)}` })
  renewing.watch(list, {}, () => undefined)
  await runReactions()
  platform.socket.accept()
  platform.socket.receive({ type: 'authorization_expiring', expiresAtMicros: '1' })
  await runReactions()
  const { socket } = platform
  expect(socket.ofType('authenticate').map(({ token }) => token)).toEqual(['token 1', 'token 2'])
  expect(refreshes).toEqual([false, true])
  socket.receive({ type: 'authenticated' })
  expect(socket.ofType('subscribe')).toHaveLength(1)
  socket.receive({ type: 'authorization_expired' })
  await runReactions()
  socket.receive({ type: 'authenticated' })
  expect(socket.ofType('subscribe')).toHaveLength(2)
  expect(platform.sockets).toHaveLength(1)
  renewing.close()
})

test('a rejected key ends the attempts until the application calls reconnectNow', async () => {
  const failures: string[] = []
  client.watch(
    list,
    {},
    () => undefined,
    ({ code }) => failures.push(code),
  )
  await runReactions()
  platform.socket.onopen?.()
  const error = { code: 'APPLICATION_KEY_INVALID', message: '', retryable: false }
  platform.socket.receive({ type: 'error', subscriptionId: null, error })
  await platform.pass(120_000)
  expect(failures).toEqual(['APPLICATION_KEY_INVALID'])
  expect(client.connection.current().status).toBe('failed')
  expect(platform.sockets).toHaveLength(1)
  client.reconnectNow()
  await runReactions()
  expect(platform.sockets).toHaveLength(2)
})
