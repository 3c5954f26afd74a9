/**
 * Goal: a call keeps its own time, randomness, log and rejections in the frame of another call,
 * which settled a promise that both wait for. Method: a Host in this process, which processes
 * frames in the order of the test.
 */
import { afterAll, expect, test } from 'vitest'
import { scriptOf } from '../../testing/runners.ts'
import { Host, prepareRealm } from './host.ts'
import type { Progress } from './kernel/progress.ts'
import {
  decodeFromRunner,
  encodeInvoke,
  encodeReply,
  type FromRunner,
} from './protocol/messages.ts'
import { watchRejections } from './rejections.ts'

const ID = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const SCHEMA = `tables({ notes: { fields: {}, indexes: [] } })`
const FUNCTIONS = `...(() => {
  let gate = Promise.withResolvers()
  // A module that limits concurrency keeps such a queue.
  let isTaken = false
  const queue = []
  const limit = async (work) => {
    if (isTaken) await new Promise((resolve) => queue.push(resolve))
    isTaken = true
    try { return await work() } finally { isTaken = false; queue.shift()?.() }
  }
  return {
    holds: query((ctx) => ctx.db.get('${ID}')),
    opens: query(() => { gate.resolve(); gate = Promise.withResolvers(); return Date.now() }),
    waits: query(async (ctx) => {
      await gate.promise
      console.log('by itself')
      return [Date.now(), new Date().getTime(), Math.random()]
    }),
    fails: query(async () => {
      await gate.promise
      const failing = async () => { throw new Error('of another') }
      failing()
    }),
    asksAndFails: query(async (ctx) => {
      await gate.promise
      const failed = Promise.reject(new Error('of another'))
      await ctx.db.get('${ID}')
      await failed.catch(() => {})
    }),
    opensAndFails: query(async (ctx) => {
      gate.resolve()
      gate = Promise.withResolvers()
      await ctx.db.get('${ID}')
      Promise.reject(new Error('its own'))
    }),
    draws: query(() => [Date.now(), new Date().getTime(), Math.random()]),
    adds: mutation(async (ctx) => {
      await gate.promise
      const id = await ctx.db.insert('notes', {})
      await ctx.db.patch(id, { a: 1 })
      return typeof id
    }),
    fetches: action(async (ctx, { id }) => {
      const response = await limit(() => fetch('https://a.test/' + id))
      return response.url
    }),
    sleeps: action(() => limit(() => new Promise((resolve) => setTimeout(resolve, 1, 'slept')))),
  }
})(),`

// Rejections here are part of the tests, so the test runner must not fail them.
const listeners = process.rawListeners('unhandledRejection')
process.removeAllListeners('unhandledRejection')
let current: Host | null = null
const rejections = watchRejections((reason, promise) => current?.rejected(reason, promise))
afterAll(() => {
  process.removeAllListeners('unhandledRejection')
  for (const listener of listeners) process.on('unhandledRejection', listener as never)
})

function hostOf(actions = false) {
  const found: FromRunner[] = []
  const progress = { begin() {}, end() {} } as unknown as Progress
  const cpuMicros = () => performance.now() * 1000
  const emit = (text: string) => void found.push(decodeFromRunner(text))
  const limits = { cpuMillis: 1_000, resultBytes: 1_000_000, actions, fixedClock: false }
  const ports = { emit, progress, cpuMicros, rejections }
  const host = new Host(ports, prepareRealm(), { source: scriptOf(FUNCTIONS, SCHEMA), limits })
  current = host
  expect(host.load()).toBe('["loaded"]')
  const processFrame = (text: string) => {
    host.process(text)
    return found.splice(0)
  }
  return {
    /** Invokes a Function; each call has a clock and a seed of its own. */
    invoke(call: number, name: string, isSpeculative = false) {
      const argumentsText = `{"id":"${call}"}`
      const request = {
        function: `f.${name}`,
        kind: 'query',
        argumentsText,
        identityText: 'null',
      } as const
      const own = { nowMicros: BigInt(call) * 1_000_000n, seed: `0${call}`.repeat(32) }
      const options = { root: 0, prefetched: isSpeculative ? '[]' : null }
      return processFrame(encodeInvoke(call, { ...request, ...own }, options))
    },
    reply: (call: number, id: number, text: string) => processFrame(encodeReply(call, id, text)),
  }
}

test('a Query that another call resumes has its own time, randomness, log and usage', () => {
  const host = hostOf()
  host.invoke(1, 'holds')
  const [alone] = host.invoke(2, 'draws')
  expect(host.invoke(2, 'waits')).toEqual([])
  const ends = host.invoke(3, 'opens')
  expect(ends).toMatchObject([
    { call: 3, result: 3_000, usage: { usedClock: true, usedRandom: false, logs: [] } },
    { call: 2, type: 'returned', usage: { usedClock: true, usedRandom: true } },
  ])
  expect(ends[1]).toMatchObject({ usage: { logs: [{ message: 'by itself' }] } })
  expect(ends[1]).toHaveProperty('result', (alone as { result: unknown }).result)
})

test('a Mutation that resumes in the frame of another call gets its pipelined results', () => {
  const host = hostOf()
  host.invoke(1, 'holds')
  host.invoke(2, 'adds', true)
  expect(host.invoke(3, 'opens')).toMatchObject([
    { call: 3, type: 'returned', pipelined: [] },
    { call: 2, type: 'returned', result: 'string', pipelined: [{ 0: 'insert' }, { 0: 'patch' }] },
  ])
})

test('Actions that share a queue in module scope each fetch and sleep for themselves', () => {
  const host = hostOf(true)
  const [first] = host.invoke(1, 'fetches')
  expect(host.invoke(2, 'fetches')).toEqual([])
  expect(host.invoke(3, 'sleeps')).toEqual([])
  const empty = '"status":200,"statusText":"","redirected":false,"headers":[],"body":{"$b":""}'
  const next = host.reply(1, (first as { id: number }).id, `{"url":"https://a.test/1",${empty}}`)
  expect(next).toMatchObject([
    { call: 2, type: 'operation', op: ['fetch', 2, { url: 'https://a.test/2' }] },
    { call: 1, type: 'returned', result: 'https://a.test/1' },
  ])
  const last = host.reply(2, (next[0] as { id: number }).id, `{"url":"https://a.test/2",${empty}}`)
  expect(last).toMatchObject([
    { call: 3, type: 'operation', op: ['sleep', expect.any(Number)] },
    { call: 2, type: 'returned', result: 'https://a.test/2' },
  ])
})

test.each(['fails', 'asksAndFails'])(
  'a rejection in a call does not fail the call that resumed it: %s',
  (name) => {
    const host = hostOf()
    host.invoke(1, 'holds')
    expect(host.invoke(2, name)).toEqual([])
    expect(host.invoke(3, 'opens')).toContainEqual(
      expect.objectContaining({ call: 3, type: 'returned', result: 3_000 }),
    )
  },
)

test('a call that resumed others fails for its rejections in frames of its own', () => {
  const host = hostOf()
  host.invoke(1, 'waits')
  const found = host.invoke(2, 'opensAndFails')
  const { id } = found.find(({ type }) => type === 'operation') as { id: number }
  const error = { message: expect.stringContaining('its own') }
  expect(host.reply(2, id, 'null')).toMatchObject([{ call: 2, type: 'threw', error }])
})
