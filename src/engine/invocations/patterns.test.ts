/** String patterns at every validator, with real documents and a real runner. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import type { FunctionManifest } from '../../value/manifest.ts'

const SLUG = "{ type: 'string', pattern: '[a-z]+(?:-[a-z]+)*' }"
const SCHEMA = `tables({ pages: { fields: { slug: ${SLUG} }, indexes: [] } })`
const FUNCTIONS = `
  echo: query((_, { slug }) => slug, { arguments: { slug: ${SLUG} }, returns: ${SLUG} }),
  answer: query((_, { slug }) => slug,
    { arguments: { slug: { type: 'string' } }, returns: ${SLUG} }),
  relay: query((ctx, { slug }) => ctx.runQuery(ref('query', 'echo'), { slug }),
    { arguments: { slug: { type: 'string' } } }),
  add: mutation((ctx, { slug }) => ctx.db.insert('pages', { slug }),
    { arguments: { slug: { type: 'string' } } }),`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
})
afterAll(() => bench.close())

test('a matching string passes every validator', async () => {
  for (const name of ['echo', 'answer', 'relay']) {
    expect(await bench.call(name, { slug: 'a-page' })).toBe('a-page')
  }
  await bench.call('add', { slug: 'a-page' })
})

test.each<[name: string, code: string, detail: string]>([
  ['echo', 'ARGUMENTS_INVALID', 'arguments.slug: a string that matches /'],
  ['answer', 'RESULT_INVALID', 'a string that matches /'],
  ['relay', 'FUNCTION_FAILED', 'a string that matches /'],
  ['add', 'FUNCTION_FAILED', 'a string that matches /'],
])('a string that does not match is rejected by %s', async (name, code, detail) => {
  for (const slug of ['', 'A', 'a-', 'a page', `${'a'.repeat(50_000)}!`]) {
    await expect(bench.call(name, { slug })).rejects.toMatchObject({
      code,
      detail: expect.stringContaining(detail),
    })
  }
})

test('the description of the code contains the pattern', () => {
  const { arguments: fields } = bench.release.functions.get('f.echo') as FunctionManifest
  expect(fields.slug).toEqual({ type: 'string', pattern: '[a-z]+(?:-[a-z]+)*' })
})
