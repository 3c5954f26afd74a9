/** A Release that is retired while calls of it run: over real runners and a real store. */
import { expect, test } from 'vitest'
import { TestConfiguration } from '../../../build/testing/configurations.ts'
import { engineBench } from '../../../build/testing/engines.ts'

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
    for (const at = { i: 0 }; at.i < 3e8; at.i++);
    await ctx.db.insert('notes', { a: String((await notes()).length) })
  }),
  leave: action(async (ctx) => {
    ctx.runMutation(ref('mutation', 'slow'), {})
    await new Promise((resolve) => setTimeout(resolve, 20))
  }),`

test('what runs is carried out, and what it needs goes when the last of it has ended', async () => {
  const configuration = new TestConfiguration()
  configuration.change({ variables: { HELD: 'yes' } })
  const bench = await engineBench(FUNCTIONS, { schema: SCHEMA, configuration })
  try {
    await bench.call('count')
    let ended = 0
    const keepNone = () => bench.engine.keepOnly(new Map(), () => ended++)
    const act = bench.call('act')
    const other = bench.call('act')
    await expect.poll(() => bench.engine.statistics().durableSequence).toBe(2)
    expect(await keepNone()).toBe(0)
    configuration.change({})
    expect(Math.max(Number(await act), Number(await other))).toBe(4)
    expect(ended).toBe(1)
    expect(await keepNone()).toBe(2)
    expect(bench.pool.statistics().releases).toBe(0)
  } finally {
    await bench.close()
  }
})

test('a Mutation that outlives its Action is one of them', async () => {
  const bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
  try {
    await bench.call('count')
    let ended = 0
    await expect(bench.call('leave')).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
    expect(await bench.engine.keepOnly(new Map(), () => ended++)).toBe(0)
    expect(ended).toBe(0)
    expect(bench.engine.statistics().durableSequence).toBe(0)
    await bench.engine.idle()
    expect(bench.engine.statistics().durableSequence).toBe(1)
    expect(ended).toBe(1)
  } finally {
    await bench.close()
  }
})
