/**
 * Goal: documents that a Mutation deleted do not count towards the bounds of its later lists.
 * Method: the whole engine on real documents and real runners, with documents so large that a few
 * of them reach the bound on bytes read.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'

const NUMBER = `arguments: { n: { type: 'float64' } }`
const SCHEMA = `tables({ notes: {
  fields: { n: { type: 'float64' }, text: { type: 'string' } },
  indexes: [{ name: 'byN', fields: ['n'], unique: true }],
} })`

/** The code of a Mutation that deletes the first `n` documents and then runs `code`. */
const hiding = (code: string) => `mutation(async (ctx, { n }) => {
  const rows = ctx.db.table('notes').scan()
  for (const it of await rows.take(n)) await ctx.db.delete(it._id)
  ${code}
}, { ${NUMBER} })`

let bench: EngineBench

beforeAll(async () => {
  bench = await engineBench(
    `
    add: mutation(async (ctx, { n }) => {
      await ctx.db.insert('notes', { n, text: 'x'.repeat(1_000_000) })
    }, { ${NUMBER} }),
    clear: mutation(async (ctx) => {
      for await (const it of ctx.db.table('notes').scan()) await ctx.db.delete(it._id)
    }),
    first: ${hiding('return (await rows.first()).n')},
    all: ${hiding('return (await rows.collect()).map((it) => it.n)')},
    pages: ${hiding(`
      const first = await rows.paginate({ cursor: null, limit: 1 })
      const second = await rows.paginate({ cursor: first.cursor, limit: 1 })
      return [first, second].map(({ items, done }) => [items.map((it) => it.n), done])`)},
    twice: mutation(async (ctx, { n }) => {
      const rows = ctx.db.table('notes').index('byN', (q) => q.eq('n', n))
      for (let i = 0; i < 14; i++) await rows.first()
      await ctx.db.delete((await rows.first())._id)
      await ctx.db.insert('notes', { n, text: 'one' })
      await ctx.db.insert('notes', { n, text: 'another' })
    }, { ${NUMBER} }),
    `,
    { schema: SCHEMA },
  )
})
beforeEach(async () => {
  await bench.call('clear')
  for (let n = 0; n < 8; n++) await bench.call('add', { n })
})
afterAll(() => bench.close())

test('the first document after megabytes that a Mutation deleted is found', async () => {
  expect(await bench.call('first', { n: 6 })).toBe(6)
})

test('all documents after megabytes that a Mutation deleted are found', async () => {
  expect(await bench.call('all', { n: 6 })).toEqual([6, 7])
})

test('a page is full although the Mutation deleted the documents before it', async () => {
  expect(await bench.call('pages', { n: 6 })).toEqual([
    [[6], false],
    [[7], false],
  ])
})

test('a unique index rejects the second document although the first hides megabytes', async () => {
  await expect(bench.call('twice', { n: 0 })).rejects.toMatchObject({
    code: 'UNIQUE_VIOLATION',
    detail: expect.stringContaining('index byN'),
  })
})
