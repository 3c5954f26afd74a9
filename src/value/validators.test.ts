import { describe, expect, test } from 'vitest'
import type { Json } from './strict-json.ts'
import { ValidationError } from './validation-error.ts'
import { parseValidator } from './validator-json.ts'
import { compileValidator, type ValidatorJson } from './validators.ts'
import { Timestamp, type Value } from './values.ts'

function rejection(work: () => unknown): string | null {
  try {
    work()
    return null
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return error.message
  }
}

test('a string must match its pattern as a whole, within its other bounds', () => {
  const slug: ValidatorJson = { type: 'string', maximumLength: 5, pattern: '[a-z]+(?:-[a-z]+)*' }
  for (const coerce of [false, true]) {
    const check = compileValidator(slug, { coerce })
    const rejected = (value: Value) => rejection(() => check(value, 'arguments.name'))
    expect(check('ab-cd', 'arguments.name')).toBe('ab-cd')
    const expected = 'arguments.name: a string that matches /[a-z]+(?:-[a-z]+)*/'
    for (const value of ['', 'ab-', 'x ab', 'AB', 'ab\n']) expect(rejected(value)).toBe(expected)
    expect(rejected('AB-CDE')).toBe('arguments.name: at most 5 characters')
    expect(rejected(5n)).toBe('arguments.name: a string')
  }
})

test('exact values are returned unchanged, and coerced ones are copies', () => {
  const stamp: ValidatorJson = { type: 'timestamp' }
  const checks: ValidatorJson[] = [
    { type: 'object', fields: { at: stamp, to: stamp } },
    { type: 'record', values: stamp },
  ]
  for (const json of checks) {
    const check = compileValidator(json, { coerce: true })
    const loose = new Map<string, Value>([
      ['at', 1n],
      ['to', new Timestamp(2n)],
    ])
    const exact = check(loose, '$')
    expect(exact).toEqual(new Map(Object.entries({ at: new Timestamp(1n), to: new Timestamp(2n) })))
    expect(loose.get('at')).toBe(1n)
    expect(check(exact, '$')).toBe(exact)
  }
})

test('a union tries its next member where a pattern does not match', () => {
  const members: ValidatorJson[] = [
    { type: 'string', pattern: '\\d+' },
    { type: 'string', pattern: 'none' },
  ]
  const check = compileValidator({ type: 'union', members }, { coerce: false })
  expect([check('42', '$'), check('none', '$')]).toEqual(['42', 'none'])
  expect(rejection(() => check('4x', '$'))).toBe('$: a member of the union')
})

test.each<[Json, string]>([
  ['(?=a)', '$.pattern: a pattern (this one has a look-ahead at character 1)'],
  ['a'.repeat(513), '$.pattern: a pattern (this one has 513 characters, at most 512)'],
  [5, '$.pattern: a pattern'],
  [null, '$.pattern: a pattern'],
  ['\ud800', '$.pattern: a pattern'],
])('a manifest carries no pattern that cannot be matched: %s', (pattern, message) => {
  expect(rejection(() => parseValidator({ type: 'string', pattern }))).toBe(message)
  expect(rejection(() => parseValidator({ type: 'bytes', pattern }))).toContain('no unknown field')
})

