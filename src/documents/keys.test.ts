import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../testing/properties.ts'
import { isFault } from '../errors/fault.ts'
import { binaryBytes, binaryString } from '../system/binary-strings.ts'
import {
  compareUtf8,
  INT64_MAX,
  INT64_MIN,
  sortedEntries,
  Timestamp,
  TypedId,
  typeOf,
  type Value,
  type ValueObject,
  type ValueType,
} from '../value/values.ts'
import { KEY_BYTES_MAX, KEY_END } from './key-encoding.ts'
import { type Bound, encodeKey, indexKey, keyInterval, keySuccessor, prefixEnd } from './keys.ts'

const TYPES: readonly ValueType[] = [
  'null',
  'boolean',
  'int64',
  'float64',
  'string',
  'bytes',
  'timestamp',
  'typed_id',
  'array',
  'object',
]

/** The expected order of keys, computed from the values without any encoding. */
function compareValues(a: Value | undefined, b: Value | undefined): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined)
  const type = typeOf(a)
  if (type !== typeOf(b)) return TYPES.indexOf(type) - TYPES.indexOf(typeOf(b))
  switch (type) {
    case 'null':
      return 0
    case 'boolean':
      return Number(a) - Number(b)
    case 'int64':
    case 'float64':
      return plain(a as number, b as number)
    case 'string':
      return compareUtf8(a as string, b as string)
    case 'bytes':
      return Buffer.compare(a as Uint8Array, b as Uint8Array)
    case 'timestamp':
      return plain((a as Timestamp).micros, (b as Timestamp).micros)
    case 'typed_id':
      return compareUtf8((a as TypedId).id, (b as TypedId).id)
    case 'array':
      return compareLists(a as readonly Value[], b as readonly Value[])
    case 'object':
      return compareLists(
        [...sortedEntries(a as ValueObject)].flat(),
        [...sortedEntries(b as ValueObject)].flat(),
      )
  }
}

function compareLists(a: readonly (Value | undefined)[], b: readonly (Value | undefined)[]) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compareValues(a[i], b[i])
    if (order !== 0) return order
  }
  return a.length - b.length
}

function plain<T extends number | bigint | string>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const ulid = fc
  .tuple(
    fc.constantFrom('0', '7'),
    fc.array(fc.constantFrom(...'0ABZ'), { minLength: 25, maxLength: 25 }),
  )
  .map(([first, rest]) => first + rest.join(''))
const id = fc.tuple(fc.constantFrom('a', 'messages', 'mess'), ulid).map(([t, u]) => `${t}_${u}`)
// Short texts from few characters, so that common prefixes, NUL and surrogates are frequent.
const text = fc.oneof(
  fc
    .array(fc.constantFrom('', '\0', '\x01', 'a', 'b', 'é', '\uffff', '\u{1f600}'), {
      maxLength: 4,
    })
    .map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 12 }),
)
const scalar: fc.Arbitrary<Value> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
  fc.bigInt({ min: -3n, max: 3n }),
  fc.constantFrom(INT64_MIN, INT64_MAX),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0, -0, 5e-324, -5e-324, 1, -1, 1.5, Number.MAX_VALUE, -Number.MAX_VALUE),
  text,
  fc.uint8Array({ maxLength: 6 }),
  fc
    .array(fc.constantFrom(0, 1, 254, 255), { maxLength: 3 })
    .map((bytes) => Uint8Array.from(bytes)),
  fc.bigInt({ min: INT64_MIN, max: INT64_MAX }).map((micros) => new Timestamp(micros)),
  id.map((text) => new TypedId(text)),
)
const value: fc.Arbitrary<Value> = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    { arbitrary: scalar, weight: 4 },
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .uniqueArray(fc.tuple(text, tie('value')), { maxLength: 3, selector: ([key]) => key })
      .map((entries) => new Map(entries)),
  ),
})).value
const field = fc.option(value, { nil: undefined, freq: 8 })

describe('the order of keys', () => {
  test('the order of keys is the order of the values, and no key is a prefix of another', {
    tags: ['slow'],
  }, () => {
    fc.assert(
      fc.property(field, field, (a, b) => {
        const [x, y] = [encodeKey([a]), encodeKey([b])]
        const order = compareValues(a, b)
        expect(Math.sign(plain(x, y))).toBe(Math.sign(order))
        if (order !== 0) expect(x.startsWith(y) || y.startsWith(x)).toBe(false)
      }),
      { numRuns: inputs(30_000) },
    )
  })

  test('the order of keys compares a list of fields field by field', () => {
    const fields = fc.array(fc.oneof(scalar, fc.constant(undefined)), {
      minLength: 2,
      maxLength: 2,
    })
    fc.assert(
      fc.property(fields, fields, (a, b) => {
        expect(Math.sign(plain(encodeKey(a), encodeKey(b)))).toBe(Math.sign(compareLists(a, b)))
      }),
      { numRuns: inputs(20_000) },
    )
  })

  test('the order of keys is kept by containers that differ by one further element', () => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [x, y] = [
          [a, b],
          [a, b, null],
        ]
        expect(encodeKey([x]) < encodeKey([y])).toBe(true)
        const [u, v] = [
          new Map([['k', a]]),
          new Map([
            ['k', a],
            ['l', b],
          ]),
        ]
        expect(encodeKey([u]) < encodeKey([v])).toBe(true)
      }),
      { numRuns: inputs(5_000) },
    )
  })

  test('the order of keys has one zero, and every key is below the end', () => {
    expect(encodeKey([-0])).toBe(encodeKey([0]))
    fc.assert(fc.property(field, (a) => encodeKey([a]) < KEY_END))
  })

  test('the order of keys is the same for the bytes that a database compares', () => {
    fc.assert(
      fc.property(field, field, (a, b) => {
        const [x, y] = [encodeKey([a]), encodeKey([b])]
        expect(binaryString(binaryBytes(x))).toBe(x)
        expect(Math.sign(Buffer.compare(binaryBytes(x), binaryBytes(y)))).toBe(plain(x, y))
      }),
      { numRuns: inputs(5_000) },
    )
  })
})

