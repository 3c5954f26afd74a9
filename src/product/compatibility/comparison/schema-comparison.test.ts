import { describe, expect, test } from 'vitest'
import type { IndexManifest } from '../../../value/manifest.ts'
import type { Json } from '../../../value/strict-json.ts'
import type { FieldsJson, OptionalJson, ValidatorJson } from '../../../value/validators.ts'
import { type Refusal, refusalText } from './refusals.ts'
import { removedTables, SchemaComparison, type Tables } from './schema-comparison.ts'

function tables(fields: FieldsJson, names: readonly string[] = ['notes']): Tables {
  return new Map(names.map((name) => [name, { name, fields, indexes: [] }]))
}

function unreadable(next: Tables, previous: Tables): Refusal[] {
  return new SchemaComparison().unreadable({ reader: next, writer: previous, newer: 'reader' })
}

/** Returns what a Release with `next` cannot read of one with `previous`. */
function refused(next: FieldsJson, previous: FieldsJson): Refusal[] {
  return unreadable(tables(next), tables(previous))
}

const string: ValidatorJson = { type: 'string' }
const optional = (inner: ValidatorJson): OptionalJson => ({ type: 'optional', inner })
const union = (...members: ValidatorJson[]): ValidatorJson => ({ type: 'union', members })
const slug: ValidatorJson = { type: 'string', pattern: '[a-z-]+' }
const literal = (text: string): ValidatorJson => ({ type: 'literal', value: { string: text } })
const nullable = (inner: ValidatorJson): ValidatorJson => ({ type: 'nullable', inner })
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })
const boolean: ValidatorJson = { type: 'boolean' }
const record: ValidatorJson = { type: 'record', values: string }
const flag = (value: boolean): ValidatorJson => ({ type: 'literal', value: { boolean: value } })
const integer = (minimum: number, maximum: number): ValidatorJson => ({
  type: 'int64',
  minimum: String(minimum),
  maximum: String(maximum),
})
const text = (minimumLength: number, maximumLength: number): ValidatorJson => ({
  type: 'string',
  minimumLength,
  maximumLength,
})

const withDefault = (inner: ValidatorJson, value: Json): OptionalJson => ({
  type: 'optional',
  inner,
  default: value,
})
const open = (...members: ValidatorJson[]): ValidatorJson => ({
  type: 'open',
  inner: union(...members),
})
const array = (items: ValidatorJson): ValidatorJson => ({ type: 'array', items })

test('a removed table is reported by its name', () => {
  expect(removedTables(new Map(), tables({}))).toEqual(['notes'])
  expect(removedTables(tables({}), new Map())).toEqual([])
  expect(unreadable(new Map(), tables({ a: string }))).toEqual([])
})

test('a pattern of more kinds of characters than a search looks at is refused', () => {
  const characters = Array.from({ length: 80 }, (_, i) => String.fromCodePoint(0x4e00 + 2 * i))
  const pattern = (some: readonly string[]): ValidatorJson => ({
    type: 'string',
    pattern: some.map((each) => `${each}b`).join('|'),
  })
  for (const missing of [0, 40, 79]) {
    const fewer = pattern(characters.filter((_, i) => i !== missing))
    expect(refused({ a: fewer }, { a: pattern(characters) })).toHaveLength(1)
  }
})

