import { describe, expect, test } from 'vitest'
import { arbitraryValue } from '../../../testing/arbitrary-values.ts'
import { fc, inputs } from '../../../testing/properties.ts'
import {
  accepted,
  arbitraryValidator,
  picker,
} from '../../../testing/schemas/arbitrary-validators.ts'
import { SEED } from '../../../testing/seeds.ts'
import { fromStoredJson } from '../stored.ts'
import { type Json, parseStrictJson, ROUNDED } from '../strict-json.ts'
import { decodeTagged, encodeTagged } from '../tagged.ts'
import { ValidationError } from '../validation-error.ts'
import { compileValidator, type ValidatorJson } from '../validators.ts'
import { Timestamp, TypedId, type Value, valueEquals } from '../values.ts'
import { compilePlainDecoder } from './decoding.ts'
import { compilePlainEncoder, type IntegerForm } from './encoding.ts'
import { isUndecided } from './undecided.ts'

const ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const string = { type: 'string' } as const
const int64 = { type: 'int64' } as const
const float64 = { type: 'float64' } as const
const timestamp = { type: 'timestamp' } as const
const open = { type: 'any' } as const
const id = (table: string) => ({ type: 'id', table }) as const
const text = (value: string) => ({ type: 'literal', value: { string: value } }) as const
const object = (fields: Record<string, ValidatorJson>): ValidatorJson => ({
  type: 'object',
  fields,
})
const union = (...members: ValidatorJson[]) => ({ type: 'union', members }) as const

const plainOf = (validator: ValidatorJson, value: Value, integers: IntegerForm = 'number') => {
  return compilePlainEncoder(validator, integers)(encodeTagged(value))
}
const read = (validator: ValidatorJson, json: string): Value => {
  return compilePlainDecoder(validator)(parseStrictJson(json, ROUNDED), '$')
}
const readOrRule = (validator: ValidatorJson, json: string): Value | string => {
  try {
    return read(validator, json)
  } catch (error) {
    if (error instanceof ValidationError) return error.message
    throw error
  }
}

describe(`round trips (SVC_SEED=${SEED})`, () => {
  test('every value of every validator has a plain form that reads as the same value', {
    tags: ['slow'],
  }, () => {
    const numbers = fc.infiniteStream(fc.nat({ max: 1_000 }))
    let untagged = 0
    const property = fc.property(arbitraryValidator, numbers, (validator, stream) => {
      const check = compileValidator(validator, { coerce: true })
      let value: Value
      try {
        value = check(fromStoredJson(accepted(validator, picker(stream))), '$')
      } catch (error) {
        if (error instanceof ValidationError) return
        throw error
      }
      for (const integers of ['number', 'string'] as const) {
        const plain = plainOf(validator, value, integers)
        if (plain !== encodeTagged(value)) untagged += 1
        const back = read(validator, plain)
        expect(valueEquals(back, value), `${plain} by ${JSON.stringify(validator)}`).toBe(true)
        expect(encodeTagged(back)).toBe(encodeTagged(value))
      }
    })
    fc.assert(property, { numRuns: inputs(5_000) })
    expect(untagged).toBeGreaterThan(inputs(2_000))
  })

  test('what is read is accepted by the check, and written in a form that reads alike', {
    tags: ['slow'],
  }, () => {
    let count = 0
    const json = fc.oneof(
      fc.json().map((each) => JSON.parse(each) as Json),
      arbitraryValue.map((value) => JSON.parse(encodeTagged(value)) as Json),
      fc.constantFrom<Json>(5, '5', `messages_${ULID}`, 'text', '2026-01-31T12:00:00Z', [], {}),
    )
    const property = fc.property(arbitraryValidator, json, (validator, given) => {
      const found = readOrRule(validator, JSON.stringify(given).replaceAll('__proto__', 'proto'))
      if (typeof found === 'string' && found.startsWith('$')) return
      const value = found as Value
      count += 1
      compileValidator(validator, { coerce: false })(value, '$')
      // An absent field may have a default, which the check of the engine adds.
      const plain = plainOf(validator, value)
      expect(valueEquals(read(validator, plain), value)).toBe(true)
    })
    fc.assert(property, { numRuns: inputs(20_000) })
    // One in eighteen is read.
    expect(count).toBeGreaterThan(inputs(500))
  })

  test('a record, an array and an object keep every key, value and order', () => {
    const record = { type: 'record', values: { type: 'array', items: open } } as const
    const property = fc.property(arbitraryValue, arbitraryValue, (a, b) => {
      const value: Value = new Map([
        ['', [a, b]],
        ['constructor', []],
        ['\u{1f600} "quoted"', [b]],
      ])
      expect(valueEquals(read(record, plainOf(record, value)), value)).toBe(true)
    })
    fc.assert(property, { numRuns: inputs(1_000) })
  })
})

