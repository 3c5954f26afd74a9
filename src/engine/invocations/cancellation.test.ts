/** Callers that disconnect before their call ends. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'

const SCHEMA = `tables({ notes: { fields: {}, indexes: [] } })`
let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(
    `
    slow: query(async (ctx) => {
      const until = 2_000
      for (let i = 0; i < until; i++) await ctx.db.table('notes').scan().first()
      return 'done'
    }, { arguments: { by: { type: 'int64' } } }),
    writes: mutation(async (ctx) => {
      for (let i = 0; i < 500; i++) await ctx.db.table('notes').scan().first()
      await ctx.db.insert('notes', {})
    }),
    count: query(async (ctx) => (await ctx.db.table('notes').scan().collect()).length),`,
    { schema: SCHEMA },
  )
  // Otherwise a caller may disconnect before the preparation ends and its call starts.
  await bench.engine.warm(bench.release)
})
afterAll(() => bench.close())

const disconnecting = () => {
  const abort = new AbortController()
  setTimeout(() => abort.abort(), 30)
  return { signal: abort.signal }
}

test('a Query stops when its only caller disconnects', async () => {
  const only = bench.call('slow', { by: 1n }, disconnecting())
  await expect(only).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('a Query that several callers share continues when one of them disconnects', async () => {
  const first = bench.call('slow', { by: 2n }, disconnecting())
  const second = bench.call('slow', { by: 2n })
  expect(await second).toBe('done')
  expect(await first).toBe('done')
})

test('a Mutation completes after its caller disconnects', async () => {
  await bench.call('writes', {}, disconnecting())
  expect(await bench.call('count')).toBe(1)
})
