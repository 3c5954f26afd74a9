/**
 * Documents that a result names in place of holding them: what they stand for, and what a runner
 * gains that names others, or too many. Method: the engine with real documents and real runners,
 * then results as a runner may send them that was taken over.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../build/testing/engines.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { ResultTooLong } from '../../value/result-encoding.ts'
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
    manyRefused: query(async (ctx, { id }) => {
      const it = await ctx.db.get(id)
      return Array.from({ length: 20 }, () => Array(10_000).fill(it))
    }, { ${ID}, ${STRINGS} }),
    manyNested: query(async (ctx, { id }) => {
      try { await ctx.runQuery(ref('query', 'many'), { id }) } catch { return 'caught' }
    }, { ${ID} }),`,
    { schema: SCHEMA },
  )
  const made = (await bench.call('add')) as ReadonlyMap<string, Value>
  ids = Object.fromEntries(made) as unknown as typeof ids
})
afterAll(() => bench.close())

/** As a plain object, without the time. */
function fieldsOf(value: Value): Record<string, Value> {
  const { _createdAt, ...rest } = Object.fromEntries(value as ReadonlyMap<string, Value>)
  expect(_createdAt).toBeDefined()
  return rest
}

describe('a document that is returned', () => {
  test('has the types of the validator, and those of JavaScript where there is none', async () => {
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
    // The caller of a called Function sees JavaScript again.
    expect(fieldsOf(await bench.call('nested', { id: ids.typed }))).toEqual(any)
  })

  test('is refused where the validator wants something else', async () => {
    await expect(bench.call('wrong', { id: ids.typed })).rejects.toMatchObject({
      code: 'RESULT_INVALID',
      detail: expect.stringContaining('result[0]: a string'),
    })
  })

  test('of a called Function is the caller’s own', async () => {
    expect(await bench.call('keeps', { id: ids.typed })).toEqual(['changed', 'x', 'x'])
  })

  test('is as this Mutation wrote it, each time that it is read', async () => {
    const all = (await bench.call('own', { id: ids.typed })) as Value[]
    const bodies = all.slice(0, 3).map((each) => fieldsOf(each).body)
    expect(bodies).toEqual(['x', 'y', 'x'])
    expect((all[3] as Value[]).map((each) => fieldsOf(each).body)).toEqual(['', 'x'])
  })
})

describe('a document that is named 200,000 times', () => {
  test.each([
    ['many', 'large'],
    ['many', 'tiny'],
    ['manyRefused', 'large'],
    ['manyRefused', 'tiny'],
    ['manyNested', 'large'],
    ['manyNested', 'tiny'],
  ] as const)('is a limit that is found at once: %s, %s', async (name, of) => {
    const before = process.memoryUsage().rss
    const id = ids[of]
    let longest = 0
    let last = performance.now()
    const clock = setInterval(() => {
      longest = Math.max(longest, performance.now() - last)
      last = performance.now()
    }, 5)
    await expect(bench.call(name, { id })).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      detail: 'result bytes',
    })
    clearInterval(clock)
    expect(process.memoryUsage().rss - before).toBeLessThan(400e6)
    expect(longest, 'others waited').toBeLessThan(1_000)
  })
})

describe('what a runner may say', () => {
  const text =
    '{"a":{"$t":"5"},"b":{"$$r":{"$i":"1"}},"c":[{"$d":"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"}]}'
  const one: StoredDocument = { id: 'notes_1', createdAtMicros: 3n, sequence: 2, text }
  const content = decodeStored(
    `{"_createdAt":{"$i":"3"},"_id":"notes_1","_revision":{"$i":"2"},${text.slice(1)}`
      .replace('{"$t":"5"}', '{"$i":"5"}')
      .replace('{"$d":"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"}', '"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"'),
  )

  test('a name stands for the document as JavaScript holds it', () => {
    const found = returnedValue({ x: [{ $r: 0 }, { $r: 0 }] }, [one]) as ReadonlyMap<string, Value>
    const [first, second] = found.get('x') as Value[]
    expect(encodeStored(first!)).toBe(encodeStored(content))
    expect(encodeStored(second!)).toBe(encodeStored(content))
  })

  const others: readonly unknown[] = [
    ...[-1, 1, 0.5, 1e308, '0', 'length', '__proto__', 'constructor', null, true, [0], [], {}],
  ]
  test.each(others.map((place) => ({ place })))('$place is refused as a place', ({ place }) => {
    for (const json of [{ $r: place }, [{ a: { $r: place } }]]) {
      expect(() => returnedValue(json, [one])).toThrow(ValidationError)
      expect(() => returnedValue(json, [])).toThrow(ValidationError)
    }
  })

  test('more beside a name is refused', () => {
    expect(() => returnedValue({ $r: 0, a: 1 }, [one])).toThrow(ValidationError)
  })

  test('depth and size are bounded', () => {
    const nest = (levels: number): unknown => {
      let json: unknown = { $r: 0 }
      for (let i = 0; i < levels; i++) json = [json]
      return json
    }
    // The document has two levels of its own.
    expect(returnedValue(nest(VALUE_DEPTH_MAX - 2), [one])).toHaveLength(1)
    expect(() => returnedValue(nest(VALUE_DEPTH_MAX - 1), [one])).toThrow(ValidationError)
    expect(() => returnedValue(nest(100_000), [one])).toThrow(ValidationError)
    const names = Array.from({ length: 9_000 }, () => ({ $r: 0 }))
    const long = { ...one, text: `{"a":"${'x'.repeat(1_000)}"}` }
    expect(() => returnedValue(names, [long])).toThrow(ResultTooLong)
  })
})
