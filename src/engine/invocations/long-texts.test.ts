/**
 * Goal: an invalid text of any length is rejected in the author's code, and never ends the runner
 * that serves other calls. Method: real runners; the test compares what each Function catches and
 * checks the log.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'

const SCHEMA = `tables({ notes: { fields: { text: { type: 'string' } }, indexes: [] } })`
const TEXT = `{ arguments: { text: { type: 'string' } } }`
const FUNCTIONS = `
  ...(() => {
    const caught = (make, work) => make(async (ctx, { text }) => {
      try { return await work(ctx, text) } catch (error) { return String(error) }
    }, ${TEXT})
    return {
      get: caught(query, (ctx, text) => ctx.db.get(text)),
      patch: caught(mutation, (ctx, text) => ctx.db.patch(text, { text: 'x' })),
      replace: caught(mutation, (ctx, text) => ctx.db.replace(text, { text: 'x' })),
      delete: caught(mutation, (ctx, text) => ctx.db.delete(text)),
      insert: caught(mutation, (ctx, text) => ctx.db.insert(text, { text: 'x' })),
      run: caught(query, (ctx, text) => ctx.runQuery({ kind: 'query', name: text })),
    }
  })(),
  page: query(async (ctx, { text }) => {
    const { items } = await ctx.db.table('notes').scan().paginate({ cursor: text, limit: 1 })
    return items
  }, ${TEXT}),
  removes: mutation(async (ctx, { text }) => {
    const id = await ctx.db.insert('notes', { text })
    const names = Array.from({ length: text.length }, (_, i) => [text + i, undefined])
    await ctx.db.patch(id, { ...Object.fromEntries(names), text: 'patched' })
    return (await ctx.db.get(id)).text
  }, ${TEXT}),`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
})
afterAll(async () => {
  expect(bench.log.text()).not.toContain('protocol')
  await bench.close()
})

const LENGTHS = [5, 65, 257, 513, 1_025, 65_537, 500_000]

test.each([
  ['get', /^TypeError: "x+" is not a document ID$/],
  ['patch', /^TypeError: "x+" is not a document ID$/],
  ['replace', /^TypeError: "x+" is not a document ID$/],
  ['delete', /^TypeError: "x+" is not a document ID$/],
  ['insert', /^TypeError: ctx.db.insert: schema.ts declares no table "x+"$/],
  ['run', /^TypeError: there is no Function "x+" in this Release$/],
])(
  '%s rejects an invalid text of any length in the author’s code',
  { tags: ['slow'] },
  async (name, message) => {
    for (const length of LENGTHS) {
      expect(await bench.call(name, { text: 'x'.repeat(length) })).toMatch(message)
    }
  },
)

test('an invalid cursor of any length is ARGUMENTS_INVALID', async () => {
  for (const length of LENGTHS) {
    const outcome = bench.call('page', { text: 'x'.repeat(length) })
    await expect(outcome).rejects.toMatchObject({ code: 'ARGUMENTS_INVALID' })
  }
})

test('a patch removes many names of any length', async () => {
  for (const length of [5, 65, 1_025]) {
    expect(await bench.call('removes', { text: 'x'.repeat(length) })).toBe('patched')
  }
})
