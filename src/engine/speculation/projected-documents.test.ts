/**
 * Goal: a Release receives, prefetches, caches and returns documents by its own schema while
 * another one writes further fields. Method: the whole engine on real documents and real runners,
 * where every Function returns documents as it received them.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { TypedId, type Value, type ValueObject } from '../../value/values.ts'
import type { Release } from '../releases/executable-release.ts'

const NAME = `name: { type: 'string' }`
const OLDER = `tables({ notes: { fields: { ${NAME} }, indexes: [] } })`
const NEWER = `tables({ notes: {
  fields: { ${NAME}, nick: { type: 'optional', inner: { type: 'string' } } },
  indexes: [],
} })`
const ID = `arguments: { id: { type: 'id', table: 'notes' } }`
const DOCUMENT = `{ type: 'object', fields: {
  _id: { type: 'id', table: 'notes' }, _createdAt: { type: 'timestamp' },
  _revision: { type: 'int64' }, ${NAME},
} }`
const FUNCTIONS = `
  get: query((ctx, { id }) => ctx.db.get(id), { ${ID}, returns: ${DOCUMENT} }),
  list: query((ctx) => ctx.db.table('notes').scan().collect(),
    { returns: { type: 'array', items: ${DOCUMENT} } }),
  touch: mutation(async (ctx, { id }) => {
    const before = await ctx.db.get(id)
    await ctx.db.patch(id, { name: before.name + Object.keys(before).length })
    return ctx.db.get(id)
  }, { ${ID}, returns: ${DOCUMENT} }),`
const WRITER = `
  add: mutation((ctx) => ctx.db.insert('notes', { name: 'a', nick: 'n' }),
    { returns: { type: 'id', table: 'notes' } }),
  nick: query(async (ctx, { id }) => (await ctx.db.get(id)).nick, { ${ID} }),`

let bench: EngineBench
let newer: Release
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: OLDER })
  newer = await bench.addRelease(WRITER, NEWER)
})
afterAll(() => bench.close())

const nameOf = (document: Value) => (document as ValueObject).get('name')

test('documents that are received again, and prefetched, hide the same fields', async () => {
  const id = (await bench.call('add', {}, { release: newer })) as TypedId
  expect(id).toBeInstanceOf(TypedId)
  // The runner caches a document that it receives a second time.
  for (let i = 0; i < 12; i++) {
    const before = nameOf(await bench.call('get', { id }))
    const listed = (await bench.call('list')) as Value[]
    expect(listed.map(nameOf)).toEqual([before])
    expect(nameOf(await bench.call('touch', { id }))).toBe(`${before}4`)
    expect(await bench.call('nick', { id }, { release: newer })).toBe('n')
  }
})
