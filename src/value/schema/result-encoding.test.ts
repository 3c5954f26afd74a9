import { describe, expect, test } from 'vitest'
import { arbitraryValue } from '../../../testing/arbitrary-values.ts'
import { fc, inputs } from '../../../testing/properties.ts'
import {
  accepted,
  arbitraryValidator,
  picker,
  ULID,
} from '../../../testing/schemas/arbitrary-validators.ts'
import { SEED } from '../../../testing/seeds.ts'
import { encodeStored, fromStoredJson } from '../stored.ts'
import { encodeTagged } from '../tagged.ts'
import { ValidationError } from '../validation-error.ts'
import { compileValidator, type ValidatorJson } from '../validators.ts'
import { Timestamp, TypedId, type Value } from '../values.ts'
import { compileResult, EncodedTextCache, findNamed, ResultTooLong } from './result-encoding.ts'

/** Reference: encodeTagged(check(fromStoredJson(json))), or null if that throws. */
function referenceEncoding(json: ValidatorJson, value: unknown): string | null {
  try {
    const check = compileValidator(json, { coerce: true })
    return encodeTagged(check(fromStoredJson(value), 'result'))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return null
  }
}

/** Values that only a malicious runner sends. */
const oddities = fc.constantFrom<unknown>(
  '\ud800',
  Number.POSITIVE_INFINITY,
  -0,
  { $i: '07' },
  { $i: '9223372036854775808' },
  { $i: 7 },
  { $x: '1' },
  { $b: 'A' },
  { $b: '!' },
  { $t: '1', $i: '1' },
  { $d: 'messages_1' },
  { '': 1 },
  { $: 1 },
  JSON.parse('{"__proto__":1}') as unknown,
  { a: '\udc00' },
  { '\ud800': 1 },
  { $a: null },
  [[]],
  { $$a: null },
  { $i: '-9223372036854775808' },
  { $t: '9223372036854775807' },
  { unknown: true },
  { unknown: false },
  { unknown: true, more: 1 },
)

function parameters(seed: number) {
  return { seed, numRuns: inputs(5_000) }
}

test(`what a validator accepts is encoded as the checked value would be (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  let met = 0
  const numbers = fc.infiniteStream(fc.nat({ max: 1_000 }))
  const property = fc.property(arbitraryValidator, numbers, (json, stream) => {
    const pick = picker(stream)
    const value = accepted(json, pick)
    const expected = referenceEncoding(json, value)
    if (expected !== null) met += 1
    expect(compileResult(json)(value)).toBe(expected)
  })
  fc.assert(property, parameters(SEED))
  expect(met).toBeGreaterThan(inputs(3_000))
})

test(`any other value is rejected where the check rejects it (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  const stored = arbitraryValue.map((value): unknown => JSON.parse(encodeStored(value)))
  const nested = fc.oneof(
    stored,
    oddities,
    oddities.map((value) => [value]),
    oddities.map((value) => ({ a: value })),
  )
  const property = fc.property(arbitraryValidator, nested, (json, value) => {
    expect(compileResult(json)(value)).toBe(referenceEncoding(json, value))
    const open = compileResult({ type: 'any' })
    expect(open(value)).toBe(referenceEncoding({ type: 'any' }, value))
  })
  fc.assert(property, parameters(SEED))
})

test('a result has the defaults that its handler leaves out, also of a member of a union', () => {
  const field = { type: 'optional', inner: { type: 'string' }, default: 'x' } as const
  const both: ValidatorJson = { type: 'object', fields: { a: { type: 'string' }, b: field } }
  const one: ValidatorJson = { type: 'object', fields: { a: field } }
  const json: ValidatorJson = { type: 'union', members: [both, one] }
  const encode = compileResult(json)
  const value = (fields: object) => encodeTagged(new Map(Object.entries(fields)))
  expect(encode({ a: 'y', b: 'z' })).toBe(value({ a: 'y', b: 'z' }))
  expect(encode({})).toBe(value({ a: 'x' }))
  // What the second member makes of {} is not changed by the first one.
  expect(encode({ a: 'x' })).toBe(value({ a: 'x' }))
  expect(encode({ c: 1 })).toBeNull()
})

test('many defaults in a result are rejected before they fill the memory', () => {
  const field = { type: 'optional', inner: { type: 'string' }, default: 'x'.repeat(8_000) } as const
  const encode = compileResult({ type: 'array', items: { type: 'object', fields: { a: field } } })
  expect(() => encode(Array.from({ length: 10_000 }, () => ({})))).toThrow(ResultTooLong)
  expect(encode([{}])).not.toBeNull()
})

