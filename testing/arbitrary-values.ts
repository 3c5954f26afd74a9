/** Random values for property tests of several folders. */

import { encodeUlid } from '../src/value/ids.ts'
import { INT64_MAX, INT64_MIN, Timestamp, TypedId, type Value } from '../src/value/values.ts'
import { fc } from './properties.ts'

const text = fc.string({ unit: 'binary', maxLength: 20 })
const key = text.filter((name) => name !== '__proto__')
export const arbitraryInt64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX })
export const arbitraryFloat64 = fc
  .double({ noNaN: true, noDefaultInfinity: true })
  .map((value) => (value === 0 ? 0 : value))
const ulid = fc
  .tuple(fc.nat({ max: 2 ** 48 - 1 }), fc.uint8Array({ minLength: 10, maxLength: 10 }))
  .map(([millis, entropy]) => encodeUlid(millis, entropy))
const table = fc.constantFrom('messages', 'channels', 'a', 'userProfiles')

/** Generates any canonical value, nested a few levels. */
export const arbitraryValue: fc.Arbitrary<Value> = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'value' },
    fc.constant(null),
    fc.boolean(),
    arbitraryInt64,
    arbitraryFloat64,
    text,
    fc.uint8Array({ maxLength: 12 }),
    arbitraryInt64.map((micros) => new Timestamp(micros)),
    fc.tuple(table, ulid).map(([name, id]) => new TypedId(`${name}_${id}`)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .dictionary(key, tie('value'), { maxKeys: 4 })
      .map((object) => new Map(Object.entries(object))),
  ),
})).value
