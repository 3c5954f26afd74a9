/**
 * Goal: a speculative call ends as a synchronous one would, and has no outcome before the server
 * has performed its pipelined operations. Method: a real runner, and hosts that record every
 * operation and reply when the test says so.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Answering,
  type CallOptions,
  heldHost,
  killRunners,
  poolBench,
  recordingHost,
} from '../../../testing/runners.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import { sha256 } from '../../system/digests.ts'
import { documentId, documentIdSource } from '../../value/document-ids.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { RunnerCall, RunnerHost } from '../calls/outcomes.ts'

const OPERATIONS_MAX = 10_000
const bench = poolBench({ limits: { operations: OPERATIONS_MAX } })
const { pool } = bench
const code = (() => {
  const release = bench.release(
    `
    adds: mutation(async (ctx, { count, size = 1 }) => {
      const ids = []
      const text = 'x'.repeat(size)
      for (let i = 0; i < count; i++) ids.push(await ctx.db.insert('notes', { text }))
      return ids
    }),
    tooLong: mutation(async (ctx) => {
      try { await ctx.db.insert('notes', { text: 'x'.repeat(5e6) }) } catch {}
      return [await ctx.db.insert('notes', {}), await ctx.db.insert('notes', {})]
    }),
    changes: mutation(async (ctx, { id }) => {
      await ctx.db.patch(id, { text: 'p' })
      await ctx.db.replace(id, { text: 'r' })
      await ctx.db.delete(id)
      await ctx.db.insert('notes', { of: id })
      return 'done'
    }),
    nests: mutation(async (ctx) => {
      const first = await ctx.db.insert('notes', {})
      const answer = await ctx.runMutation(ref('mutation', 'adds'), { count: 1 })
      return [first, answer, await ctx.db.insert('notes', {})]
    }),
    reads: query(async (ctx, { ids }) => {
      const found = []
      for (const id of ids) found.push(await ctx.db.get(id))
      return found
    }),
    forgets: mutation(async (ctx) => { ctx.db.insert('notes', {}) }),
    each: mutation(async (ctx) => {
      [1, 2].forEach(async (n) => { await ctx.db.insert('notes', { n }) })
    }),
    catchesLater: mutation(async (ctx) => { ctx.db.insert('notes', {}).catch(() => null) }),
    dangles: query(async (ctx, { id }) => { ctx.db.get(id) }),
    throws: mutation(async (ctx) => {
      await ctx.db.insert('notes', {})
      throw new RangeError('own')
    }),
    fails: mutation(async (ctx) => {
      await ctx.db.insert('notes', {})
      return ctx.fail('FULL')
    }, { errors: { FULL: 'conflict' } }),
    catches: mutation(async (ctx) => {
      try { await ctx.db.insert('notes', {}) } catch (error) { return error.message }
    }),
    runs: mutation(() => ++runs),
    keeps: mutation((ctx) => { kept = ctx }),
    late: mutation(async (ctx, { how, id }) => {
      try { return await kept.db[how](how === 'insert' ? 'notes' : id, {}) } catch (error) {
        return error.message
      }
    }),`,
    `tables({ notes: { fields: {}, indexes: [] } })`,
  )
  return { ...release, source: `let kept = null, runs = 0;\n${release.source}` }
})()

beforeAll(async () => {
  await pool.start({ sandbox: 'preferred' })
  await pool.warm(code)
})
afterAll(() => pool.close())

const FIRST: StoredDocument = {
  id: `notes_${'1'.repeat(26)}`,
  createdAtMicros: 5n,
  sequence: 1,
  text: '{}',
}

/** Options of a call that inserts one document. */
const ONE = { input: { count: 1 } }

/** Returns the replies of the server to the calls of `callOf`. */
function replies(): Answering {
  let inserted = 0
  return ([type]) => (type === 'insert' ? JSON.stringify(idOf(inserted++)) : 'null')
}
const rejecting: Answering = () => {
  throw new OperationError('UniqueViolation', 'taken')
}
const recording = () => recordingHost(replies())
const held = () => heldHost(replies())

interface InvokeOptions extends Pick<CallOptions, 'kind' | 'millis'> {
  readonly input?: object
  /** Null for a synchronous call. */
  readonly prefetched?: readonly StoredDocument[] | null
}

function callOf(name: string, options: InvokeOptions = {}): RunnerCall {
  const { input = {}, prefetched = [], ...rest } = options
  const argumentsText = JSON.stringify(input)
  return bench.call(name, {
    kind: 'mutation',
    argumentsText,
    ...rest,
    ...(prefetched !== null && { prefetched }),
  })
}

function invoke(name: string, host: RunnerHost, options: InvokeOptions = {}) {
  return pool.invoke(code, callOf(name, options), host)
}

/** Returns whether the promise has settled 60 ms later. */
async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  const timeout = Symbol('timeout')
  await new Promise((resolve) => setTimeout(resolve, 60))
  return (await Promise.race([promise, Promise.resolve(timeout)])) !== timeout
}

