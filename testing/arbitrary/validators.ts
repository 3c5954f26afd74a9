/** Random validators with a value that each accepts, for property tests. */
import { encodeStored } from '../../src/value/stored.ts'
import type { Json } from '../../src/value/strict-json.ts'
import { ValidationError } from '../../src/value/validation-error.ts'
import { parseValidator } from '../../src/value/validator-json.ts'
import { type FieldsJson, UNKNOWN_MEMBER, type ValidatorJson } from '../../src/value/validators.ts'
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

/** Returns the first validator that a manifest may carry. The last one always may. */
export function firstAllowed(...validators: readonly ValidatorJson[]): ValidatorJson {
  return validators.find(isAllowed) ?? validators.at(-1)!
}

function isAllowed(json: ValidatorJson): boolean {
  try {
    parseValidator(json as unknown as Json)
    return true
  } catch (error) {
    if (error instanceof ValidationError) return false
    throw error
  }
}

const NEEDS = ['required', 'optional', 'absent', 'default'] as const

/** A field of the validator with one of `NEEDS`. Its default is the value. */
function fieldOf(inner: ValidatorJson, value: Value, need: (typeof NEEDS)[number]) {
  if (need === 'required') return inner
  const json = JSON.parse(encodeStored(value)) as Json
  const field = { type: 'optional', inner, ...(need === 'default' && { default: json }) } as const
  const isObjectAllowed = isAllowed({ type: 'object', fields: { field } })
  return isObjectAllowed ? field : ({ type: 'optional', inner } as const)
}

type Field = readonly [name: string, Typed, need: (typeof NEEDS)[number]]

function objectOf(typed: fc.Arbitrary<Typed>): fc.Arbitrary<Typed> {
  const field: fc.Arbitrary<Field> = fc.tuple(name, typed, fc.constantFrom(...NEEDS))
  return fc.uniqueArray(field, { maxLength: 3, selector: ([key]) => key }).map((all): Typed => {
    const fields: FieldsJson = Object.fromEntries(
      all.map(([key, [inner, value], need]) => [key, fieldOf(inner, value, need)]),
    )
    const present = all.filter(([, , need]) => need !== 'absent')
    return [{ type: 'object', fields }, new Map(present.map(([key, [, value]]) => [key, value]))]
  })
}

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
      objectOf(typed),
      // The value of a union is one of any of its members.
      fc
        .tuple(fc.array(typed, { minLength: 1, maxLength: 3 }), fc.nat())
        .map(([members, at]): Typed => {
          const union = { type: 'union', members: members.map(([member]) => member) } as const
          const json = firstAllowed(union, members[0]![0])
          return [json, members[json === union ? at % members.length : 0]![1]]
        }),
      fc.tuple(typed, typed, fc.nat({ max: 2 })).map(([[a, value], [b], pick]): Typed => {
        const json = firstAllowed({ type: 'open', inner: { type: 'union', members: [a, b] } }, a)
        return json === a || pick > 0 ? [json, value] : [json, UNKNOWN_MEMBER]
      }),
    ),
  }
}).typed

/** A table with a document of it, which has no default left to fill. */
export const arbitraryDocument = objectOf(arbitraryTyped)
