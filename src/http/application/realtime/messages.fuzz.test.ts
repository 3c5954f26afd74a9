/**
 * Goal: no message of a client fails the server, and each connection answers by the protocol or
 * ends with 1008. Method: edits of valid messages, as text and as JSON, on connections without a
 * network; another connection must remain undisturbed.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fuzz, mutatedJson, mutatedText, type Random } from '../../../../testing/fuzzing/fuzz.ts'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { functionManifest } from '../../../../testing/products.ts'
import { openMessageCheck } from '../../../../testing/realtime/declared-messages.ts'
import { openRealtimeSession, type RealtimeSession } from '../../../../testing/realtime/sessions.ts'
import { REALTIME_VERSIONS, type RealtimeVersion } from '../../../wire/realtime.ts'

/** Nonce of a message that is valid. */
const LAST = 'the last one'
/** Inputs of the ordinary suite; each opens a connection. */
const SHORT_RUNS = 1_000
const returns = { type: 'any' } as const
let gateway: TestGateway
let bystander: RealtimeSession
let isDeclared: Awaited<ReturnType<typeof openMessageCheck>>

beforeAll(async () => {
  gateway = await openTestGateway({
    functions: [functionManifest('chat.list', { clients: ['confidential'], returns })],
    tables: [],
    realtime: {
      connectionsMax: 1_000_000,
      connectionsPerCredentialMax: 1_000_000,
      connectionsPerPeerMax: 1_000_000,
      memoryBytesMax: 256 * 1024 * 1024,
    },
    handlers: { 'chat.list': () => 'nothing' },
  })
  isDeclared = await openMessageCheck()
  const valid = validOf(1)
  bystander = await openRealtimeSession(gateway)
  bystander.send(valid[0]!)
  await bystander.next('authenticated')
  bystander.send(valid[4]!)
  await bystander.next('state')
})
afterAll(() => gateway.close())

fuzz(
  'a message of a client is answered or ends its connection',
  async (random) => {
    // A million inputs take longer than a connection may be silent.
    bystander.heard()
    const version = random.pick(REALTIME_VERSIONS)
    const valid = validOf(version)
    const session = await openRealtimeSession(gateway, undefined, version)
    if (!random.chance(8)) session.send(valid[0]!)
    for (let count = 1 + random.below(3); count > 0; count--) {
      session.send(mutated(random, valid))
    }
    // Messages are processed in order, so the answer to the last one is the last one.
    session.send({ type: 'ping', nonce: LAST })
    while (session.closed === null && !session.messages.some(isLast)) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (session.closed !== null) {
      expect(session.closed.code).toBe(1008)
      expect(session.of('error').at(-1)).toMatchObject({ subscriptionId: null })
      expect(session.of('error').at(-1).error.code).not.toBe('INTERNAL')
    }
    for (const message of session.messages)
      expect([message, isDeclared(message, version)]).toEqual([message, true])
    session.drop()
  },
  SHORT_RUNS,
)

test('no other connection is disturbed', async () => {
  bystander.send({ type: 'ping' })
  await bystander.next('pong')
  expect(bystander.messages.map(({ type }) => type)).toEqual(['authenticated', 'state', 'pong'])
})

function validOf(version: RealtimeVersion): readonly object[] {
  const name = { version, subscriptionId: 'one' }
  const subscribe = {
    ...name,
    type: 'subscribe',
    target: 'channel:production',
    function: 'chat.list',
    arguments: { type: 'object', value: [{ key: 'a', value: { type: 'int64', value: '1' } }] },
  }
  return [
    { version, type: 'authenticate', applicationKey: gateway.key },
    { version, type: 'ping', nonce: 'n' },
    { ...name, type: 'unsubscribe' },
    subscribe,
    { ...subscribe, arguments: { type: 'object', value: [] } },
    // Version 1 rejects the field.
    { ...subscribe, arguments: { type: 'object', value: [] }, patches: true },
  ]
}

function mutated(random: Random, valid: readonly object[]): string {
  const message = random.pick(valid)
  if (random.chance(2)) return mutatedText(random, JSON.stringify(message))
  return JSON.stringify(mutatedJson(random, message)) ?? 'null'
}

const isLast = ({ nonce }: { readonly nonce?: string }) => nonce === LAST