describe('the plain form', () => {
  const samples: readonly [string, ValidatorJson, Value, string][] = [
    ['an int64 within 2^53 is an integer', int64, 2n ** 53n - 1n, '9007199254740991'],
    ['an int64 beyond 2^53 is a string', int64, -(2n ** 53n), '"-9007199254740992"'],
    ['a float64 is a number', float64, 1e21, '1e+21'],
    ['a whole float64 beyond 2^53 is a number', float64, 2 ** 60, '1152921504606847000'],
    ['bytes are base64url', { type: 'bytes' }, new Uint8Array([251, 255]), '"-_8"'],
    ['a timestamp is RFC 3339', timestamp, new Timestamp(0n), '"1970-01-01T00:00:00Z"'],
    [
      'a timestamp has its microseconds',
      timestamp,
      new Timestamp(-1n),
      '"1969-12-31T23:59:59.999999Z"',
    ],
    [
      'a timestamp after the year 9999 is microseconds',
      timestamp,
      new Timestamp(253_402_300_800_000_000n),
      '"253402300800000000"',
    ],
    ['an ID is a string', id('messages'), new TypedId(`messages_${ULID}`), `"messages_${ULID}"`],
    ['a value of any is tagged', open, 'x', '{"type":"string","value":"x"}'],
    ['a string or null is plain', union(string, { type: 'null' }), 'x', '"x"'],
    ['an int64 or a string is tagged', union(int64, string), 5n, '{"type":"int64","value":"5"}'],
    ['a literal beside an int64 is plain', union(text('auto'), int64), 'auto', '"auto"'],
  ]
  test.each(samples)('%s', (_, validator, value, plain) => {
    expect(plainOf(validator, value)).toBe(plain)
    expect(valueEquals(read(validator, plain), value)).toBe(true)
  })

  test('every int64 is a string where strings are asked for', () => {
    const validator = object({ a: int64, b: { type: 'literal', value: { int64: '7' } } })
    const value: Value = new Map<string, Value>([
      ['a', 5n],
      ['b', 7n],
    ])
    expect(plainOf(validator, value, 'string')).toBe('{"a":"5","b":"7"}')
    expect(valueEquals(read(validator, '{"a":"5","b":"7"}'), value)).toBe(true)
  })

  test('a result that the validator rejects stays tagged as a whole', () => {
    const value: Value = new Map([['a', 'x']])
    expect(plainOf(object({ a: int64 }), value)).toBe(encodeTagged(value))
    expect(plainOf(object({ b: string }), value)).toBe(encodeTagged(value))
  })
})

describe('what is read', () => {
  const accepts: readonly [ValidatorJson, string, Value][] = [
    [int64, '"-9223372036854775808"', -(2n ** 63n)],
    [int64, '-0', 0n],
    [float64, '-0', 0],
    [float64, '9007199254740993', 9007199254740992],
    [timestamp, '1500000', new Timestamp(1_500_000n)],
    [timestamp, '"1500000"', new Timestamp(1_500_000n)],
    [timestamp, '"1970-01-01T01:00:01.5+01:00"', new Timestamp(1_500_000n)],
    [open, '{"type":"int64","value":"5"}', 5n],
    [
      { type: 'open', inner: union(object({ kind: text('a') })) },
      '{"unknown":true}',
      new Map([['unknown', true]]),
    ],
  ]
  test.each(accepts)('%j reads %s', (validator, json, value) => {
    expect(valueEquals(read(validator, json), value)).toBe(true)
  })

  const rejects: readonly [ValidatorJson, string, string][] = [
    [int64, '9007199254740992', '$: an int64: an integer within 2^53, or a string'],
    [int64, '1.5', '$: an int64'],
    [int64, '"+5"', '$: an int64'],
    [int64, '"05"', '$: an int64'],
    [int64, '"9223372036854775808"', '$: an int64'],
    [int64, 'true', '$: an int64'],
    [float64, '"1"', '$: a float64: a number'],
    [float64, '"NaN"', '$: a float64: a number'],
    [string, '5', '$: a string'],
    [{ type: 'bytes' }, '"+/8="', '$: bytes'],
    [timestamp, '"2026-02-30T00:00:00Z"', '$: a timestamp'],
    [timestamp, '"2026-01-31T00:00:00"', '$: a timestamp'],
    [timestamp, '"2026-01-31T00:00:00.1234567Z"', '$: a timestamp'],
    [id('messages'), `"users_${ULID}"`, '$: an ID of the table messages'],
    [open, '"x"', '$: a tagged value'],
    [open, '{"a":1}', '$: exactly type and value'],
    [union(int64, string), '"x"', '$: a tagged value'],
    [union(int64, string), '{"type":"boolean","value":true}', '$: a member of the union'],
    [object({ a: string }), '{}', '$.a: a required field'],
    [object({ a: string }), '{"a":"x","b":1}', '$.b: no undeclared field, but one of a'],
    [object({ a: string }), '{"a":null}', '$.a: a string'],
    [object({ a: { type: 'array', items: string } }), '{"a":["x",1]}', '$.a[1]: a string'],
    [object({}), '[]', '$: an object'],
  ]
  test.each(rejects)('%j rejects %s', (validator, json, rule) => {
    expect(String(readOrRule(validator, json))).toContain(rule)
  })

  const nested = (levels: number): string => {
    return levels === 0 ? '{"type":"null"}' : `{"type":"array","value":[${nested(levels - 1)}]}`
  }
  test('tagged parts count towards the 64 levels of a value', () => {
    const validator = object({ a: { type: 'array', items: open } })
    expect(readOrRule(validator, `{"a":[${nested(62)}]}`)).toBeInstanceOf(Map)
    expect(readOrRule(validator, `{"a":[${nested(63)}]}`)).toMatch('at most 64 levels')
  })
})

