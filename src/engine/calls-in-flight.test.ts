/** A Release that is retired while calls of it run: over real runners and a real store. */
import { expect, test } from 'vitest'
import { engineBench } from '../../build/testing/engines.ts'

const SCHEMA = `tables({ notes: {
  fields: { a: { type: 'string' } },
  indexes: [{ name: 'byA', fields: ['a'], unique: false }],
} })`
const FUNCTIONS = `
  add: mutation(async (ctx) => { await ctx.db.insert('notes', { a: 'x' }) }),
  count: query(async (ctx) =>
    (await ctx.db.table('notes').index('byA', (q) => q.eq('a', 'x')).collect()).length),
  act: action(async (ctx) => {
    await ctx.runMutation(ref('mutation', 'add'), {})
    await new Promise((resolve) => setTimeout(resolve, 300))
    await ctx.runMutation(ref('mutation', 'add'), {})
    return ctx.runQuery(ref('query', 'count'), {})
  }),`

test('what runs is carried out, and what it needs goes when the last of it has ended', async () => {
  const bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
  try {
    await bench.call('count')
    let ended = 0
    const keepNone = () => bench.engine.keepOnly(new Map(), () => ended++)
    const act = bench.call('act')
    const other = bench.call('act')
    await expect.poll(() => bench.engine.statistics().durableSequence).toBe(2)
    expect(await keepNone()).toBe(0)
    expect(Math.max(Number(await act), Number(await other))).toBe(4)
    expect(ended).toBe(1)
    expect(await keepNone()).toBe(2)
    expect(bench.pool.statistics().releases).toBe(0)
  } finally {
    await bench.close()
  }
})