describe('what a writer stores can be read:', () => {
  test.each<[string, FieldsJson, FieldsJson]>([
    ['the same schema', { a: string }, { a: string }],
    ['a new optional field', { a: string }, { a: string, b: optional(string) }],
    ['a required field that became optional', { a: string }, { a: optional(string) }],
    ['a field that accepts anything', { a: string }, { a: { type: 'any' } }],
    ['a field that became nullable', { a: string }, { a: nullable(string) }],
    ['a wider union', { a: literal('x') }, { a: union(literal('y'), literal('x')) }],
    [
      'a union in another order',
      { a: union(literal('x'), string) },
      { a: union(string, literal('x')) },
    ],
    ['a literal that became its type', { a: literal('x') }, { a: string }],
    [
      'a literal inside new bounds',
      { a: literal('xy') },
      { a: { type: 'string', maximumLength: 2 } },
    ],
    [
      'nullable as a union with null',
      { a: nullable(string) },
      { a: union(string, { type: 'null' }) },
    ],
    [
      'a union with null as nullable',
      { a: union(string, { type: 'null' }) },
      { a: nullable(string) },
    ],
    [
      'longer strings',
      { a: { type: 'string', maximumLength: 5 } },
      { a: { type: 'string', maximumLength: 6 } },
    ],
    ['the same pattern', { a: slug }, { a: slug }],
    ['a pattern that went away', { a: slug }, { a: string }],
    ['a literal that matches the pattern', { a: literal('a-b') }, { a: slug }],
    ['a bound that went away', { a: { type: 'int64', minimum: '5' } }, { a: { type: 'int64' } }],
    ['a deeper optional field', { a: object({}) }, { a: object({ b: optional(string) }) }],
    ['a field that the reader does not declare', { a: string, b: string }, { a: string }],
    ['a hidden field of an object', { a: object({ b: string }) }, { a: object({}) }],
    [
      'a hidden field of an object that may be null',
      { a: optional(nullable(object({ b: string }))) },
      { a: optional(nullable(object({}))) },
    ],
    ['a new field with a default', { a: string }, { a: string, b: withDefault(string, 'x') }],
    ['a required field that has a default now', { a: withDefault(string, 'x') }, { a: string }],
    ['a required field that gets a default', { a: string }, { a: withDefault(string, 'x') }],
    [
      'a default inside an array',
      { a: array(object({ b: withDefault(string, 'x') })) },
      { a: array(object({ b: string })) },
    ],
    [
      'a new member of an open union',
      { a: open(literal('x'), literal('y')) },
      { a: open(literal('x')) },
    ],
    ['any value of an open union', { a: { type: 'any' } }, { a: open(literal('x')) }],
    ['an open union that becomes its union', { a: open(literal('x')) }, { a: union(literal('x')) }],
    ['a boolean as its two literals', { a: boolean }, { a: union(flag(true), flag(false)) }],
    [
      'a range of integers in two parts',
      { a: integer(0, 9) },
      { a: union(integer(5, 20), integer(-5, 4)) },
    ],
    ['lengths in two parts', { a: text(0, 9) }, { a: union(text(4, 9), literal(''), text(1, 3)) }],
    ['a wider pattern', { a: slug }, { a: { type: 'string', pattern: '[a-z0-9-]*' } }],
    [
      'an object in cases',
      { a: array(object({ kind: boolean, b: string })) },
      {
        a: array(
          union(object({ kind: flag(true), b: string }), object({ kind: flag(false), b: string })),
        ),
      },
    ],
    [
      'an object that keeps the fields of the only member that it can be',
      { a: object({ kind: literal('x'), b: optional(string) }) },
      {
        a: union(
          object({ kind: literal('x'), b: optional(string), c: optional(string) }),
          object({ kind: literal('y'), d: string }),
        ),
      },
    ],
    [
      'a record that can get no entry',
      { a: object({ b: string }) },
      { a: { type: 'record', values: string, maximumItems: 1 } },
    ],
    ['a record of what an object has', { a: array(object({ b: string })) }, { a: array(record) }],
  ])('%s', (_, previous, next) => {
    expect(refused(next, previous)).toEqual([])
  })
})