/** Returns the ID of insert number `count` in a call of `callOf`. */
function idOf(count: number): string {
  const { seed, nowMicros } = callOf('adds')
  const digest = sha256(documentIdSource(seed, count))
  return documentId('notes', { nowMicros, count, digest })
}

describe('the writes of a speculative call', () => {
  test('the writes are pipelined at once, in order, with the IDs of the server', async () => {
    const { host, received, letGo } = held()
    const outcome = invoke('adds', host, { input: { count: 3 } })
    await received(3)
    letGo()
    expect(await outcome).toMatchObject({ result: [idOf(0), idOf(1), idOf(2)] })
    expect(host.seen.map(([type]) => type)).toEqual(['insert', 'insert', 'insert'])
  })

  test('delay the outcome until the server has performed all of them', async () => {
    const { host, received, letGo } = held()
    const outcome = invoke('changes', host, { input: { id: FIRST.id } })
    await received(4)
    expect(await hasSettled(outcome)).toBe(false)
    letGo()
    expect(await outcome).toMatchObject({ kind: 'returned', result: 'done' })
    expect(host.seen.map(([type]) => type)).toEqual(['patch', 'replace', 'delete', 'insert'])
  })

  test('delay a failed outcome too', async () => {
    for (const [name, expected] of [
      ['throws', { kind: 'threw', error: { name: 'RangeError', message: 'own' } }],
      ['fails', { kind: 'failed', code: 'FULL' }],
    ] as const) {
      const { host, received, letGo } = held()
      const outcome = invoke(name, host)
      await received(1)
      expect(await hasSettled(outcome)).toBe(false)
      letGo()
      expect(await outcome).toMatchObject(expected)
    }
  })

  test('writes that are too long to be sent do not count towards the IDs', async () => {
    const host = recording()
    expect(await invoke('tooLong', host)).toMatchObject({ result: [idOf(0), idOf(1)] })
    expect(host.seen).toHaveLength(2)
  })

  test('the writes have the IDs of the server’s replies after the call of a Mutation', async () => {
    const host = recordingHost(([type]) => (type === 'insert' ? '"as replied"' : 'null'))
    const outcome = await invoke('nests', host)
    expect(outcome).toMatchObject({ result: [idOf(0), null, 'as replied'] })
  })

  test('the writes may have megabytes, in frames of a bounded size', async () => {
    const host = recording()
    const outcome = await invoke('adds', host, { input: { count: 8_192, size: 900 } })
    assert(outcome.kind === 'returned', outcome.kind)
    expect(new Set(outcome.result as string[]).size).toBe(8_192)
    expect(host.seen).toHaveLength(8_192)
  })

  test('count towards the bound on operations', async () => {
    const count = OPERATIONS_MAX
    const fits = await invoke('adds', recording(), { input: { count } })
    expect(fits).toMatchObject({ kind: 'returned' })
    const host = recording()
    expect(await invoke('adds', host, { input: { count: count + 1 } })).toEqual({
      kind: 'limit',
      limit: 'operations',
    })
    expect(host.seen.length).toBeLessThanOrEqual(count)
  })
})

