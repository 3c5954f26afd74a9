/**
 * Violations of unique indexes as authors and callers see them: real runners with the module "svc"
 * as it ships, over real documents.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../testing/engines.ts'
import { SDK_TEXTS } from '../sdk/embedded.generated.ts'

const SCHEMA = `tables({ names: {
  fields: { name: { type: 'string' }, n: { type: 'int64' } },
  indexes: [
    { name: 'byName', fields: ['name'], unique: true },
    { name: 'byN', fields: ['n'], unique: true },
  ],
} })`

const FUNCTIONS = `
  add: mutation(async (ctx, { name, n }) => {
    await ctx.db.insert('names', { name, n })
  }, { arguments: { name: { type: 'string' }, n: { type: 'int64' } } }),
  returned: mutation((ctx) => ctx.db.insert('names', { name: 'taken', n: 2n })),
  patched: mutation(async (ctx) => {
    const id = await ctx.db.insert('names', { name: 'free', n: 2n })
    await ctx.db.patch(id, { n: 1n })
  }),
  caught: mutation(async (ctx) => {
    const seen = []
    for (const fields of [{ name: 'taken', n: 2n }, { name: 'free', n: 1n }]) {
      try { await ctx.db.insert('names', fields) } catch (error) { seen.push(shown(error)) }
    }
    return seen
  }),
  rethrown: mutation(async (ctx) => {
    try { await ctx.runMutation(ref('mutation', 'returned')) } catch (error) { throw error }
  }),
  called: mutation((ctx) => ctx.runMutation(ref('mutation', 'returned'))),
  caughtCall: mutation(async (ctx) => {
    try { await ctx.runMutation(ref('mutation', 'returned')) } catch (error) { return shown(error) }
  }),
  caughtRepeat: mutation(async (ctx) => {
    try { await ctx.runMutation(ref('mutation', 'called')) } catch (error) { return shown(error) }
  }),
  acts: action((ctx) => ctx.runMutation(ref('mutation', 'returned'))),
  actsOnAction: action((ctx) => ctx.runAction(ref('action', 'acts'))),
  actsAndCatches: action(async (ctx) => {
    try { await ctx.runMutation(ref('mutation', 'called')) } catch (error) { return shown(error) }
  }),
  wrapped: mutation(async (ctx) => {
    try { await ctx.db.insert('names', { name: 'taken', n: 2n }) } catch (cause) {
      throw new Error('no room', { cause })
    }
  }),
  otherwise: mutation(async (ctx) => {
    try { await ctx.db.insert('names', { name: 'taken', n: 2n }) } catch {}
    throw new TypeError('another one')
  }),
  invented: mutation(() => {
    const said = { name: 'UniqueViolation', table: 'names', index: 'byName' }
    const message = 'names: another document has the same name (index byName)'
    throw Object.assign(new Error(message), said)
  }),
  others: mutation((ctx) => [new Error('x'), null, undefined, 'x', {}].map(
    (each) => each instanceof UniqueViolation)),
`
/** The module "svc" as the body of a function. */
const SDK = SDK_TEXTS.runtime
  .replace('export {', 'return {')
  .replace(/(\w+) as (\w+),$/gm, '$2: $1,')
const PRELUDE = `const { UniqueViolation } = (() => { ${SDK} })();
const shown = (error) => [
  error instanceof UniqueViolation, error instanceof Error,
  error.name, error.table, error.index, error.message,
];
`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA, prelude: PRELUDE })
  await bench.call('add', { name: 'taken', n: 1n })
})
afterAll(() => bench.close())

const BY_NAME = [
  true,
  true,
  'UniqueViolation',
  'names',
  'byName',
  'names: another document has the same name (index byName)',
]
const BY_N = [
  true,
  true,
  'UniqueViolation',
  'names',
  'byN',
  'names: another document has the same n (index byN)',
]

describe('an author catches a violation by its class, with its table and index', () => {
  test.each([
    ['of a write', 'caught', [BY_NAME, BY_N]],
    ['of a called Mutation', 'caughtCall', BY_NAME],
    ['of what a called Mutation calls', 'caughtRepeat', BY_NAME],
    ['of a Mutation that an Action calls', 'actsAndCatches', BY_NAME],
  ])('%s', async (_, name, caught) => {
    expect(await bench.call(name)).toEqual(caught)
  })

  test('only violations are instances of the class', async () => {
    expect(await bench.call('others')).toEqual([false, false, false, false, false])
  })
})

describe('a violation that no author catches is a conflict of the caller', () => {
  test.each([
    ['returned', 'index byName'],
    ['patched', 'index byN'],
    ['rethrown', 'index byName'],
    ['called', 'index byName'],
    ['acts', 'index byName'],
    ['actsOnAction', 'index byName'],
  ])('%s', async (name, detail) => {
    const failure = { code: 'UNIQUE_VIOLATION', status: 409, retryable: false }
    await expect(bench.call(name)).rejects.toMatchObject({
      ...failure,
      detail: expect.stringContaining(detail),
    })
    const record = bench.log.records().findLast(({ event }) => event === 'function.failed')
    expect(record).toMatchObject({ function: `f.${name}` })
    expect(String(record?.trace)).toMatch(/release\.js:\d+:\d+/)
  })
})

describe('an error that the author throws after a violation is a failure of the Function', () => {
  test.each(['wrapped', 'otherwise', 'invented'])('%s', async (name) => {
    await expect(bench.call(name)).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
  })
})
