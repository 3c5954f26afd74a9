/** Promises that are rejected in real runners: which call fails, and with which location. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'

const SCHEMA = `tables({ notes: { fields: { n: { type: 'int64' } }, indexes: [] } })`
const FUNCTIONS = `
  all: query(async (ctx) => (await ctx.db.table('notes').scan().collect()).map((it) => it.n)),
  guarded: mutation(async (ctx) => {
    const check = async (isAdmin) => { if (!isAdmin) throw new Error('not an admin') }
    check(false)
    await ctx.db.insert('notes', { n: 1n })
  }),
  each: mutation(async (ctx) => {
    [1, 2].forEach(async (n) => { if (n > 1) throw new RangeError('of a callback') })
    await ctx.db.insert('notes', { n: 2n })
  }),
  chained: query((ctx) => { Promise.resolve().then(() => { throw new Error('of a chain') }) }),
  odd: query((ctx) => { Promise.reject(new Proxy({}, { get() { throw 1 } })) }),
  early: query(() => 1, { errors: (Promise.reject(new Error('of the load')), {}) }),
  catching: query(async (ctx) => {
    const failing = async () => { throw new Error('caught') }
    const ways = [
      async (it) => { try { await it } catch (error) { return error.message } },
      (it) => it.catch((error) => error.message),
      (it) => it.then(null, (error) => error.message),
      async (it) => (await Promise.allSettled([it]))[0].reason.message,
      (it) => Promise.all([it, failing()]).catch((error) => error.message),
      (it) => Promise.race([it]).catch((error) => error.message),
      (it) => new Promise((resolve) => resolve(it)).catch((error) => error.message),
    ]
    const promises = ways.map(failing)
    const another = class extends Promise {}
    const own = another.reject(new Error('caught'))
    // Rejected, and looked at only when frames of the server have passed.
    for (let i = 0; i < 3; i++) await ctx.db.table('notes').scan().take(10 + i)
    const caught = []
    for (const [i, way] of ways.entries()) caught.push(await way(promises[i]))
    caught.push(await own.catch((error) => error.message))
    return new Set(caught).size + own.constructor.name
  }),
  lateFailures: mutation(async (ctx) => {
    const failing = async (turns) => { while (turns-- > 0) await null; throw new Error('late') }
    await ctx.db.insert('notes', { n: 3n })
    try { await Promise.all([failing(0), failing(1), failing(2)]) } catch (error) {}
  }),
  leaves: query(async (ctx, { n }) => {
    if (n === 1n) Promise.reject(new Error('of this call'))
    for (let i = 0; i < 20; i++) await ctx.db.table('notes').scan().take(100 + i)
    return n
  }, { arguments: { n: { type: 'int64' } } }),
  holds: query(async (ctx, { n }) => {
    const cause = new Uint8Array(2_000_000).fill(1)
    const failing = async () => { throw new Error('caught', { cause }) }
    const failed = failing()
    await ctx.db.table('notes').scan().take(200 + Number(n))
    try { await failed } catch { return Object.getOwnPropertyNames(failed) }
  }, { arguments: { n: { type: 'int64' } } }),
  leavesLoop: query(async (ctx, { n }) => {
    const looked = Promise.reject(new Error('looked at late'))
    await ctx.db.table('notes').scan().take(300)
    if (n === 1n) try { await looked } catch {}
    else looked.catch(() => {})
    const error = new Error('odd')
    const loop = () => { for (;;); }
    for (const name of ['message', 'name', 'stack']) {
      Object.defineProperty(error, name, { get: () => (Promise.resolve().then(loop), 'odd') })
    }
    Promise.reject(error)
    if (n === 1n) await ctx.db.table('notes').scan().take(301)
  }, { arguments: { n: { type: 'int64' } } }),
  late: action(async (ctx) => {
    setTimeout(async () => { throw new Error('of a timer') }, 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }),
`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
})
afterAll(() => bench.close())

const locationOf = (text: string) =>
  `release.js:${bench.release.source.split('\n').findIndex((line) => line.includes(text)) + 1}:`

describe('a promise that is rejected and never awaited', () => {
  test.each([
    ['guarded', 'Error: … not an admin', "throw new Error('not an admin')"],
    ['each', 'RangeError: … of a callback', "throw new RangeError('of a callback')"],
    ['chained', 'Error: … of a chain', "throw new Error('of a chain')"],
    ['odd', 'Error: … thrown', null],
    ['late', 'Error: … of a timer', "throw new Error('of a timer')"],
  ])('fails its call with the location and the fix: %s', async (name, message, at) => {
    await expect(bench.call(name)).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
    const failed = bench.log.records().at(-1)!
    const fix = 'a promise was rejected and not awaited, write "await" in front of it:'
    expect(failed).toMatchObject({ event: 'function.failed', function: `f.${name}` })
    expect(failed.message).toBe(message.replace('…', fix))
    if (at !== null) expect(failed.trace).toContain(locationOf(at))
    expect(await bench.call('all')).toEqual([])
  })

  test.each([0n, 1n])(
    'a rejection with a reason that starts a loop is stopped with its call: %s',
    { tags: ['slow'] },
    async (n) => {
      await expect(bench.call('leavesLoop', { n })).rejects.toMatchObject({
        code: 'LIMIT_EXCEEDED',
        detail: 'cpu: at most 1000 ms',
      })
      expect(await bench.call('early')).toBe(1)
    },
  )

  test('fails the call that created it and no other', async () => {
    const calls = Array.from({ length: 8 }, (_, i) => bench.call('leaves', { n: BigInt(i) }))
    const kinds = (await Promise.allSettled(calls)).map(({ status }) => status)
    expect(kinds).toEqual(kinds.map((_, i) => (i === 1 ? 'rejected' : 'fulfilled')))
  })
})

test('a promise that is rejected while the code loads fails no call', async () => {
  expect(await bench.call('early')).toBe(1)
})

describe('a promise that is rejected before it is awaited', () => {
  test('a rejected promise is retained no longer than the call that references it', {
    tags: ['slow'],
  }, async () => {
    expect(await bench.call('holds', { n: 0n })).toEqual([])
    const { runnersStarted } = bench.metrics.counters
    const before = runnersStarted.value
    for (let i = 1; i <= 150; i++) await bench.call('holds', { n: BigInt(i) })
    // A runner that had grown by 128 MiB would be replaced.
    expect(runnersStarted.value).toBe(before)
  })

  test('a rejected promise that the code handles in any way does not fail its call', async () => {
    expect(await bench.call('catching')).toBe('1another')
  })

  test('a rejected promise fails no call if another of its list failed first', async () => {
    expect(await bench.call('lateFailures')).toBe(null)
    expect(await bench.call('all')).toEqual([3n])
  })
})