describe('a refusal has an example:', () => {
  test.each<[string, FieldsJson, FieldsJson, string]>([
    [
      'a new required field',
      { a: string },
      { a: string, c: string },
      'notes.c: the required field is added; for example {"a":""}; DEFAULT',
    ],
    [
      'an optional field that became required',
      { a: optional(string) },
      { a: string },
      'notes.a: the optional field becomes required; for example {}; DEFAULT',
    ],
    [
      'another type',
      { a: string },
      { a: { type: 'int64' } },
      'notes.a: string becomes int64; for example {"a":""}; MIGRATION',
    ],
    [
      'anything that became something',
      { a: { type: 'any' } },
      { a: string },
      'notes.a: any becomes string; for example {"a":null}; MIGRATION',
    ],
    [
      'null that is rejected',
      { a: nullable(string) },
      { a: string },
      'notes.a: null is no longer allowed; for example {"a":null}; MIGRATION',
    ],
    [
      'a smaller union',
      { a: union(literal('x'), literal('y')) },
      { a: union(literal('x')) },
      'notes.a: "y" is no longer allowed; for example {"a":"y"}; MIGRATION',
    ],
    [
      'a smaller union that was open',
      { a: open(literal('x'), literal('y')) },
      { a: union(literal('x')) },
      'notes.a: "y" is no longer allowed; for example {"a":"y"}; MIGRATION',
    ],
    [
      'a type that became a literal',
      { a: string },
      { a: literal('') },
      'notes.a: string becomes literal; for example {"a":"a"}; MIGRATION',
    ],
    [
      'a new pattern',
      { a: string },
      { a: slug },
      'notes.a: the pattern rejects other strings; for example {"a":""}; MIGRATION',
    ],
    [
      'another pattern',
      { a: slug },
      { a: { ...slug, pattern: '[a-z]+' } },
      'notes.a: the pattern rejects other strings; for example {"a":"-"}; MIGRATION',
    ],
    [
      'a literal outside the pattern',
      { a: literal('A') },
      { a: slug },
      'notes.a: "A" is no longer allowed; for example {"a":"A"}; MIGRATION',
    ],
    [
      'shorter strings',
      { a: text(0, 9) },
      { a: text(0, 5) },
      'notes.a: the maximum length changes from 9 to 5; for example {"a":"aaaaaa"}; MIGRATION',
    ],
    [
      'a higher lower bound',
      { a: { type: 'int64' } },
      { a: { type: 'int64', minimum: '0' } },
      'notes.a: the minimum 0 is added; for example {"a":-1}; MIGRATION',
    ],
    [
      'a gap between two ranges',
      { a: integer(0, 9) },
      { a: union(integer(0, 3), integer(5, 9)) },
      'notes.a: 4 is no longer allowed; for example {"a":4}; MIGRATION',
    ],
    [
      'a boolean of which one value is left',
      { a: boolean },
      { a: flag(true) },
      'notes.a: false is no longer allowed; for example {"a":false}; MIGRATION',
    ],
    [
      'IDs of another table',
      { a: { type: 'id', table: 'x' } },
      { a: { type: 'id', table: 'y' } },
      'notes.a: an ID of x becomes an ID of y; for example ' +
        '{"a":"x_00000000000000000000000000"}; MIGRATION',
    ],
    [
      'a required field inside an array',
      { a: array(object({ b: string })) },
      { a: array(object({ b: string, c: string })) },
      'notes.a[].c: the required field is added; for example {"a":[{"b":""}]}; DEFAULT',
    ],
    [
      'a field that is removed inside an array',
      { a: array(object({ b: string, c: optional(string) })) },
      { a: array(object({ b: string })) },
      'notes.a[].c: the field is removed inside an array, a record or a union; for example ' +
        '{"a":[{"b":"","c":""}]}; NOTHING',
    ],
    [
      'fewer entries',
      { a: record },
      { a: { type: 'record', values: string, maximumItems: 1 } },
      'notes.a: the maximum items 1 is added; for example {"a":{"a0":"","a1":""}}; MIGRATION',
    ],
    [
      'an object whose hidden field may be of another member',
      { a: object({ b: optional(string) }) },
      { a: union(object({ b: optional(string), c: optional(string) }), object({ d: string })) },
      'notes.a: the object becomes a union, whose members cannot keep hidden fields apart; for ' +
        'example {"a":{"b":"","d":""}}; NOTHING',
    ],
    [
      'an object that adds an entry to a record that is full',
      { a: object({ b: optional(string) }) },
      { a: { type: 'record', values: string, maximumItems: 1 } },
      'notes.a: the object becomes a union, whose members cannot keep hidden fields apart; for ' +
        'example {"a":{"b":"","a0":""}}; NOTHING',
    ],
    [
      'an object that keeps an unknown member beside one that it writes',
      { a: object({ b: open(literal('x')), c: open(literal('y')) }) },
      {
        a: union(
          object({ b: literal('x'), c: literal('y') }),
          object({ b: literal('v'), c: literal('w') }),
        ),
      },
      'notes.a: the object becomes a union, whose members cannot keep hidden fields apart; for ' +
        'example {"a":{"b":"v","c":"y"}}; NOTHING',
    ],
  ])('%s', (_, previous, next, expected) => {
    const [refusal, ...others] = refused(next, previous)
    expect(others).toEqual([])
    const wayOut = {
      default: 'DEFAULT',
      'open union': 'OPEN',
      migration: 'MIGRATION',
      nothing: 'NOTHING',
    }
    const shown = refusalText(refusal!).split('; ').slice(0, -1).join('; ')
    expect(`${shown}; ${wayOut[refusal!.wayOut]}`).toBe(expected)
  })

  test('each field has a refusal of its own', () => {
    const found = refused({ a: string, b: string, c: string }, { a: { type: 'null' } })
    expect(found.map(({ path }) => path)).toEqual(['a', 'b', 'c'])
  })

  test('the words follow the change from the older schema to the newer one', () => {
    const [older, newer] = [tables({ a: string, b: string }), tables({ a: optional(string) })]
    const found = new SchemaComparison().unreadable({
      reader: older,
      writer: newer,
      newer: 'writer',
    })
    expect(found).toEqual([
      {
        table: 'notes',
        path: 'a',
        change: 'the required field becomes optional',
        example: '{}',
        wayOut: 'default',
      },
      {
        table: 'notes',
        path: 'b',
        change: 'the required field is removed',
        example: '{}',
        wayOut: 'default',
      },
    ])
  })

  test('a new member of a union can be added through an open union', () => {
    const [older, newer] = [{ a: union(literal('x')) }, { a: union(literal('x'), literal('y')) }]
    const pair = { reader: tables(older), writer: tables(newer), newer: 'writer' } as const
    expect(new SchemaComparison().unreadable(pair)).toEqual([
      {
        table: 'notes',
        path: 'a',
        change: '"y" becomes allowed',
        example: '{"a":"y"}',
        wayOut: 'open union',
      },
    ])
  })

  test('a long example is shortened', () => {
    const wide = Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => [`field${i}`, text(99, 99)]),
    )
    const [refusal] = refused({ ...wide, b: string }, wide)
    expect(refusal!.example).toContain('"aaaaaaaaaaaaaaaaaaaa... (99 characters)"')
    expect(refusal!.example).toHaveLength(300)
  })
})

