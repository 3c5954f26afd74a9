/** Queries of an index for documents without its optional field, in real runners. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'

const SCHEMA = `tables({ notes: {
  fields: {
    name: { type: 'string' },
    deletedAt: { type: 'optional', inner: { type: 'nullable', inner: { type: 'string' } } },
  },
  indexes: [
    { name: 'byDeleted', fields: ['deletedAt', 'name'], unique: false },
    { name: 'byName', fields: ['name'], unique: false },
  ],
} })`
const FUNCTIONS = `
  fill: mutation(async (ctx) => {
    for (const name of ['c', 'a', 'b']) await ctx.db.insert('notes', { name })
    await ctx.db.insert('notes', { name: 'null', deletedAt: null })
    await ctx.db.insert('notes', { name: 'text', deletedAt: '' })
  }),
  ...(() => {
    const notes = (ctx, range) => ctx.db.table('notes').index('byDeleted', range)
    const absent = (q) => q.eq('deletedAt', undefined)
    const names = async (rows) => (await rows.collect()).map(({ name }) => name).join()
    const caught = async (work) => { try { return await work() } catch (e) { return String(e) } }
    return {
      all: query((ctx) => names(notes(ctx))),
      absent: query((ctx) => names(notes(ctx, absent))),
      isNull: query((ctx) => names(notes(ctx, (q) => q.eq('deletedAt', null)))),
      behind: query((ctx) => names(notes(ctx, (q) => absent(q).gt('name', 'a')))),
      pages: query(async (ctx) => {
        const rows = notes(ctx, absent)
        const found = []
        for (let page = { cursor: null }; !page.done; ) {
          page = await rows.paginate({ cursor: page.cursor, limit: 2 })
          found.push(page.items.map(({ name }) => name).join())
        }
        return found.join(' ')
      }),
      moved: mutation(async (ctx) => {
        const rows = () => notes(ctx, absent)
        const first = await rows().first()
        await ctx.db.patch(first._id, { deletedAt: 'x' })
        await ctx.db.insert('notes', { name: 'new' })
        return names(rows())
      }),
      required: query((ctx) => caught(() =>
        ctx.db.table('notes').index('byName', (q) => q.eq('name', undefined)).collect())),
      bound: query((ctx) => caught(() =>
        notes(ctx, (q) => q.lt('deletedAt', undefined)).collect())),
    }
  })(),`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
  await bench.call('fill')
})
afterAll(() => bench.close())

test.each([
  ['an absent field comes before every value', 'all', 'a,b,c,null,text'],
  ['eq of undefined finds the documents without the field', 'absent', 'a,b,c'],
  ['null is a value of its own', 'isNull', 'null'],
  ['the next field is compared after it', 'behind', 'b,c'],
  ['pages continue the range', 'pages', 'a,b c'],
  ['a transaction reads its own changes', 'moved', 'b,c,new'],
  [
    'a field that is not optional is never absent',
    'required',
    'TypeError: index field "name" is undefined, and is not optional: no document is without it',
  ],
  [
    'a bound of undefined is rejected',
    'bound',
    'TypeError: index "byDeleted" of table "notes": deletedAt is undefined: leave the bound out, ' +
      'or find those without the field with eq',
  ],
])('%s', async (_, name, result) => {
  expect(await bench.call(name)).toBe(result)
})