describe('validators of a manifest', () => {
  const open = (...members: Json[]): Json => ({ type: 'open', inner: { type: 'union', members } })
  const STRING = { type: 'string' }
  const field = (inner: Json, byDefault: Json): Json => {
    return { type: 'object', fields: { a: { type: 'optional', inner, default: byDefault } } }
  }
  const nested = {
    type: 'object',
    fields: { b: { type: 'optional', inner: STRING, default: 'x' } },
  }
  const deep = (levels: number): Json => (levels === 0 ? 'x' : [deep(levels - 1)])

  test.each<[string, Json, string]>([
    ['a default of another type', field(STRING, 5), '$.fields.a.default: a string'],
    [
      'a default that a runner would coerce',
      field({ type: 'timestamp' }, { $i: '5' }),
      'timestamp',
    ],
    ['a default that is not stored JSON', field({ type: 'int64' }, { $i: 5 }), 'a marked value'],
    ['a default without a default of its own', field(nested, {}), 'the defaults of its own fields'],
    ['a long default', field(STRING, 'x'.repeat(8_191)), 'at most 8192 characters of stored JSON'],
    ['a deep default', field({ type: 'any' }, deep(63)), 'at most 64 levels'],
    [
      'an unknown member as a default',
      field(open(STRING), { unknown: true }),
      '$.fields.a.default',
    ],
    ['an open validator that is no union', { type: 'open', inner: STRING }, '$.inner: a union'],
    ['an open validator of nothing', { type: 'open' }, '$.inner: a validator'],
    ['an open union in a union', { type: 'union', members: [open(STRING)] }, 'no open union'],
    ['an open union in an open one', open({ type: 'nullable', inner: open(STRING) }), 'no open'],
    ['an open union of any', open({ type: 'any' }), 'accepts { unknown: true }'],
    ['a member { unknown: true }', open({ type: 'record', values: open(STRING) }), 'unknown: true'],
    [
      'a more of an open union',
      { ...(open(STRING) as object), more: 1 },
      '$.more: no unknown field',
    ],
  ])('a manifest does not carry %s', (_, json, message) => {
    expect(rejection(() => parseValidator(json))).toContain(message)
  })

  test.each<Json>([
    field(STRING, 'x'.repeat(8_190)),
    field({ type: 'any' }, deep(61)),
    field(nested, { b: 'y' }),
    field(open(STRING), 'x'),
    field({ type: 'id', table: 'notes' }, { $d: 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV' }),
    field({ type: 'nullable', inner: STRING }, null),
    open(nested as Json),
    { type: 'nullable', inner: open(STRING) },
    { type: 'union', members: [{ type: 'array', items: open(STRING) }] },
  ])('a manifest carries %j', (json) => {
    expect(parseValidator(json)).toEqual(json)
  })
})

describe('a union with defaults or open unions in its members', () => {
  const STRING = { type: 'string' } as const
  const kind = (name: string): ValidatorJson => ({ type: 'literal', value: { string: name } })
  const map = (fields: { [name: string]: Value }) => new Map(Object.entries(fields))

  test('a union prefers the member that accepts a value as it is', () => {
    const x = { type: 'optional', inner: STRING, default: 'x' } as const
    const members: ValidatorJson[] = [
      { type: 'object', fields: { a: STRING, b: x } },
      { type: 'object', fields: { a: x } },
    ]
    const check = compileValidator({ type: 'union', members }, { coerce: false })
    expect(check(map({}), '$')).toEqual(map({ a: 'x' }))
    expect(check(map({ a: 'x' }), '$')).toEqual(map({ a: 'x' }))
    expect(check(map({ a: 'y', b: 'z' }), '$')).toEqual(map({ a: 'y', b: 'z' }))
  })

  test('a member reads no unknown member where another one accepts the value', () => {
    const open: ValidatorJson = { type: 'open', inner: { type: 'union', members: [kind('blue')] } }
    const members: ValidatorJson[] = [
      { type: 'object', fields: { a: open } },
      { type: 'object', fields: { a: STRING } },
    ]
    const check = compileValidator(
      { type: 'union', members },
      { coerce: false, unknown: 'as-read' },
    )
    expect(check(map({ a: 'green' }), '$')).toEqual(map({ a: 'green' }))
    expect(check(map({ a: 5n }), '$')).toEqual(map({ a: map({ unknown: true }) }))
  })

  test('an array with nothing to change is returned itself', () => {
    const fields = { a: { type: 'optional', inner: STRING, default: 'x' } } as const
    const items: ValidatorJson = { type: 'object', fields }
    const check = compileValidator({ type: 'array', items }, { coerce: false })
    const whole = [map({ a: 'y' }), map({ a: 'z' })]
    expect(check(whole, '$')).toBe(whole)
    const partial = [map({ a: 'y' }), map({})]
    expect(check(partial, '$')).toEqual([map({ a: 'y' }), map({ a: 'x' })])
    expect(partial[1]!.size).toBe(0)
  })
})

test('an open union accepts { unknown: true } as a value, and nothing else outside of it', () => {
  const inner: ValidatorJson = {
    type: 'union',
    members: [{ type: 'literal', value: { int64: '1' } }],
  }
  const check = compileValidator({ type: 'open', inner }, { coerce: true })
  const unknown = new Map([['unknown', true]])
  expect([check(1n, '$'), check(unknown, '$')]).toEqual([1n, unknown])
  const others: Value[] = [2n, new Map([['unknown', false]]), new Map<string, Value>()]
  for (const value of others) expect(rejection(() => check(value, '$'))).toContain('a member of')
})

test('the defaults of one value are bounded, and those of another are counted anew', () => {
  const field = { type: 'optional', inner: { type: 'string' }, default: 'x'.repeat(8_000) } as const
  const inner: ValidatorJson = { type: 'object', fields: { a: field } }
  const items: ValidatorJson = { type: 'object', fields: { o: inner } }
  const none: ValidatorJson = { type: 'object', fields: { o: inner, b: { type: 'null' } } }
  const many = (count: number) => Array.from({ length: count }, () => new Map([['o', new Map()]]))
  const list: ValidatorJson = { type: 'array', items }
  // A member that is rejected after its defaults were added does not count.
  const union: ValidatorJson = { type: 'array', items: { type: 'union', members: [none, items] } }
  for (const json of [list, union]) {
    const check = compileValidator(json, { coerce: false })
    for (let i = 0; i < 3; i++) expect(check(many(500), '$')).toHaveLength(500)
    expect(() => check(many(600), '$')).toThrow(ValidationError)
  }
  const check = compileValidator(list, { coerce: false })
  expect(rejection(() => check(many(600), '$'))).toBe(
    '$[524].o: at most 4194304 characters of defaults',
  )
})