describe('bounds of keys', () => {
  test('the end of a prefix is above every key with it and above no other', () => {
    const bytes = fc.array(fc.constantFrom('\0', '\x01', 'a', '\xfe', '\xff'), { maxLength: 4 })
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        const [prefix, key] = [a.join(''), `\x01${b.join('')}`]
        const end = prefixEnd(`\x01${prefix}`)
        const begins = key.startsWith(`\x01${prefix}`)
        expect(key >= `\x01${prefix}` && key < end).toBe(begins)
        expect(keySuccessor(key) > key).toBe(true)
      }),
      { numRuns: inputs(10_000) },
    )
    expect(prefixEnd('')).toBe(KEY_END)
  })

  test('an interval holds exactly the documents within its bounds', () => {
    const small = fc.oneof(
      fc.constantFrom<Value | undefined>(undefined, null, 1n, 2n, 'a', 'a\0', ''),
    )
    const bound = fc.option(fc.record({ value: small, inclusive: fc.boolean() }), {
      nil: undefined,
    })
    const definition = { table: 'messages', fields: ['a', 'b'] }
    fc.assert(
      fc.property(small, small, small, bound, bound, (a, b, equal, lower, upper) => {
        const interval = keyInterval(definition, { equals: [equal], ...sides(lower, upper) })
        const key = indexKey(definition, document({ a, b }))
        const inside = compareValues(a, equal) === 0 && within(compareValues, b, lower, upper)
        expect(key >= interval.lower && key < interval.upper).toBe(inside)
      }),
      { numRuns: inputs(20_000) },
    )
  })

  test('after all fields the bound is the creation time', () => {
    const time = fc.bigInt({ min: -3n, max: 3n })
    const bound = fc.option(fc.record({ value: time, inclusive: fc.boolean() }), { nil: undefined })
    const definition = { table: 'messages', fields: ['a'] }
    fc.assert(
      fc.property(time, bound, bound, (created, lower, upper) => {
        const stamp = (side: typeof lower): Bound | undefined =>
          side && { value: new Timestamp(side.value), inclusive: side.inclusive }
        const bounds = { equals: ['x'], ...sides(stamp(lower), stamp(upper)) }
        const interval = keyInterval(definition, bounds)
        const key = indexKey(definition, document({ a: 'x' }, created))
        expect(key >= interval.lower && key < interval.upper).toBe(
          within(plain, created, lower, upper),
        )
      }),
      { numRuns: inputs(5_000) },
    )
  })

  test('a key of more than 2,560 bytes is rejected with the name of its index', () => {
    const longest = 'x'.repeat(KEY_BYTES_MAX - 3)
    expect(encodeKey([longest])).toHaveLength(KEY_BYTES_MAX)
    for (const make of [
      () => encodeKey([`${longest}x`]),
      () => indexKey({ table: 'messages', fields: ['a'] }, document({ a: longest })),
      () => keyInterval({ table: 'messages', fields: ['a', 'b'] }, { equals: [longest, 1n] }),
    ]) {
      expect(make).toThrowError(
        expect.toSatisfy((error: unknown) => isFault(error, 'LIMIT_EXCEEDED')),
      )
    }
    expect(() => indexKey({ table: 'messages', fields: ['a'] }, document({ a: longest }))).toThrow(
      expect.objectContaining({
        detail: 'index key of messages by a: 2603 bytes (at most 2560)',
      }),
    )
  })
})

function sides(lower: Bound | undefined, upper: Bound | undefined) {
  return { ...(lower && { lower }), ...(upper && { upper }) }
}

function within<T>(
  compare: (a: T, b: T) => number,
  value: T,
  lower: { value: T; inclusive: boolean } | undefined,
  upper: { value: T; inclusive: boolean } | undefined,
): boolean {
  const low = lower === undefined ? 1 : compare(value, lower.value)
  const high = upper === undefined ? -1 : compare(value, upper.value)
  return (
    (low > 0 || (low === 0 && lower?.inclusive === true)) &&
    (high < 0 || (high === 0 && upper?.inclusive === true))
  )
}

function document(fields: { a?: Value | undefined; b?: Value | undefined }, createdAtMicros = 7n) {
  const present = Object.entries(fields).filter(
    (entry): entry is [string, Value] => entry[1] !== undefined,
  )
  return {
    id: `messages_${'0'.repeat(26)}`,
    createdAtMicros,
    fields: new Map<string, Value>(present),
  }
}
