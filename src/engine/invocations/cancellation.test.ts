/** Callers that leave before their call ends. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../build/testing/engines.ts'

const SCHEMA = `tables({ notes: { fields: {}, indexes: [] } })`
let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(
    `
    slow: query(async (ctx) => {
      const until = 4_000
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
})
afterAll(() => bench.close())

const leaving = () => {
  const abort = new AbortController()
  setTimeout(() => abort.abort(), 30)
  return { signal: abort.signal }
}

test('a Query stops when nobody waits for it any more', async () => {
  const alone = bench.call('slow', { by: 1n }, leaving())
  await expect(alone).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('a Query that others wait for goes on when one of them leaves', async () => {
  const first = bench.call('slow', { by: 2n }, leaving())
  const second = bench.call('slow', { by: 2n })
  expect(await second).toBe('done')
  expect(await first).toBe('done')
})

test('a Mutation is carried out whoever waits', async () => {
  await bench.call('writes', {}, leaving())
  expect(await bench.call('count')).toBe(1)
})
