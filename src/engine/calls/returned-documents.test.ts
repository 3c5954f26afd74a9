/**
 * Document references in results: their meaning, and the rejection of invalid or excessive ones.
 * Method: the engine with real documents and real runners, then results that a compromised runner
 * may send.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { ResultTooLong } from '../../value/schema/result-encoding.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { Timestamp, TypedId, VALUE_DEPTH_MAX, type Value } from '../../value/values.ts'
import { returnedValue } from './returned-documents.ts'

const SCHEMA = `tables({ notes: { fields: {
  body: { type: 'string' },
  at: { type: 'optional', inner: { type: 'timestamp' } },
  of: { type: 'optional', inner: { type: 'id', table: 'notes' } },
}, indexes: [] } })`

const ID = `arguments: { id: { type: 'string' } }`
const TYPED = `returns: { type: 'object', fields: {
  _id: { type: 'id', table: 'notes' }, _createdAt: { type: 'timestamp' },
  _revision: { type: 'int64' }, body: { type: 'string' },
  at: { type: 'optional', inner: { type: 'timestamp' } },
  of: { type: 'optional', inner: { type: 'id', table: 'notes' } },
} }`
const STRINGS = `returns: { type: 'array', items: { type: 'string' } }`

let bench: EngineBench
let ids: { readonly tiny: string; readonly typed: string; readonly large: string }
beforeAll(async () => {
  bench = await engineBench(
    `
    add: mutation(async (ctx) => {
      const tiny = await ctx.db.insert('notes', { body: '' })
      const typed = await ctx.db.insert('notes', { body: 'x', at: 7n, of: tiny })
      const large = await ctx.db.insert('notes', { body: 'x'.repeat(900_000) })
      return { tiny, typed, large }
    }),
    any: query((ctx, { id }) => ctx.db.get(id), { ${ID} }),
    typed: query((ctx, { id }) => ctx.db.get(id), { ${ID}, ${TYPED} }),
    wrong: query(async (ctx, { id }) => [await ctx.db.get(id)], { ${ID}, ${STRINGS} }),
    nested: query((ctx, { id }) => ctx.runQuery(ref('query', 'typed'), { id }), { ${ID} }),
    keeps: query(async (ctx, { id }) => {
      const it = await ctx.runQuery(ref('query', 'any'), { id })
      it.body = 'changed'
      return [it, await ctx.runQuery(ref('query', 'any'), { id }), await ctx.db.get(id)]
        .map(({ body }) => body)
    }, { ${ID} }),
    own: mutation(async (ctx, { id }) => {
      const before = await ctx.db.get(id)
      await ctx.db.patch(id, { body: 'y' })
      const after = await ctx.db.get(id)
      await ctx.db.patch(id, { body: 'x' })
      return [before, after, await ctx.db.get(id), await ctx.db.table('notes').scan().take(2)]
    }, { ${ID} }),
    many: query(async (ctx, { id }) => {
      const it = await ctx.db.get(id)
      return Array.from({ length: 20 }, () => Array(10_000).fill(it))
    }, { ${ID} }),
    manyRejected: query(async (ctx, { id }) => {
      const it = await ctx.db.get(id)
      return Array.from({ length: 20 }, () => Array(10_000).fill(it))
    }, { ${ID}, ${STRINGS} }),
    manyNested: query(async (ctx, { id }) => {
      try { await ctx.runQuery(ref('query', 'many'), { id }) } catch { return 'caught' }
    }, { ${ID} }),`,
    { schema: SCHEMA },
  )
  const added = (await bench.call('add')) as ReadonlyMap<string, Value>
  ids = Object.fromEntries(added) as unknown as typeof ids
})
afterAll(() => bench.close())

/** Returns the fields as a plain object, without the creation time. */
function fieldsOf(value: Value): Record<string, Value> {
  const { _createdAt, ...rest } = Object.fromEntries(value as ReadonlyMap<string, Value>)
  expect(_createdAt).toBeDefined()
  return rest
}

