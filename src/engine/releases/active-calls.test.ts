/**
 * A Release that is retired during its calls, with real runners and a real store.
 *
 * @module-tag slow
 */
import { expect, test, vi } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { engineBench } from '../../../testing/engines.ts'

const SCHEMA = `tables({ notes: {
  fields: { a: { type: 'string' } },
  indexes: [{ name: 'byA', fields: ['a'], unique: false }],
} })`
const FUNCTIONS = `
  add: mutation(async (ctx) => { await ctx.db.insert('notes', { a: 'x' }) }),
  count: query(async (ctx) =>
    (await ctx.db.table('notes').index('byA', (q) => q.eq('a', 'x')).collect()).length),
  held: query((ctx) => ctx.config.variable('HELD')),
  act: action(async (ctx) => {
    await ctx.runMutation(ref('mutation', 'add'), {})
    while (await ctx.runQuery(ref('query', 'held'), {}))
      await new Promise((resolve) => setTimeout(resolve, 10))
    await ctx.runMutation(ref('mutation', 'add'), {})
    return ctx.runQuery(ref('query', 'count'), {})
  }),
  slow: mutation(async (ctx) => {
    const notes = () => ctx.db.table('notes').index('byA', (q) => q.eq('a', 'x')).collect()
    await notes()
    await ctx.db.insert('notes', { a: String((await notes()).length) })
  }),
  leave: action(async (ctx) => {
    ctx.runMutation(ref('mutation', 'slow'), {})
    await new Promise((resolve) => setTimeout(resolve, 20))
  }),`

test('running calls of a retired Release complete before its resources are released', async () => {
  const configuration = new TestConfiguration()
  configuration.change({ variables: { HELD: 'yes' } })
  const bench = await engineBench(FUNCTIONS, { schema: SCHEMA, configuration })
  try {
    await bench.call('count')
    let drained = 0
    const retainNone = () => bench.engine.retainOnly(new Map(), () => drained++)
    const first = bench.call('act')
    const second = bench.call('act')
    await expect.poll(() => bench.engine.statistics().durableSequence).toBe(2)
    expect(await retainNone()).toBe(0)
    configuration.change({})
    expect(Math.max(Number(await first), Number(await second))).toBe(4)
    expect(drained).toBe(1)
    expect(await retainNone()).toBe(2)
    expect(bench.pool.statistics().releases).toBe(0)
  } finally {
    await bench.close()
  }
})

test('a Mutation that outlives its Action retains the Release too', async () => {
  const bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
  try {
    await bench.call('count')
    let drained = 0
    const held = Promise.withResolvers<void>()
    const range = bench.store.range.bind(bench.store)
    const reads = vi.spyOn(bench.store, 'range').mockImplementation(async (request) => {
      await held.promise
      return range(request)
    })
    await expect(bench.call('leave')).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
    await expect.poll(() => reads.mock.calls.length).toBeGreaterThan(0)
    expect(await bench.engine.retainOnly(new Map(), () => drained++)).toBe(0)
    expect(drained).toBe(0)
    expect(bench.engine.statistics().durableSequence).toBe(0)
    held.resolve()
    await bench.engine.whenIdle()
    expect(bench.engine.statistics().durableSequence).toBe(1)
    expect(drained).toBe(1)
  } finally {
    await bench.close()
  }
})
