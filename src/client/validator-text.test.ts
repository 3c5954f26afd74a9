import { expect, test } from 'vitest'
import type { ValidatorJson } from '../value/validators.ts'
import { fieldText, validatorText } from './validator-text.ts'

const withDefault = { type: 'optional', inner: { type: 'int64' }, default: { $i: '5' } } as const

test.each<[string, ValidatorJson]>([
  ['string', { type: 'string', maximumLength: 4_000 }],
  ['id(messages)', { type: 'id', table: 'messages' }],
  ['"text" | 7 | true', literals()],
  ['("text" | 7 | true)[]', { type: 'array', items: literals() }],
  ['string[][]', { type: 'array', items: { type: 'array', items: { type: 'string' } } }],
  ['(string | null)[]', { type: 'array', items: { type: 'nullable', inner: { type: 'string' } } }],
  ['record(int64)', { type: 'record', values: { type: 'int64' } }],
  ['{}', { type: 'object', fields: {} }],
  ['{ a: string, b?: int64 }', object()],
  ['open("text" | 7 | true)', { type: 'open', inner: literals() }],
  ['open("text" | 7 | true)[]', { type: 'array', items: { type: 'open', inner: literals() } }],
  ['{ n?: int64 = 5 }', { type: 'object', fields: { n: withDefault } }],
])('a type is shown as %s', (text, json) => {
  expect(validatorText(json)).toBe(text)
})

test('a field of a table is shown with its default, of which a long one is cut', () => {
  expect(fieldText(withDefault)).toBe('optional int64 = 5')
  expect(fieldText({ type: 'int64' })).toBe('int64')
  const text = { type: 'optional', inner: { type: 'string' }, default: 'x'.repeat(99) } as const
  expect(fieldText(text)).toBe(`optional string = "${'x'.repeat(38)}…`)
})

function literals(): ValidatorJson {
  const values = [{ string: 'text' }, { int64: '7' }, { boolean: true }]
  return { type: 'union', members: values.map((value) => ({ type: 'literal', value })) }
}

function object(): ValidatorJson {
  return {
    type: 'object',
    fields: { a: { type: 'string' }, b: { type: 'optional', inner: { type: 'int64' } } },
  }
}