describe('a speculative call is misspeculated', () => {
  test.each([
    ['a write is rejected', 'adds', { input: { count: 2 } }, rejecting],
    ['a write is rejected that the code would have caught', 'catches', {}, rejecting],
    ['a write is rejected and the code throws', 'throws', {}, rejecting],
    ['a read is rejected', 'reads', { input: { ids: ['x_1'] }, kind: 'query' }, rejecting],
    ['a write was not awaited', 'forgets', {}, replies()],
    ['writes of a loop were not awaited', 'each', {}, replies()],
    ['a write with a handler for failures was not awaited', 'catchesLater', {}, replies()],
    ['a read was not awaited', 'dangles', { input: { id: 'x_1' }, kind: 'query' }, replies()],
  ] as const)('where %s', async (_, name, options, reply) => {
    const outcome = await invoke(name, recordingHost(reply), options)
    expect(outcome).toEqual({ kind: 'misspeculated', cause: 'failed' })
    expect(await invoke('adds', recording(), ONE)).toMatchObject({
      kind: 'returned',
    })
  })

  test('a call is misspeculated if the rejection comes after the runner has ended it', async () => {
    const { host, received, fail } = held()
    const outcome = invoke('adds', host, { input: { count: 2 } })
    await received(2)
    await hasSettled(outcome)
    fail(new OperationError('UniqueViolation', 'taken'))
    expect(await outcome).toEqual({ kind: 'misspeculated', cause: 'failed' })
    expect(await invoke('adds', recording(), ONE)).toMatchObject({
      kind: 'returned',
    })
  })

  test('after its end many times, and does not wear out its runner', async () => {
    const rejectingLate = recordingHost(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      throw new OperationError('UniqueViolation', 'taken')
    })
    const before = await invoke('runs', recording())
    // More than the cancelled calls after which a runner is replaced.
    for (let rounds = 0; rounds < 11; rounds++) {
      const outcomes = Array.from({ length: 100 }, () => invoke('adds', rejectingLate, ONE))
      expect(new Set((await Promise.all(outcomes)).map(({ kind }) => kind))).toEqual(
        new Set(['misspeculated']),
      )
    }
    assert(before.kind === 'returned', before.kind)
    // Time for the start of another runner, which would take the next call but one.
    await new Promise((resolve) => setTimeout(resolve, 200))
    await invoke('adds', recording(), ONE)
    const after = { result: (before.result as number) + 1 }
    expect(await invoke('runs', recording())).toMatchObject(after)
  })

  test.each([
    ['adds', ONE, 'taken', "ids.push(await ctx.db.insert('notes'"],
    ['forgets', {}, 'ctx.db.insert was not awaited: write "await"', 'forgets: mutation('],
    ['each', {}, 'was still running when the Function ended', 'async (n) =>'],
    ['catchesLater', {}, 'was still running when the Function ended', 'catchesLater:'],
    ['dangles', { input: { id: 'x_1' } }, 'was still running when the Function ended', 'dangles:'],
  ])(
    'the code fails in a synchronous call with the mistake and its location: %s',
    async (name, options, message, at) => {
      const host = name === 'adds' ? recordingHost(rejecting) : recording()
      const outcome = await invoke(name, host, { ...options, prefetched: null })
      assert(outcome.kind === 'threw', outcome.kind)
      const row = code.source.split('\n').findIndex((line) => line.includes(at)) + 1
      expect(outcome.error.message).toContain(message)
      expect(outcome.error.stack).toContain(`release.js:${row}:`)
    },
  )

  test('but fails with any other error of its host', async () => {
    const { host, received, fail } = held()
    const outcome = invoke('adds', host, { input: { count: 2 } })
    await received(2)
    fail(new RangeError('of the host'))
    await expect(outcome).rejects.toThrow('of the host')
  })
})

describe('a call whose outcome waits for pipelined operations', () => {
  test('ends at its deadline', async () => {
    const { host } = held()
    const started = performance.now()
    const outcome = await invoke('adds', host, { input: { count: 2 }, millis: 200 })
    expect(outcome).toEqual({ kind: 'deadline' })
    expect(performance.now() - started).toBeLessThan(60_000)
  })

  test('ends when its caller disconnects', async () => {
    const { host, received } = held()
    const signal = { aborted: false }
    const call = { ...callOf('adds', { input: { count: 2 } }), signal }
    const outcome = pool.invoke(code, call, host)
    await received(2)
    expect(await hasSettled(outcome)).toBe(false)
    signal.aborted = true
    expect(await outcome).toEqual({ kind: 'cancelled' })
  })

  test('operations that are performed after its end give a call no second outcome', async () => {
    const { host, received, letGo } = held()
    const signal = { aborted: false }
    const call = { ...callOf('adds', { input: { count: 2 } }), signal }
    const outcome = pool.invoke(code, call, host)
    await received(2)
    signal.aborted = true
    expect(await outcome).toEqual({ kind: 'cancelled' })
    letGo()
    expect(await invoke('adds', recording(), ONE)).toMatchObject({
      kind: 'returned',
    })
  })

  test('a call that waits for pipelined operations is lost with its runner', async () => {
    const { host, received } = held()
    const outcome = invoke('adds', host, { input: { count: 2 } })
    await received(2)
    expect(await hasSettled(outcome)).toBe(false)
    killRunners()
    expect(await outcome).toEqual({ kind: 'lost' })
  })
})

test.each(['insert', 'patch', 'get'])('ctx.db.%s throws after the end of its call', async (how) => {
  await invoke('keeps', recording(), { prefetched: [FIRST] })
  const host = recording()
  const input = { how, id: FIRST.id }
  const outcome = await invoke('late', host, { prefetched: [FIRST], input })
  expect(outcome).toMatchObject({ result: 'ctx was used after the Function had ended' })
  expect(host.seen).toEqual([])
})

test('a speculative call that writes endlessly is ended without its runner', async () => {
  const own = bench.release(`
    endless: mutation(async (ctx) => { for (;;) await ctx.db.insert('notes', {}) }),
    one: query(() => 1),`)
  await pool.warm(own)
  const endless = pool.invoke(own, callOf('endless'), recording())
  const one = () => pool.invoke(own, callOf('one', { kind: 'query' }), recording())
  for (const outcome of await Promise.all([one(), one(), one()])) {
    expect(outcome).toMatchObject({ result: 1 })
  }
  expect(await endless).toEqual({ kind: 'limit', limit: 'operations' })
  expect(await one()).toMatchObject({ result: 1 })
  expect(bench.log.text()).not.toContain('A call exceeded its limit')
})
