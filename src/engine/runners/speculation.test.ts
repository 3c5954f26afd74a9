/**
 * Goal: a call that runs ahead ends as one in step would, and nothing of it is concluded before the
 * server has worked what it was told. Method: a real runner, and hosts that note every operation
 * and answer when the test says so.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Answering,
  type CallOptions,
  heldHost,
  killRunners,
  notingHost,
  poolBench,
} from '../../../build/testing/runners.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import { sha256 } from '../../system/digests.ts'
import { documentId, documentIdSource } from '../../value/document-ids.ts'
import { OperationError } from '../invocations/operation-error.ts'
import type { RunnerCall, RunnerHost } from './runner-pool.ts'

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

/** As the server does, for the calls of `callOf`. */
function answers(): Answering {
  let inserted = 0
  return ([type]) => (type === 'insert' ? JSON.stringify(idOf(inserted++)) : 'null')
}
const refusing: Answering = () => {
  throw new OperationError('UniqueViolation', 'taken')
}
const noting = () => notingHost(answers())
const held = () => heldHost(answers())

interface AheadOptions extends Pick<CallOptions, 'kind' | 'millis'> {
  readonly input?: object
  /** Null in step. */
  readonly given?: readonly StoredDocument[] | null
}

function callOf(name: string, { input = {}, given = [], ...rest }: AheadOptions = {}): RunnerCall {
  const argumentsText = JSON.stringify(input)
  return bench.call(name, {
    ...{ kind: 'mutation', argumentsText, ...rest },
    ...(given !== null && { prefetched: given }),
  })
}

function invoke(name: string, host: RunnerHost, options: AheadOptions = {}) {
  return pool.invoke(code, callOf(name, options), host)
}

/** Whether it is, a while later. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol('open')
  await new Promise((resolve) => setTimeout(resolve, 60))
  return (await Promise.race([promise, Promise.resolve(open)])) !== open
}

/** Of the insert that is number `count`, in a call of `callOf`. */
function idOf(count: number): string {
  const { seed, nowMicros } = callOf('adds')
  const digest = sha256(documentIdSource(seed, count))
  return documentId('notes', { nowMicros, count, digest })
}

describe('what a call ahead writes', () => {
  test('is told at once, in order, under the IDs that the server will give', async () => {
    const { host, asked, letGo } = held()
    const outcome = invoke('adds', host, { input: { count: 3 } })
    await asked(3)
    letGo()
    expect(await outcome).toMatchObject({ result: [idOf(0), idOf(1), idOf(2)] })
    expect(host.seen.map(([type]) => type)).toEqual(['insert', 'insert', 'insert'])
  })

  test('holds the outcome back until all of it is worked', async () => {
    const { host, asked, letGo } = held()
    const outcome = invoke('changes', host, { input: { id: FIRST.id } })
    await asked(4)
    expect(await isSettled(outcome)).toBe(false)
    letGo()
    expect(await outcome).toMatchObject({ kind: 'returned', result: 'done' })
    expect(host.seen.map(([type]) => type)).toEqual(['patch', 'replace', 'delete', 'insert'])
  })

  test('holds back an outcome that failed, too', async () => {
    for (const [name, expected] of [
      ['throws', { kind: 'threw', error: { name: 'RangeError', message: 'own' } }],
      ['fails', { kind: 'failed', code: 'FULL' }],
    ] as const) {
      const { host, asked, letGo } = held()
      const outcome = invoke(name, host)
      await asked(1)
      expect(await isSettled(outcome)).toBe(false)
      letGo()
      expect(await outcome).toMatchObject(expected)
    }
  })

  test('takes no number where it was too long to be told', async () => {
    const host = noting()
    expect(await invoke('tooLong', host)).toMatchObject({ result: [idOf(0), idOf(1)] })
    expect(host.seen).toHaveLength(2)
  })

  test('has the ID that the server answers once it called a Mutation', async () => {
    const host = notingHost(([type]) => (type === 'insert' ? '"as answered"' : 'null'))
    const outcome = await invoke('nests', host)
    expect(outcome).toMatchObject({ result: [idOf(0), null, 'as answered'] })
  })

  test('may have megabytes, in frames of a bounded size', async () => {
    const host = noting()
    const outcome = await invoke('adds', host, { input: { count: 8_192, size: 900 } })
    assert(outcome.kind === 'returned', outcome.kind)
    expect(new Set(outcome.result as string[]).size).toBe(8_192)
    expect(host.seen).toHaveLength(8_192)
  })

  test('counts among its operations', async () => {
    const count = OPERATIONS_MAX
    const fits = await invoke('adds', noting(), { input: { count } })
    expect(fits).toMatchObject({ kind: 'returned' })
    const host = noting()
    expect(await invoke('adds', host, { input: { count: count + 1 } })).toEqual({
      ...{ kind: 'limit', limit: 'operations' },
    })
    expect(host.seen.length).toBeLessThanOrEqual(count)
  })
})