describe('a document that is returned', () => {
  test('a returned document has the types of its validator, or else of JavaScript', async () => {
    const typed = {
      _id: new TypedId(ids.typed),
      _revision: 1n,
      body: 'x',
      of: new TypedId(ids.tiny),
    }
    expect(fieldsOf(await bench.call('typed', { id: ids.typed }))).toEqual({
      ...typed,
      at: new Timestamp(7n),
    })
    const any = { _id: ids.typed, _revision: 1n, body: 'x', of: ids.tiny, at: 7n }
    expect(fieldsOf(await bench.call('any', { id: ids.typed }))).toEqual(any)
    // The Function that calls another one receives JavaScript types again.
    expect(fieldsOf(await bench.call('nested', { id: ids.typed }))).toEqual(any)
  })

  test('a returned document is rejected if it does not match the validator', async () => {
    await expect(bench.call('wrong', { id: ids.typed })).rejects.toMatchObject({
      code: 'RESULT_INVALID',
      detail: expect.stringContaining('result[0]: a string, but it is an object of '),
    })
  })

  test('a document from a called Function is a copy that the caller may change', async () => {
    expect(await bench.call('keeps', { id: ids.typed })).toEqual(['changed', 'x', 'x'])
  })

  test('a returned document has the content of its read, before and after writes', async () => {
    const all = (await bench.call('own', { id: ids.typed })) as Value[]
    const bodies = all.slice(0, 3).map((each) => fieldsOf(each).body)
    expect(bodies).toEqual(['x', 'y', 'x'])
    expect((all[3] as Value[]).map((each) => fieldsOf(each).body)).toEqual(['', 'x'])
  })
})

describe('a document that is referenced 200,000 times', () => {
  test.each([
    ['many', 'large'],
    ['many', 'tiny'],
    ['manyRejected', 'large'],
    ['manyRejected', 'tiny'],
    ['manyNested', 'large'],
    ['manyNested', 'tiny'],
  ] as const)('fails fast with LIMIT_EXCEEDED: %s, %s', { tags: ['slow'] }, async (name, size) => {
    const before = process.memoryUsage().rss
    const id = ids[size]
    // CPU time between two turns of the event loop: a busy machine may pause the process.
    let longest = 0
    let last = process.cpuUsage()
    const clock = setInterval(() => {
      const { user, system } = process.cpuUsage(last)
      longest = Math.max(longest, (user + system) / 1_000)
      last = process.cpuUsage()
    }, 5)
    await expect(bench.call(name, { id })).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      detail: 'result: at most 8 MiB',
    })
    clearInterval(clock)
    expect(process.memoryUsage().rss - before).toBeLessThan(400e6)
    expect(longest, 'the event loop was blocked').toBeLessThan(1_000)
  })
})

describe('a document reference', () => {
  const text =
    '{"a":{"$t":"5"},"b":{"$$r":{"$i":"1"}},"c":[{"$d":"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"}]}'
  const one: StoredDocument = { id: 'notes_1', createdAtMicros: 3n, sequence: 2, text }
  const content = decodeStored(
    `{"_createdAt":{"$i":"3"},"_id":"notes_1","_revision":{"$i":"2"},${text.slice(1)}`
      .replace('{"$t":"5"}', '{"$i":"5"}')
      .replace('{"$d":"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"}', '"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"'),
  )

  test('stands for the document with JavaScript types', () => {
    const found = returnedValue({ x: [{ $r: 0 }, { $r: 0 }] }, [one]) as ReadonlyMap<string, Value>
    const [first, second] = found.get('x') as Value[]
    expect(encodeStored(first!)).toBe(encodeStored(content))
    expect(encodeStored(second!)).toBe(encodeStored(content))
  })

  const invalid: readonly unknown[] = [
    -1,
    1,
    0.5,
    1e308,
    '0',
    'length',
    '__proto__',
    'constructor',
    null,
    true,
    [0],
    [],
    {},
  ]
  test.each(invalid.map((index) => ({ index })))(
    'a document reference is rejected with the index $index',
    ({ index }) => {
      for (const json of [{ $r: index }, [{ a: { $r: index } }]]) {
        expect(() => returnedValue(json, [one])).toThrow(ValidationError)
        expect(() => returnedValue(json, [])).toThrow(ValidationError)
      }
    },
  )

  test('a document reference is rejected with another key beside it', () => {
    expect(() => returnedValue({ $r: 0, a: 1 }, [one])).toThrow(ValidationError)
  })

  test('counts towards the bounds on depth and size', () => {
    const nest = (levels: number): unknown => {
      let json: unknown = { $r: 0 }
      for (let i = 0; i < levels; i++) json = [json]
      return json
    }
    // The document has two levels of its own.
    expect(returnedValue(nest(VALUE_DEPTH_MAX - 2), [one])).toHaveLength(1)
    expect(() => returnedValue(nest(VALUE_DEPTH_MAX - 1), [one])).toThrow(ValidationError)
    expect(() => returnedValue(nest(100_000), [one])).toThrow(ValidationError)
    const references = Array.from({ length: 9_000 }, () => ({ $r: 0 }))
    const long = { ...one, text: `{"a":"${'x'.repeat(1_000)}"}` }
    expect(() => returnedValue(references, [long])).toThrow(ResultTooLong)
  })
})