test('depth and entries are bounded as for any value', () => {
  const nest = (levels: number, leaf: unknown): unknown =>
    levels === 0 ? leaf : [nest(levels - 1, leaf)]
  const arrays = (levels: number): ValidatorJson =>
    levels === 0 ? { type: 'int64' } : { type: 'array', items: arrays(levels - 1) }
  for (const levels of [63, 64, 65, 66]) {
    const value = nest(levels, { $i: '1' })
    expect(compileResult(arrays(levels))(value)).toBe(referenceEncoding(arrays(levels), value))
  }
  const list: ValidatorJson = { type: 'array', items: { type: 'null' } }
  const record: ValidatorJson = { type: 'record', values: { type: 'null' } }
  for (const entries of [10_000, 10_001]) {
    const items = Array.from({ length: entries }, () => null)
    const object = Object.fromEntries(items.map((item, i) => [`k${i}`, item]))
    expect(compileResult(list)(items) === null).toBe(entries > 10_000)
    expect(compileResult(record)(object) === null).toBe(entries > 10_000)
    expect(referenceEncoding(record, object) === null).toBe(entries > 10_000)
  }
})

test('coerced values have their declared type', () => {
  const text = `messages_${ULID}`
  const cases: [ValidatorJson, unknown, Value][] = [
    [{ type: 'timestamp' }, { $i: '5' }, new Timestamp(5n)],
    [{ type: 'id', table: 'messages' }, text, new TypedId(text)],
    [{ type: 'string' }, text, text],
  ]
  for (const [json, value, expected] of cases) {
    expect(compileResult(json)(value)).toBe(encodeTagged(expected))
  }
})

/** Copies the JSON, with some of its objects replaced by references to `named`. */
function withReferences(json: unknown, named: object[], pick: (max: number) => number): unknown {
  if (typeof json !== 'object' || json === null) return json
  if (Array.isArray(json)) return json.map((item) => withReferences(item, named, pick))
  const keys = Object.keys(json)
  // Only documents are referenced, never marked values.
  const isMark = keys.length === 1 && /^\$(?!\$)/.test(keys[0]!)
  if (isMark || pick(1) === 0) {
    const content = Object.entries(json).map(([key, item]) => [
      key,
      withReferences(item, named, pick),
    ])
    return isMark ? json : Object.fromEntries(content)
  }
  if (!named.includes(json)) named.push(json)
  return { $r: named.indexOf(json) }
}

