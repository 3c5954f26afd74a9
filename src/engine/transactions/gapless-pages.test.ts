/**
 * Goal: pages that end at a cursor make up the whole list, regardless of additions and removals.
 * Method: the whole engine on real documents and real runners.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { Random } from '../../../testing/fuzzing/fuzz.ts'
import { SEED } from '../../../testing/seeds.ts'

const ARGUMENTS = `arguments: {
  cursor: { type: 'nullable', inner: { type: 'string' } },
  until: { type: 'optional', inner: { type: 'string' } },
  order: { type: 'string' },
  limit: { type: 'float64' },
}`
const SCHEMA = `tables({ notes: {
  fields: { n: { type: 'float64' } },
  indexes: [{ name: 'byN', fields: ['n'], unique: false }],
} })`

let bench: EngineBench

beforeAll(async () => {
  bench = await engineBench(
    `
    add: mutation((ctx, { n }) => ctx.db.insert('notes', { n }), {
      arguments: { n: { type: 'float64' } } }),
    fill: mutation(async (ctx, { n }) => {
      for (let i = 0; i < n; i++) await ctx.db.insert('notes', { n: i })
    }, { arguments: { n: { type: 'float64' } } }),
    remove: mutation(async (ctx, { n }) => {
      const found = await ctx.db.table('notes').index('byN', (q) => q.eq('n', n)).first()
      if (found !== null) await ctx.db.delete(found._id)
    }, { arguments: { n: { type: 'float64' } } }),
    clear: mutation(async (ctx) => {
      for await (const it of ctx.db.table('notes').scan()) await ctx.db.delete(it._id)
    }),
    page: query(async (ctx, { order, ...options }) => {
      const page = await ctx.db.table('notes').index('byN').order(order).paginate(options)
      return [page.items.map(({ n }) => n), page.cursor, page.done]
    }, { ${ARGUMENTS} }),
    `,
    { schema: SCHEMA },
  )
})
beforeEach(() => bench.call('clear'))
afterAll(() => bench.close())

type Page = [items: number[], cursor: string, done: boolean]

async function page(options: {
  readonly cursor: string | null
  readonly until?: string
  readonly order?: 'asc' | 'desc'
  readonly limit?: number
}): Promise<Page> {
  const input = { order: 'asc', limit: 3, ...options }
  return (await bench.call('page', input)) as unknown as Page
}

test.each(['asc', 'desc'] as const)(
  `pages up to kept cursors, %s, are the list (SVC_SEED=${SEED})`,
  { tags: ['slow'] },
  async (order) => {
    const random = new Random(SEED)
    await bench.call('fill', { n: 10 })
    const ends: string[] = []
    for (let cursor: string | null = null; ends.length < 3; ) {
      const [, end] = await page({ cursor, order })
      ends.push(end)
      cursor = end
    }
    for (let i = 0; i < 12; i++) {
      const n = random.below(24) / 2 - 0.5
      await bench.call(random.chance(2) ? 'add' : 'remove', { n })
      const [all] = await page({ cursor: null, order, limit: 1_000 })
      const pages = [...ends, undefined].map((until, at) => {
        const limit = until === undefined ? 1_000 : 1
        return page({ cursor: ends[at - 1] ?? null, order, limit, ...(until && { until }) })
      })
      const found = await Promise.all(pages)
      expect(found.flatMap(([items]) => items)).toEqual(all)
      expect(found.map(([, , done]) => done)).toEqual([false, false, false, true])
      expect(found.slice(0, 3).map(([, cursor]) => cursor)).toEqual(ends)
    }
  },
)

test('a page up to a cursor has more documents than one read, and than the limit', {
  tags: ['slow'],
}, async () => {
  await bench.call('fill', { n: 2_500 })
  const [, until] = await page({ cursor: null, order: 'asc', limit: 1_000 })
  for (let i = 0; i < 3; i++) await bench.call('add', { n: 1 })
  const [items, cursor, done] = await page({ cursor: null, until, limit: 1 })
  expect([items.length, items.at(-1), cursor, done]).toEqual([1_003, 999, until, false])
  const [, last] = await page({ cursor: null, order: 'desc', limit: 1 })
  expect((await page({ cursor: null, until: last }))[0]).toHaveLength(2_503)
})

test('a page from a cursor up to itself is empty, and one before it is rejected', async () => {
  await bench.call('fill', { n: 10 })
  const [, first] = await page({ cursor: null })
  const [, second] = await page({ cursor: first })
  expect(await page({ cursor: first, until: first })).toEqual([[], first, false])
  for (const until of [first, 'x', '']) {
    await expect(page({ cursor: second, until })).rejects.toMatchObject({
      code: 'ARGUMENTS_INVALID',
    })
  }
})