describe('unique indexes beside each other:', () => {
  const unique = (...fields: string[]): IndexManifest => ({ name: 'byKey', fields, unique: true })
  const indexed = (fields: FieldsJson, ...indexes: IndexManifest[]): Tables =>
    new Map([['notes', { name: 'notes', fields, indexes }]])
  const fields = { a: string, b: optional(string) }

  test.each<[string, Tables, Tables]>([
    ['the same index', indexed(fields, unique('a')), indexed(fields, unique('a'))],
    ['an index of the writer', indexed(fields), indexed(fields, unique('a'))],
    [
      'the fields in another order',
      indexed(fields, unique('a', 'b')),
      indexed(fields, unique('b', 'a')),
    ],
    ['an index of fewer fields', indexed(fields, unique('a', 'b')), indexed(fields, unique('a'))],
    ['fields that the writer does not see', indexed(fields, unique('b')), indexed({ a: string })],
  ])('%s may stay', (_, reader, writer) => {
    expect(new SchemaComparison().conflicts({ reader, writer, newer: 'reader' })).toEqual([])
  })

  const defaulted = { a: string, b: withDefault(string, 'x') }
  test.each<[string, Tables, Tables, string]>([
    ['a field that the writer sees', indexed(fields, unique('a')), indexed(fields), '{"a":""}'],
    [
      'an index of more fields',
      indexed(fields, unique('a')),
      indexed(fields, unique('a', 'b')),
      '{"a":""}',
    ],
    [
      'a hidden field with a default',
      indexed(defaulted, unique('b')),
      indexed({ a: string }),
      '{"a":""}',
    ],
    [
      'another default',
      indexed(defaulted, unique('b')),
      indexed({ a: string, b: withDefault(string, 'y') }, unique('b')),
      '{"a":"","b":"y"}',
    ],
    [
      'a hidden field beside one that the writer sees',
      indexed(fields, unique('a', 'b')),
      indexed({ a: string }),
      '{"a":"","b":""}',
    ],
  ])('%s is refused', (_, reader, writer, example) => {
    expect(new SchemaComparison().conflicts({ reader, writer, newer: 'reader' })).toEqual([
      {
        table: 'notes',
        path: 'byKey',
        change: 'the unique index is added',
        example,
        wayOut: 'nothing',
      },
    ])
  })

  test('stored documents may share a key that only a Release without the index writes', () => {
    const hidden = indexed({ a: string })
    const uncertain = (next: Tables, previous: Tables) =>
      new SchemaComparison().uncertainTables(next, previous)
    expect(uncertain(indexed(fields, unique('b')), hidden)).toEqual(['notes'])
    expect(uncertain(indexed(fields, unique('a')), indexed(fields))).toEqual(['notes'])
    expect(uncertain(indexed(fields), indexed(fields, unique('a')))).toEqual([])
  })
})

describe('a table has to be looked at before a promotion', () => {
  test.each<[string, FieldsJson, FieldsJson, boolean]>([
    ['a field is hidden', { a: string, b: string }, { a: string }, false],
    [
      'an earlier Release may have stored the new field',
      { a: string },
      { a: string, b: optional(string) },
      true,
    ],
    [
      'the new field accepts anything',
      { a: string },
      { a: string, b: optional({ type: 'any' }) },
      false,
    ],
    [
      'a document may lack a field with a default',
      { a: withDefault(string, '') },
      { a: string },
      true,
    ],
    [
      'an open union may have any value',
      { a: open(literal('x')) },
      { a: union(literal('x')) },
      true,
    ],
    ['a nested field is new', { a: object({}) }, { a: object({ b: optional(string) }) }, true],
    [
      'an array is read as a whole',
      { a: array(object({})) },
      { a: array(object({ b: optional(string) })) },
      false,
    ],
  ])('%s', (_, previous, next, isUncertain) => {
    const found = new SchemaComparison().uncertainTables(tables(next), tables(previous))
    expect(found).toEqual(isUncertain ? ['notes'] : [])
  })
})
