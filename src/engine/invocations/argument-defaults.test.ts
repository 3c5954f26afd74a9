/** Arguments with defaults, in calls by applications and by Functions, with a real runner. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { realSystem } from '../../system/system.ts'

const FIELD = (inner: string, byDefault: string) =>
  `{ type: 'optional', inner: { type: '${inner}' }, default: ${byDefault} }`
const LONG = FIELD('string', "'x'.repeat(8000)")
const ITEM = `{ type: 'object', fields: { a: ${LONG} } }`
const FUNCTIONS = `
  limit: query((_, { limit }) => limit,
    { arguments: { limit: ${FIELD('int64', "{ $i: '10' }")} }, returns: { type: 'int64' } }),
  add: mutation(async (ctx, { text }) => { await ctx.db.insert('notes', { text }); return text },
    { arguments: { text: ${FIELD('string', "'usual'")} }, returns: { type: 'string' } }),
  relay: query((ctx) => ctx.runQuery(ref('query', 'limit'), {}), {}),
  many: query((_, { items }) => BigInt(items.length),
    { arguments: { items: { type: 'array', items: ${ITEM} } } }),`
const SCHEMA = `tables({ notes: { fields: { text: { type: 'string' } }, indexes: [] } })`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
})
afterAll(() => bench.close())

test('a handler gets the default of an argument that its caller leaves out', async () => {
  expect(await bench.call('limit')).toBe(10n)
  expect(await bench.call('limit', { limit: 3n })).toBe(3n)
  expect(await bench.call('relay')).toBe(10n)
  expect(await bench.call('add')).toBe('usual')
})

test('a Mutation is repeated by the arguments that its caller gave', async () => {
  const operationId = realSystem().ids.make('opn')
  expect(await bench.call('add', {}, { operationId })).toBe('usual')
  expect(await bench.call('add', {}, { operationId })).toBe('usual')
  await expect(bench.call('add', { text: 'usual' }, { operationId })).rejects.toMatchObject({
    code: 'OPERATION_REUSED',
  })
})

test.each([
  [200, null],
  [400, 'LIMIT_EXCEEDED'],
  [5_000, 'ARGUMENTS_INVALID'],
])('defaults count towards the bounds of arguments: %i items', async (count, code) => {
  const items = Array.from({ length: count }, () => new Map())
  const called = bench.call('many', { items })
  if (code === null) expect(await called).toBe(BigInt(count))
  else await expect(called).rejects.toMatchObject({ code })
})