describe('a call ahead is void', () => {
  test.each([
    ['a write is refused', 'adds', { input: { count: 2 } }, refusing],
    ['a write is refused that the code would have caught', 'catches', {}, refusing],
    ['a write is refused and the code throws', 'throws', {}, refusing],
    ['a read is refused', 'reads', { input: { ids: ['x_1'] }, kind: 'query' }, refusing],
    ['a write was not awaited', 'forgets', {}, answers()],
    ['writes were left open', 'each', {}, answers()],
    ['a write was left open that would be caught', 'catchesLater', {}, answers()],
    ['a read was left open', 'dangles', { input: { id: 'x_1' }, kind: 'query' }, answers()],
  ] as const)('where %s', async (_, name, options, answering) => {
    const outcome = await invoke(name, notingHost(answering), options)
    expect(outcome).toEqual({ kind: 'misspeculated' })
    expect(await invoke('adds', noting(), ONE)).toMatchObject({
      kind: 'returned',
    })
  })

  test('where the refusal comes after the runner has ended it', async () => {
    const { host, asked, fail } = held()
    const outcome = invoke('adds', host, { input: { count: 2 } })
    await asked(2)
    await isSettled(outcome)
    fail(new OperationError('UniqueViolation', 'taken'))
    expect(await outcome).toEqual({ kind: 'misspeculated' })
    expect(await invoke('adds', noting(), ONE)).toMatchObject({
      kind: 'returned',
    })
  })

  test('behind its end again and again, and does not wear out its runner', async () => {
    const late = notingHost(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      throw new OperationError('UniqueViolation', 'taken')
    })
    const before = await invoke('runs', noting())
    // Beyond what a runner remembers of calls that it was told to leave.
    for (let rounds = 0; rounds < 11; rounds++) {
      const outcomes = Array.from({ length: 100 }, () => invoke('adds', late, ONE))
      expect(new Set((await Promise.all(outcomes)).map(({ kind }) => kind))).toEqual(
        new Set(['misspeculated']),
      )
    }
    assert(before.kind === 'returned', before.kind)
    // Time for another runner, which would take the next call but one.
    await new Promise((resolve) => setTimeout(resolve, 200))
    await invoke('adds', noting(), ONE)
    const after = { result: (before.result as number) + 1 }
    expect(await invoke('runs', noting())).toMatchObject(after)
  })

  test.each([
    ['adds', ONE, 'taken', "ids.push(await ctx.db.insert('notes'"],
    ['forgets', {}, 'ctx.db.insert was not awaited: write "await"', 'forgets: mutation('],
    ['each', {}, 'was still running when the Function ended', 'async (n) =>'],
    ['catchesLater', {}, 'was still running when the Function ended', 'catchesLater:'],
    ['dangles', { input: { id: 'x_1' } }, 'was still running when the Function ended', 'dangles:'],
  ])(
    'and says in step what is wrong with it, and where: %s',
    async (name, options, message, at) => {
      const host = name === 'adds' ? notingHost(refusing) : noting()
      const outcome = await invoke(name, host, { ...options, given: null })
      assert(outcome.kind === 'threw', outcome.kind)
      const row = code.source.split('\n').findIndex((line) => line.includes(at)) + 1
      expect(outcome.error.message).toContain(message)
      expect(outcome.error.stack).toContain(`release.js:${row}:`)
    },
  )

  test('but fails with what its host throws otherwise', async () => {
    const { host, asked, fail } = held()
    const outcome = invoke('adds', host, { input: { count: 2 } })
    await asked(2)
    fail(new RangeError('of the host'))
    await expect(outcome).rejects.toThrow('of the host')
  })
})

describe('a call whose outcome waits for what was told', () => {
  test('ends at its deadline', async () => {
    const { host } = held()
    const started = performance.now()
    const outcome = await invoke('adds', host, { input: { count: 2 }, millis: 200 })
    expect(outcome).toEqual({ kind: 'deadline' })
    expect(performance.now() - started).toBeLessThan(5_000)
  })

  test('ends when its caller leaves', async () => {
    const { host, asked } = held()
    const signal = { aborted: false }
    const call = { ...callOf('adds', { input: { count: 2 } }), signal }
    const outcome = pool.invoke(code, call, host)
    await asked(2)
    expect(await isSettled(outcome)).toBe(false)
    signal.aborted = true
    expect(await outcome).toEqual({ kind: 'cancelled' })
  })

  test('is not answered by what is worked after its end', async () => {
    const { host, asked, letGo } = held()
    const outcome = invoke('adds', host, { input: { count: 2 }, millis: 1_000 })
    await asked(2)
    expect(await outcome).toEqual({ kind: 'deadline' })
    letGo()
    expect(await invoke('adds', noting(), ONE)).toMatchObject({
      kind: 'returned',
    })
  })

  test('is lost with its runner', async () => {
    const { host, asked } = held()
    const outcome = invoke('adds', host, { input: { count: 2 } })
    await asked(2)
    expect(await isSettled(outcome)).toBe(false)
    killRunners()
    expect(await outcome).toEqual({ kind: 'lost' })
  })
})

test.each(['insert', 'patch', 'get'])('ctx.db.%s throws after the end, also ahead', async (how) => {
  await invoke('keeps', noting(), { given: [FIRST] })
  const host = noting()
  const outcome = await invoke('late', host, { given: [FIRST], input: { how, id: FIRST.id } })
  expect(outcome).toMatchObject({ result: 'ctx was used after the Function had ended' })
  expect(host.seen).toEqual([])
})

test('a call ahead that writes without end is ended without its runner', async () => {
  const own = bench.release(`
    endless: mutation(async (ctx) => { for (;;) await ctx.db.insert('notes', {}) }),
    one: query(() => 1),`)
  await pool.warm(own)
  const endless = pool.invoke(own, callOf('endless'), noting())
  const one = () => pool.invoke(own, callOf('one', { kind: 'query' }), noting())
  for (const outcome of await Promise.all([one(), one(), one()])) {
    expect(outcome).toMatchObject({ result: 1 })
  }
  expect(await endless).toEqual({ kind: 'limit', limit: 'operations' })
  expect(await one()).toMatchObject({ result: 1 })
  expect(bench.log.text()).not.toContain('A call took too much')
})
