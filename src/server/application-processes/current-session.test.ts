import { expect, test } from 'vitest'
import type { Socket, SocketSession } from '../../http/application/sockets.ts'
import { MemoryBudget } from '../../system/memory/memory-budget.ts'
import { textBytes } from '../../system/memory/memory-bytes.ts'
import { REALTIME_SUBSCRIPTIONS_MAX } from '../../wire/realtime.ts'
import { CurrentSession } from './current-session.ts'

const MIB = 1024 * 1024
const holder = { credential: null, peer: '192.0.2.1' }

/** A process that is current once `follow` was called, until `lag` is. */
class Following {
  isCurrent = true
  #arrived = Promise.withResolvers<void>()

  lag(): void {
    this.isCurrent = false
    this.#arrived = Promise.withResolvers()
  }

  async follow(): Promise<void> {
    this.isCurrent = true
    this.#arrived.resolve()
    await turn()
  }

  current(): Promise<void> {
    return this.isCurrent ? Promise.resolve() : this.#arrived.promise
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

function open(budget = new MemoryBudget(64 * MIB)) {
  const received: (string | null)[] = []
  const ends: string[] = []
  const inner: SocketSession = {
    opened: () => undefined,
    message: (text) => received.push(text),
    heard: () => undefined,
    drained: () => undefined,
    closed: () => ends.push('closed'),
  }
  const following = new Following()
  const session = new CurrentSession(inner, following, budget.shareOf(holder))
  const socket = { cut: () => ends.push('cut') } as Partial<Socket> as Socket
  session.opened(socket)
  return { session, following, received, ends, budget }
}

test('a message is passed on at once while the process is current', () => {
  const { session, received, budget } = open()
  session.message('one')
  expect(received).toEqual(['one'])
  expect(budget.used).toBe(0)
})

test('messages wait until the process has followed, keep their order and are charged', async () => {
  const { session, following, received, budget } = open()
  following.lag()
  session.message('one')
  session.message(null)
  session.message('three')
  await turn()
  expect(received).toEqual([])
  expect(budget.used).toBe(textBytes('one') + textBytes('three'))
  following.isCurrent = true
  // One that arrives when the process is current does not overtake those that wait.
  session.message('four')
  expect(received).toEqual([])
  await following.follow()
  expect(received).toEqual(['one', null, 'three', 'four'])
  expect(budget.used).toBe(0)
  session.message('five')
  expect(received.at(-1)).toBe('five')
})

test('a client may subscribe to everything at once while the process follows', async () => {
  const { session, following, received, ends } = open()
  following.lag()
  for (let i = 0; i < REALTIME_SUBSCRIPTIONS_MAX; i++) session.message(String(i))
  expect(ends).toEqual([])
  await following.follow()
  expect(received).toHaveLength(REALTIME_SUBSCRIPTIONS_MAX)
})

test('a connection with more characters that wait than the bound is cut', async () => {
  const { session, following, received, ends } = open(new MemoryBudget(1024 * MIB))
  following.lag()
  // One of them is processed, and the others wait.
  const messages = Math.ceil((4 * MIB) / 60_000) + 1
  for (let i = 0; i < messages; i++) session.message('x'.repeat(60_000))
  expect(ends).toEqual([])
  session.message('one more')
  expect(ends).toEqual(['cut'])
  await following.follow()
  expect(received).toHaveLength(messages)
})

test('a connection is cut when its messages exceed the share of its address', async () => {
  const text = 'x'.repeat(60_000)
  // An address may hold a quarter of a budget: two of these messages.
  const { session, following, received, ends, budget } = open(
    new MemoryBudget(10 * textBytes(text)),
  )
  following.lag()
  session.message(text)
  session.message(text)
  expect(ends).toEqual([])
  session.message(text)
  expect(ends).toEqual(['cut'])
  await following.follow()
  expect(received).toHaveLength(2)
  expect(budget.used).toBe(0)
})

test('messages that wait are dropped with their connection', async () => {
  const { session, following, received, budget } = open()
  following.lag()
  session.message('one')
  session.closed(1006)
  await following.follow()
  expect(received).toEqual([])
  expect(budget.used).toBe(0)
})
