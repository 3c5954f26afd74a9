import { describe, expect, test } from 'vitest'
import type { FieldsJson, ValidatorJson } from '../../../value/validators.ts'
import { Timestamp, TypedId } from '../../../value/values.ts'
import {
  argumentsOf,
  argumentsOfJson,
  choicesOf,
  draftOf,
  emptyEntries,
  entriesOf,
  plainArguments,
  taggedArguments,
} from './arguments.ts'

const TEXT: ValidatorJson = { type: 'string', maximumLength: 5 }
const ID = 'notes_00000000000000000000000001'
const LITERALS: ValidatorJson = {
  type: 'union',
  members: [
    { type: 'literal', value: { string: 'open' } },
    { type: 'literal', value: { int64: '7' } },
  ],
}

/** Reads one argument from what a person writes. */
function read(field: FieldsJson[string], text: string, choice = 0) {
  const { value, violations } = argumentsOf({ a: { isAbsent: false, choice, text } }, { a: field })
  return violations ?? (value as ReadonlyMap<string, unknown>).get('a')
}

test.each<[string, FieldsJson[string], string, number, unknown]>([
  ['a string as it is written', TEXT, ' {"', 0, ' {"'],
  ['an int64 beyond 2^53', { type: 'int64' }, '9223372036854775807', 0, 9223372036854775807n],
  ['a float64', { type: 'float64' }, '-0.5', 0, -0.5],
  ['a timestamp', { type: 'timestamp' }, '1970-01-01T00:00:01Z', 0, new Timestamp(1_000_000n)],
  ['an ID', { type: 'id', table: 'notes' }, ID, 0, new TypedId(ID)],
  ['bytes', { type: 'bytes' }, 'AAE', 0, new Uint8Array([0, 1])],
  ['null', { type: 'null' }, 'ignored', 0, null],
  ['false', { type: 'boolean' }, '', 0, false],
  ['true', { type: 'boolean' }, '', 1, true],
  ['a literal string', LITERALS, '', 0, 'open'],
  ['a literal int64', LITERALS, '', 1, 7n],
  ['the null of a nullable', { type: 'nullable', inner: TEXT }, 'kept', 1, null],
  ['the value of a nullable', { type: 'nullable', inner: TEXT }, 'kept', 0, 'kept'],
  ['an optional', { type: 'optional', inner: TEXT }, 'x', 0, 'x'],
  ['an array as JSON', { type: 'array', items: { type: 'int64' } }, '[1,"2"]', 0, [1n, 2n]],
  ['any JSON', { type: 'any' }, '"x"', 0, 'x'],
])('a form reads %s', (_, field, text, choice, value) => {
  expect(read(field, text, choice)).toEqual(value)
})

test('the chosen member of a union decides the type, also where another would accept', () => {
  const either: ValidatorJson = { type: 'union', members: [{ type: 'string' }, { type: 'int64' }] }
  expect(read(either, '5', 0)).toBe('5')
  expect(read(either, '5', 1)).toBe(5n)
  const { value } = argumentsOf({ a: { isAbsent: false, choice: 1, text: '5' } }, { a: either })
  // The command line reads the same value from the plain JSON.
  const again = argumentsOfJson(JSON.stringify(plainArguments(value!, { a: either })), {
    a: either,
  })
  expect(taggedArguments(again.value!)).toEqual(taggedArguments(value!))
})

test('choices of nested unions are alternatives of one list', () => {
  const nested: ValidatorJson = {
    type: 'nullable',
    inner: { type: 'open', inner: { type: 'union', members: [LITERALS, { type: 'boolean' }] } },
  }
  expect(choicesOf(nested)).toHaveLength(5)
})

describe('violations', () => {
  test('each argument that does not fit is named, at once', () => {
    const fields: FieldsJson = {
      name: TEXT,
      count: { type: 'int64' },
      list: { type: 'array', items: { type: 'int64' } },
      rest: { type: 'object', fields: {} },
    }
    const entry = (text: string) => ({ isAbsent: false, choice: 0, text })
    const { violations } = argumentsOf(
      { name: entry('longer'), count: entry('1.5'), list: entry('["x"]'), rest: entry('{') },
      fields,
    )
    expect(violations?.map(({ path }) => path)).toEqual([
      '$.name',
      '$.count',
      '$.list[0]',
      '$.rest',
    ])
  })

  test('JSON with a duplicate key is rejected, since its meaning is not clear', () => {
    const { violations } = argumentsOfJson('{"a":"1","a":"2"}', { a: TEXT })
    expect(violations).toHaveLength(1)
  })
})

describe('the switch to JSON and back', () => {
  const fields: FieldsJson = {
    title: TEXT,
    count: { type: 'nullable', inner: { type: 'int64' } },
    more: { type: 'optional', inner: { type: 'array', items: TEXT } },
    flag: { type: 'boolean' },
  }

  test('an optional argument is absent at first', () => {
    const entries = emptyEntries(fields)
    expect(entries.more!.isAbsent).toBe(true)
    expect(entries.title!.isAbsent).toBe(false)
  })

  test('keeps each argument', () => {
    const json = '{"title":"a","count":null,"more":["b"],"flag":true}'
    const { value } = argumentsOfJson(json, fields)
    const entries = entriesOf(value!, fields)!
    expect(JSON.parse(draftOf(entries, fields))).toEqual(JSON.parse(json))
    expect(argumentsOf(entries, fields).value).toEqual(value)
  })

  test('keeps text that is not an argument yet', () => {
    const entries = emptyEntries(fields)
    const draft = draftOf({ ...entries, count: { ...entries.count!, text: '12a' } }, fields)
    expect(JSON.parse(draft)).toEqual({ title: '', count: '12a', flag: false })
  })

  test('a value without a field of its own stays JSON', () => {
    const open: FieldsJson = { a: { type: 'open', inner: LITERALS } }
    const { value } = argumentsOfJson('{"a":{"unknown":true}}', open)
    expect(entriesOf(value!, open)).toBe(null)
  })
})
