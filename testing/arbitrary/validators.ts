/** Random validators with a value that each accepts, for property tests. */
import type { ValidatorJson } from '../../src/value/validators.ts'
import { Timestamp, TypedId, type Value } from '../../src/value/values.ts'
import { arbitraryFloat64, arbitraryInt64, arbitraryValue } from '../arbitrary-values.ts'
import { fc } from '../properties.ts'

export type Typed = readonly [ValidatorJson, Value]

const ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
/** Texts that are the plain form of other types, among any others. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('5', '-1', '1e3', 'AQ', 'true', 'null', '2026-01-31T12:00:00Z'),
  fc.constant(`messages_${ULID}`),
  arbitraryInt64.map(String),
)
const name = fc.constantFrom('a', 'b', 'type', 'value')
const of = <T extends Value>(validator: ValidatorJson, values: fc.Arbitrary<T>) =>
  values.map((value): Typed => [validator, value])

const leaf: fc.Arbitrary<Typed> = fc.oneof(
  of({ type: 'any' }, arbitraryValue),
  of({ type: 'null' }, fc.constant(null)),
  of({ type: 'boolean' }, fc.boolean()),
  of({ type: 'int64' }, arbitraryInt64),
  of({ type: 'float64' }, arbitraryFloat64),
  of({ type: 'string' }, text),
  of({ type: 'bytes' }, fc.uint8Array({ maxLength: 8 })),
  of(
    { type: 'timestamp' },
    arbitraryInt64.map((micros) => new Timestamp(micros)),
  ),
  of({ type: 'id', table: 'messages' }, fc.constant(new TypedId(`messages_${ULID}`))),
  of({ type: 'id', table: 'files' }, fc.constant(new TypedId(`fil_${ULID}`))),
  arbitraryInt64.map(
    (value): Typed => [{ type: 'literal', value: { int64: String(value) } }, value],
  ),
  text.map((value): Typed => [{ type: 'literal', value: { string: value } }, value]),
)

/** A validator, nested a few levels, and a value of it. */
export const arbitraryTyped: fc.Arbitrary<Typed> = fc.letrec<{ typed: Typed }>((tie) => {
  const typed = tie('typed')
  return {
    typed: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'typed', withCrossShrink: true },
      leaf,
      typed.map(([inner, value]): Typed => [{ type: 'nullable', inner }, value]),
      typed.map(([inner]): Typed => [{ type: 'nullable', inner }, null]),
      typed.map(([items, value]): Typed => [{ type: 'array', items }, [value, value]]),
      fc
        .tuple(name, typed)
        .map(
          ([key, [values, value]]): Typed => [{ type: 'record', values }, new Map([[key, value]])],
        ),
      fc.uniqueArray(fc.tuple(name, typed), { maxLength: 3, selector: ([key]) => key }).map(
        (fields): Typed => [
          {
            type: 'object',
            fields: Object.fromEntries(fields.map(([key, [validator]]) => [key, validator])),
          },
          new Map(fields.map(([key, [, value]]) => [key, value])),
        ],
      ),
      // The value of a union is one of any of its members.
      fc
        .tuple(fc.array(typed, { minLength: 1, maxLength: 3 }), fc.nat())
        .map(
          ([members, at]): Typed => [
            { type: 'union', members: members.map(([validator]) => validator) },
            members[at % members.length]![1],
          ],
        ),
    ),
  }
}).typed