describe('a union', () => {
  const circle = object({ kind: text('circle'), radius: float64 })
  const square = object({ kind: text('square'), side: int64 })
  const cases: readonly [string, boolean, readonly ValidatorJson[]][] = [
    ['of objects with a discriminator', false, [circle, square]],
    ['of objects without a common form', false, [object({ a: int64 }), object({ b: string })]],
    ['of objects that differ in one field', true, [object({ a: int64 }), object({ a: string })]],
    ['of texts', false, [text('a'), text('b')]],
    ['of IDs of two tables', false, [id('users'), id('messages')]],
    ['of an ID and a string', true, [id('users'), string]],
    ['of an int64 and a float64', true, [int64, float64]],
    ['of a timestamp and a string', true, [timestamp, string]],
    ['of a text and a timestamp', false, [text('never'), timestamp]],
    ['of a text that looks like an int64', true, [text('5'), int64]],
    ['of two string types', false, [string, { type: 'string', maximumLength: 3 }]],
    [
      'of arrays of two types',
      true,
      [int64, string].map((items) => ({ type: 'array', items }) as const),
    ],
    ['of any and a string', false, [open, string]],
    ['of any and an object with a type', true, [open, object({ type: string })]],
    ['of any and an object with another field', false, [open, object({ type: string, a: string })]],
    ['of any and an object whose type is no tag', false, [open, object({ type: text('circle') })]],
    ['of any and a record', true, [open, { type: 'record', values: string }]],
  ]
  test.each(cases)('%s is undecided: %s', (_, expected, members) => {
    expect(isUndecided(union(...members))).toBe(expected)
  })

  test('a union of 256 texts, and of 256 objects with a discriminator, is decided', () => {
    const texts = Array.from({ length: 256 }, (_, i) => text(`text-${i}`))
    expect(isUndecided(union(...texts))).toBe(false)
    const objects = texts.map((kind, i) => object({ kind, value: i % 2 === 0 ? string : int64 }))
    expect(isUndecided(union(...objects))).toBe(false)
  })

  test('a union that takes too long to compare is undecided', () => {
    const wide = (i: number): ValidatorJson => {
      const fields = Array.from({ length: 40 }, (_, j) => object({ [`f${i}_${j}`]: string }))
      return union(...fields)
    }
    const deep = Array.from({ length: 60 }, (_, i) => object({ a: wide(i) }))
    expect(isUndecided(union(...deep.slice(0, 3)))).toBe(false)
    expect(isUndecided(union(...deep))).toBe(true)
  })

  test('a tagged value of a union of objects is rejected where the objects are plain', () => {
    const value: Value = new Map<string, Value>([
      ['kind', 'square'],
      ['side', 5n],
    ])
    expect(plainOf(union(circle, square), value)).toBe('{"kind":"square","side":5}')
    expect(readOrRule(union(circle, square), encodeTagged(value))).toMatch('a member of the union')
    expect(decodeTagged(JSON.parse(encodeTagged(value)) as Json)).toEqual(value)
  })
})
