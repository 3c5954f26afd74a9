import { expect, test } from 'vitest'
import type { ValidatorJson } from '../../value/validators.ts'
import { validatorText } from './catalogs.ts'

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
])('a type is shown as %s', (text, json) => {
  expect(validatorText(json)).toBe(text)
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