test(`a referenced object is encoded like an inline one (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  let met = 0
  const numbers = fc.infiniteStream(fc.nat({ max: 1_000 }))
  const stored = arbitraryValue.map((value): unknown => JSON.parse(encodeStored(value)))
  const property = fc.property(arbitraryValidator, stored, numbers, (json, other, stream) => {
    const pick = picker(stream)
    const fitting = accepted(json, pick)
    const nested = [fitting, { a: fitting, b: [{ a: fitting }] }, other]
    // Each occurs at several depths and in several results of one encoder.
    const validators: ValidatorJson[] = [json, { type: 'array', items: json }, { type: 'any' }]
    for (const each of validators) {
      const encode = compileResult(each)
      for (const value of [fitting, [fitting, fitting], nested, other, nested]) {
        const named: object[] = []
        const text = withReferences(value, named, pick)
        const expected = referenceEncoding(each, value)
        if (named.length > 0 && expected !== null) met += 1
        expect(encode(text, named)).toBe(expected)
      }
    }
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(2_000) })
  expect(met).toBeGreaterThan(inputs(2_000))
})

test('the depth of a referenced object includes the depth of its reference', () => {
  const nest = (levels: number, leaf: unknown): unknown =>
    levels === 0 ? leaf : [nest(levels - 1, leaf)]
  const document = { a: [{ b: { $i: '1' } }] }
  const encode = compileResult({ type: 'any' })
  for (const levels of [0, 60, 61, 62, 63, 64, 65, 0, 61]) {
    const expected = referenceEncoding({ type: 'any' }, nest(levels, document))
    expect(encode(nest(levels, { $r: 0 }), [document])).toBe(expected)
    expect(expected === null).toBe(levels > 61)
  }
})

const INVALID_REFERENCES: readonly unknown[] = [
  -1,
  1,
  0.5,
  2 ** 53,
  1e308,
  '0',
  'length',
  'at',
  null,
  true,
  [0],
  {},
  ['length'],
]

test.each(INVALID_REFERENCES.map((reference) => ({ reference })))(
  '$reference is not a valid reference',
  ({ reference }) => {
    const json: unknown = { $r: reference }
    expect(findNamed(json, [{ a: 1 }])).toBeNull()
    for (const type of ['any', 'record', 'object'] as const) {
      const more = { fields: {}, values: { type: 'any' } } as const
      expect(compileResult({ type, ...more } as ValidatorJson)(json, [{ a: 1 }])).toBeNull()
    }
  },
)

test('an object with other keys, or with an escaped key, is not a reference', () => {
  const encode = compileResult({ type: 'any' })
  expect(encode({ $r: 0, a: 1 }, [{}])).toBeNull()
  expect(encode({ $$r: 0 }, [{}])).toBe(referenceEncoding({ type: 'any' }, { $$r: 0 }))
  expect(encode({ a: { $$r: 0 } }, [{}])).toBe(
    referenceEncoding({ type: 'any' }, { a: { $$r: 0 } }),
  )
})

test('references of one result are invalid in the next', () => {
  const encode = compileResult({ type: 'any' })
  expect(encode({ $r: 0 }, [{ a: 1 }])).not.toBeNull()
  expect(encode({ $r: 0 })).toBeNull()
})

test('an encoder keeps no reference to a document after its result', { tags: ['slow'] }, () => {
  const encoders = Array.from({ length: 100 }, () => compileResult({ type: 'any' }))
  const documents = encoders.map((encode) => {
    const document = { a: 1 }
    encode({ $r: 0 }, [document])
    return new WeakRef(document)
  })
  Bun.gc(true)
  // The stack may still reference a few.
  const held = documents.filter((document) => document.deref() !== undefined)
  expect(held.length).toBeLessThan(20)
  expect(encoders[0]!(null)).not.toBeNull()
})

test('the text of a document is encoded once, until the cache is full', () => {
  let made = 0
  const kept = new EncodedTextCache()
  const contentOf = (document: object): unknown => {
    made += 1
    return document
  }
  const encode = compileResult({ type: 'array', items: { type: 'any' } }, { contentOf }, kept)
  const document = { a: [1] }
  const text = encode([{ $r: 0 }, { $r: 0 }], [document])
  encode([{ $r: 0 }], [document])
  expect(made).toBe(1)
  const large = 'x'.repeat(1024 * 1024)
  for (let i = 0; i < 31; i++) kept.add(large)
  encode([{ $r: 0 }], [document])
  expect(made).toBe(1)
  kept.add(large)
  expect(encode([{ $r: 0 }, { $r: 0 }], [document])).toBe(text)
  expect(made).toBe(2)
})

test('only the text of reused documents is cached', () => {
  const seen = new Set<object>()
  let made = 0
  const contentOf = (document: object): unknown => {
    made += 1
    return document
  }
  const kept = new EncodedTextCache((document) => seen.size === seen.add(document).size)
  const encode = compileResult({ type: 'any' }, { contentOf }, kept)
  const document = { a: [1] }
  const texts = Array.from({ length: 4 }, () => encode({ $r: 0 }, [document]))
  expect(made).toBe(2)
  expect(new Set(texts)).toEqual(new Set([encode(document)]))
})

describe('a large document', () => {
  const document = { body: 'x'.repeat(1_000_000) }
  const million = Array.from({ length: 1_000 }, () =>
    Array.from({ length: 1_000 }, () => ({ $r: 0 })),
  )

  test.each<ValidatorJson>([
    { type: 'any' },
    { type: 'array', items: { type: 'array', items: { type: 'any' } } },
    { type: 'union', members: [{ type: 'null' }, { type: 'any' }] },
  ])('a million references to a large document are rejected at once: $type', (json) => {
    const encode = compileResult(json)
    // CPU time, since a busy machine may pause this process.
    const started = process.cpuUsage()
    const before = process.memoryUsage().rss
    expect(() => encode(million, [document])).toThrow(ResultTooLong)
    const { user, system } = process.cpuUsage(started)
    expect((user + system) / 1_000).toBeLessThan(1_000)
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6)
  })

  test('a large document counts once, even if a union rejects the object around it', () => {
    const kinds = Array.from({ length: 40 }, (_, i) => `kind ${i}`)
    const member = (kind: string): ValidatorJson => ({
      type: 'object',
      fields: { body: { type: 'any' }, kind: { type: 'literal', value: { string: kind } } },
    })
    const json: ValidatorJson = {
      type: 'array',
      items: { type: 'union', members: kinds.map(member) },
    }
    const held = [{ body: document, kind: 'kind 39' }]
    const named = [{ body: { $r: 0 }, kind: 'kind 39' }]
    expect(compileResult(json)(named, [document])).toBe(compileResult(json)(held))
  })
})
