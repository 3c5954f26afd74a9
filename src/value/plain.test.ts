import { describe, expect, it } from 'vitest'
import { arbitraryInt64 } from '../../testing/arbitrary-values.ts'
import { fc, inputs } from '../../testing/properties.ts'
import { SEED } from '../../testing/seeds.ts'
import { formatTimestamp, plainToArguments, plainToValue, valueToPlain } from './plain.ts'
import { type Json, parseStrictJson } from './strict-json.ts'
import { ValidationError } from './validation-error.ts'
import type { ValidatorJson } from './validators.ts'
import { Timestamp, TypedId, type Value, valueEquals } from './values.ts'

const DAY_MICROS = 86_400_000_000n
const ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

/** A validator with a value of it: every type but `any` and `union`, which are ambiguous. */
const scalar: fc.Arbitrary<[ValidatorJson, Value]> = fc.oneof(
  arbitraryInt64.map((value): [ValidatorJson, Value] => [{ type: 'int64' }, value]),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .map((value): [ValidatorJson, Value] => [{ type: 'float64' }, value === 0 ? 0 : value]),
  fc.boolean().map((value): [ValidatorJson, Value] => [{ type: 'boolean' }, value]),
  fc.string({ unit: 'binary' }).map((value): [ValidatorJson, Value] => [{ type: 'string' }, value]),
  fc
    .uint8Array({ maxLength: 12 })
    .map((value): [ValidatorJson, Value] => [{ type: 'bytes' }, value]),
  arbitraryInt64.map((micros): [ValidatorJson, Value] => [
    { type: 'timestamp' },
    new Timestamp(micros),
  ]),
  fc
    .constantFrom('messages', 'files')
    .map((table): [ValidatorJson, Value] => [
      { type: 'id', table },
      new TypedId(`${table === 'files' ? 'fil' : table}_${ULID}`),
    ]),
  fc.constant<[ValidatorJson, Value]>([{ type: 'nullable', inner: { type: 'int64' } }, null]),
  arbitraryInt64.map((value): [ValidatorJson, Value] => [
    { type: 'literal', value: { int64: String(value) } },
    value,
  ]),
)
const typed = scalar.chain(([validator, value]) =>
  fc.constantFrom<[ValidatorJson, Value]>(
    [validator, value],
    [{ type: 'array', items: validator }, [value, value]],
    [{ type: 'record', values: validator }, new Map([['a b', value]])],
    [
      { type: 'object', fields: { here: validator, gone: { type: 'optional', inner: validator } } },
      new Map([['here', value]]),
    ],
    [{ type: 'nullable', inner: validator }, value],
  ),
)

describe('plain JSON', () => {
  it(`a printed value is parsed to an equal one under its validator (SVC_SEED=${SEED})`, () => {
    fc.assert(
      fc.property(typed, ([validator, value]) => {
        const text = JSON.stringify(valueToPlain(value))
        const back = plainToValue(parseStrictJson(text), validator)
        expect(valueEquals(back, value)).toBe(true)
      }),
      { seed: SEED, numRuns: inputs(2_000) },
    )
  })

  it.each<[Json, ValidatorJson, Value]>([
    [5, { type: 'int64' }, 5n],
    ['9223372036854775807', { type: 'int64' }, 9223372036854775807n],
    [5, { type: 'float64' }, 5],
    ['1e300', { type: 'float64' }, 1e300],
    [-0, { type: 'float64' }, 0],
    ['2026-01-31T12:00:00Z', { type: 'timestamp' }, new Timestamp(1769860800000000n)],
    ['2026-01-31T12:00:00.000001+01:30', { type: 'timestamp' }, new Timestamp(1769855400000001n)],
    ['1969-12-31T23:59:59.5Z', { type: 'timestamp' }, new Timestamp(-500000n)],
    ['-1', { type: 'timestamp' }, new Timestamp(-1n)],
    ['_-8', { type: 'bytes' }, Uint8Array.of(255, 239)],
    [5, { type: 'any' }, 5],
    [5, { type: 'union', members: [{ type: 'string' }, { type: 'int64' }] }, 5n],
  ])('plain JSON reads %j as %j', (json, validator, value) => {
    expect(plainToValue(json, validator)).toEqual(value)
  })

  it.each<[Json, ValidatorJson, string]>([
    [1.5, { type: 'int64' }, '$: an int64: an integer within 2^53, or a string of decimal digits'],
    ['01', { type: 'int64' }, '$: an int64: an integer within 2^53, or a string of decimal digits'],
    ['9223372036854775808', { type: 'int64' }, '$: an int64: '],
    ['NaN', { type: 'float64' }, '$: a float64: a number'],
    [5, { type: 'string' }, '$: a string'],
    ['a', { type: 'string', minimumLength: 2 }, '$: at least 2 characters'],
    ['+/==', { type: 'bytes' }, '$: bytes: a string of base64url without padding'],
    ['2026-02-29T00:00:00Z', { type: 'timestamp' }, '$: a timestamp: ISO 8601'],
    ['2026-01-01T24:00:00Z', { type: 'timestamp' }, '$: a timestamp: ISO 8601'],
    ['2026-01-01T00:00:00', { type: 'timestamp' }, '$: a timestamp: ISO 8601'],
    [0, { type: 'timestamp' }, '$: a timestamp: ISO 8601'],
    [`users_${ULID}`, { type: 'id', table: 'messages' }, '$: an ID of the table messages'],
    [[1, 'x'], { type: 'array', items: { type: 'int64' } }, '$[1]: an int64'],
    [null, { type: 'int64' }, '$: an int64'],
    [
      true,
      { type: 'union', members: [{ type: 'string' }, { type: 'int64' }] },
      '$: a string; or an int64: an integer within 2^53, or a string of decimal digits',
    ],
  ])('plain JSON rejects %j as %j and says what is expected where', (json, validator, message) => {
    expect(() => plainToValue(json, validator)).toThrow(ValidationError)
    expect(() => plainToValue(json, validator)).toThrow(message)
  })

  it('plain JSON names missing and undeclared arguments', () => {
    const fields = { body: { type: 'string' }, likes: { type: 'int64' } } as const
    const check = (json: Json) => () => plainToArguments(json, fields)
    expect(check({ body: 'x' })).toThrow('$.likes: a required field')
    expect(check({ body: 'x', like: 1 })).toThrow(
      '$.like: no undeclared field, but one of body, likes',
    )
    expect(check([])).toThrow('$: an object')
    expect(check({ body: 'x', likes: 1, toString: 1 })).toThrow('$.toString: no undeclared field')
  })

  it('plain JSON converts every day of 400 years and at the ends of the calendar', {
    tags: ['slow'],
  }, () => {
    const wrong: string[] = []
    for (let day = -20_000; day < 130_000; day += 1) {
      const date = new Date(day * 86_400_000).toISOString().replace('.000', '')
      const { micros } = plainToValue(date, { type: 'timestamp' }) as Timestamp
      const isRight = formatTimestamp(micros) === date && micros === BigInt(day) * DAY_MICROS
      if (!isRight) wrong.push(date)
    }
    expect(wrong).toEqual([])
    for (const text of ['0000-01-01T00:00:00Z', '9999-12-31T23:59:59.999999Z']) {
      const { micros } = plainToValue(text, { type: 'timestamp' }) as Timestamp
      expect(formatTimestamp(micros)).toBe(text)
    }
    expect(formatTimestamp(-62167219200000001n)).toBe('-62167219200000001')
  })
})
