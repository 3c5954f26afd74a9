import { describe, expect, test } from 'vitest'
import { arbitraryValue } from '../../testing/arbitrary-values.ts'
import { fc, inputs } from '../../testing/properties.ts'
import { decodeStored, encodeStored } from './stored.ts'
import { type Json, parseStrictJson } from './strict-json.ts'
import { decodeTagged, encodeTagged } from './tagged.ts'
import { ValidationError } from './validation-error.ts'
import { Timestamp, TypedId, type Value, valueEquals } from './values.ts'

const object = (fields: Record<string, Json>): Json => ({
  type: 'object',
  value: Object.entries(fields).map(([key, value]) => ({ key, value })),
})
const decode = (text: string): Value => decodeTagged(parseStrictJson(text))

describe('tagged values', () => {
  test('every value survives its canonical text, and the text is the only one', () => {
    fc.assert(
      fc.property(arbitraryValue, (value) => {
        const text = encodeTagged(value)
        const back = decode(text)
        expect(valueEquals(back, value)).toBe(true)
        expect(encodeTagged(back)).toBe(text)
      }),
      { numRuns: inputs(2_000) },
    )
  })

  test('the stored form keeps every value and agrees with the tagged form', () => {
    fc.assert(
      fc.property(arbitraryValue, (value) => {
        const text = encodeStored(value)
        expect(encodeTagged(decodeStored(text))).toBe(encodeTagged(value))
        expect(encodeStored(decodeStored(text))).toBe(text)
      }),
      { numRuns: inputs(2_000) },
    )
  })

  const rejected: [string, Json][] = [
    ['a bare string', 'x'],
    ['an unknown type', { type: 'date', value: '1' }],
    ['a value on null', { type: 'null', value: null }],
    ['a missing value', { type: 'string' }],
    ['an extra field', { type: 'string', value: 'x', extra: 1 }],
    ['an int64 as a number', { type: 'int64', value: 1 }],
    ['an int64 with a plus', { type: 'int64', value: '+1' }],
    ['an int64 with a leading zero', { type: 'int64', value: '01' }],
    ['an int64 of minus zero', { type: 'int64', value: '-0' }],
    ['an int64 above the range', { type: 'int64', value: '9223372036854775808' }],
    ['an int64 below the range', { type: 'int64', value: '-9223372036854775809' }],
    ['a float64 in upper case', { type: 'float64', value: '3FF0000000000000' }],
    ['a float64 NaN', { type: 'float64', value: '7ff8000000000000' }],
    ['a float64 infinity', { type: 'float64', value: '7ff0000000000000' }],
    ['a float64 negative zero', { type: 'float64', value: '8000000000000000' }],
    ['padded bytes', { type: 'bytes', value: 'AA==' }],
    ['bytes in the standard alphabet', { type: 'bytes', value: '+/8' }],
    ['bytes with stray bits', { type: 'bytes', value: 'AB' }],
    [
      'a typed ID in lower case',
      { type: 'typed_id', value: 'messages_01arz3ndektsv4rrffq69g5fav' },
    ],
    ['a typed ID without a kind', { type: 'typed_id', value: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }],
    ['unsorted keys', entries('b', 'a')],
    ['duplicate keys', entries('a', 'a')],
    ['keys in UTF-16 order that is not UTF-8 order', entries('\u{10000}', '\uffff')],
    ['a __proto__ key', entries('__proto__')],
  ]
  test.each(rejected)('%s is rejected', (_, json) => {
    expect(() => decodeTagged(json)).toThrow(ValidationError)
  })

  const nothing = { type: 'null', value: 1 }
  const named: readonly (readonly [string, Json, string])[] = [
    ['a field', object({ name: nothing }), '$.name: no other field'],
    ['a field of another script', object({ größe: nothing }), '$.größe: no other field'],
    ['an address', object({ 'me@example.com': nothing }), '$.*: no other field'],
    ['a number', object({ '4915112345678': nothing }), '$.*: no other field'],
    ['a long token', object({ ['x'.repeat(43)]: nothing }), '$.*: no other field'],
    [
      'a part of one',
      object({ 'me@example.com': object({ a: nothing }) }),
      '$.*.a: no other field',
    ],
    ['the prototype', entries('__proto__'), '$: no __proto__ key'],
  ]
  test.each(named)('a defect has a path that names %s, unless it may be a value', (_, json, at) => {
    expect(() => decodeTagged(json)).toThrow(at)
  })

  test('keys in UTF-8 order are accepted where UTF-16 order differs', () => {
    expect(decodeTagged(entries('\uffff', '\u{10000}'))).toBeInstanceOf(Map)
  })

  test('64 levels are accepted and 65 are not', () => {
    const nested = (levels: number): Json => {
      let json: Json = { type: 'null' }
      for (let i = 0; i < levels; i++) json = { type: 'array', value: [json] }
      return json
    }
    expect(() => decodeTagged(nested(64))).not.toThrow()
    expect(() => decodeTagged(nested(65))).toThrow(ValidationError)
  })

  test('one value of each type has this exact text', () => {
    expect(encodeTagged(1)).toBe('{"type":"float64","value":"3ff0000000000000"}')
    expect(encodeTagged(-0)).toBe('{"type":"float64","value":"0000000000000000"}')
    expect(encodeTagged(-5n)).toBe('{"type":"int64","value":"-5"}')
    expect(encodeTagged(new Timestamp(7n))).toBe('{"type":"timestamp","value":"7"}')
    expect(encodeTagged(new Uint8Array([251, 255]))).toBe('{"type":"bytes","value":"-_8"}')
    expect(encodeTagged(new TypedId('a_01ARZ3NDEKTSV4RRFFQ69G5FAV'))).toContain('typed_id')
  })
})

function entries(...keys: string[]): Json {
  return { type: 'object', value: keys.map((key) => ({ key, value: { type: 'null' } })) }
}

test.each([
  ['{"__proto__":1}', '$: no __proto__ key'],
  ['{"a":{"__proto__":1}}', '$.a: no __proto__ key'],
  ['{"\\ud800":1}', '$: no lone surrogate in a key'],
  ['{"$a":1,"b":2}', '$: a second $ in a key that begins with one'],
  ['{"me@example.com":{"$i":"x"}}', '$.*: a canonical int64'],
])('stored JSON with a bad key is rejected by its rule: %s', (text, message) => {
  expect(() => decodeStored(text)).toThrow(message)
})
