/** Validators and the values that they accept, at random. */
import { encodeStored, fromStoredJson } from '../../src/value/stored.ts'
import type { Json } from '../../src/value/strict-json.ts'
import { ValidationError } from '../../src/value/validation-error.ts'
import { parseValidator } from '../../src/value/validator-json.ts'
import {
  compileValidator,
  type FieldsJson,
  type ValidatorJson,
} from '../../src/value/validators.ts'
import { fc } from '../properties.ts'

export const ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const NAMES = ['a', 'b', 'body', 'constructor', 'toString', '_id', 'zz']
const small = fc.nat({ max: 4 })
const bound = fc.option(small, { nil: undefined })
const pattern = fc.option(fc.constantFrom('é*', '.{1,3}', '[^a]*', '(é|a)+', 'a?b'), {
  nil: undefined,
})

/** Returns whether a manifest may carry the validator. */
function isAllowed(json: ValidatorJson): boolean {
  try {
    parseValidator(json as unknown as Json)
    return true
  } catch (error) {
    if (error instanceof ValidationError) return false
    throw error
  }
}

/** A field whose default is a value of the validator, if one is found that a manifest may carry. */
function withDefault(inner: ValidatorJson, pick: (max: number) => number): FieldsJson[string] {
  const field = { type: 'optional', inner } as const
  const check = compileValidator(inner, { coerce: true, unknown: 'rejected' })
  try {
    const value = check(fromStoredJson(accepted(inner, pick)), '$')
    const given = { ...field, default: JSON.parse(encodeStored(value)) as Json }
    return isAllowed({ type: 'object', fields: { given } }) ? given : field
  } catch (error) {
    if (error instanceof ValidationError) return field
    throw error
  }
}

/** Draws numbers up to a bound. */
export function picker(stream: fc.Stream<number>): (max: number) => number {
  return (max) => (stream.next().value ?? 0) % (max + 1)
}

function defined<T extends object>(json: T): T {
  return JSON.parse(JSON.stringify(json)) as T
}

export const arbitraryValidator: fc.Arbitrary<ValidatorJson> = fc.letrec<{ any: ValidatorJson }>(
  (tie) => ({
    any: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'validator' },
      fc.constantFrom<ValidatorJson>(
        { type: 'any' },
        { type: 'null' },
        { type: 'boolean' },
        { type: 'timestamp' },
        { type: 'id', table: 'messages' },
        { type: 'id', table: 'files' },
        { type: 'literal', value: { string: 'text' } },
        { type: 'literal', value: { boolean: true } },
        { type: 'literal', value: { int64: '7' } },
      ),
      fc.record({ minimum: bound, maximum: bound }).map(({ minimum, maximum }) =>
        defined({
          type: 'int64' as const,
          minimum: minimum && `${minimum}`,
          maximum: maximum && '9',
        }),
      ) as fc.Arbitrary<ValidatorJson>,
      fc
        .record({ minimum: bound, maximum: bound })
        .map((more) =>
          defined({ type: 'float64' as const, ...more }),
        ) as fc.Arbitrary<ValidatorJson>,
      fc
        .record({ minimumLength: bound, maximumLength: bound, pattern })
        .map((more) =>
          defined({ type: 'string' as const, ...more }),
        ) as fc.Arbitrary<ValidatorJson>,
      bound.map((maximumLength) =>
        defined({ type: 'bytes' as const, maximumLength }),
      ) as fc.Arbitrary<ValidatorJson>,
      fc
        .tuple(tie('any'), bound)
        .map(([items, maximumItems]) =>
          defined({ type: 'array' as const, items, maximumItems }),
        ) as fc.Arbitrary<ValidatorJson>,
      fc
        .tuple(tie('any'), bound)
        .map(([values, maximumItems]) =>
          defined({ type: 'record' as const, values, maximumItems }),
        ) as fc.Arbitrary<ValidatorJson>,
      fc
        .tuple(
          fc.dictionary(
            fc.constantFrom(...NAMES),
            fc.tuple(tie('any'), fc.constantFrom('required', 'optional', 'default')),
            { maxKeys: 4 },
          ),
          fc.infiniteStream(fc.nat({ max: 1_000 })),
        )
        .map(([fields, stream]): ValidatorJson => {
          const pick = picker(stream)
          const fieldOf = (inner: ValidatorJson, need: string): FieldsJson[string] => {
            if (need === 'required') return inner
            return need === 'default' ? withDefault(inner, pick) : { type: 'optional', inner }
          }
          const entries = Object.entries(fields).map(([name, [inner, need]]) => {
            return [name, fieldOf(inner, need)] as const
          })
          return { type: 'object', fields: Object.fromEntries(entries) }
        }),
      fc
        .array(tie('any'), { minLength: 1, maxLength: 3 })
        .filter((members) => isAllowed({ type: 'union', members }))
        .map((members): ValidatorJson => ({ type: 'union', members })),
      fc
        .array(tie('any'), { minLength: 1, maxLength: 3 })
        .map((members): ValidatorJson => ({ type: 'open', inner: { type: 'union', members } }))
        .filter(isAllowed),
      tie('any').map((inner): ValidatorJson => ({ type: 'nullable', inner })),
    ),
  }),
).any

/** A value that the validator accepts, as a runner may write it. */
export function accepted(json: ValidatorJson, pick: (max: number) => number): unknown {
  switch (json.type) {
    case 'boolean':
      return pick(1) === 0
    case 'int64':
      return { $i: `${json.minimum ?? pick(9)}` }
    case 'timestamp':
      return pick(1) === 0 ? { $t: '5' } : { $i: '-5' }
    case 'float64':
      return json.minimum ?? Math.min(0.5, json.maximum ?? 1)
    case 'string':
      return 'é'.repeat(json.minimumLength ?? Math.min(1, json.maximumLength ?? 1))
    case 'bytes':
      return { $b: '' }
    case 'id': {
      const text = `${json.table === 'files' ? 'fil' : json.table}_${ULID}`
      return pick(1) === 0 ? text : { $d: text }
    }
    case 'literal':
      return 'int64' in json.value ? { $i: json.value.int64 } : Object.values(json.value)[0]
    case 'array':
      return Array.from({ length: Math.min(pick(3), json.maximumItems ?? 3) }, () =>
        accepted(json.items, pick),
      )
    case 'record':
      return (json.maximumItems ?? 1) === 0
        ? {}
        : { [['k', '$$x', '\u{1f600}'][pick(2)]!]: accepted(json.values, pick) }
    case 'object': {
      const fields = Object.entries(json.fields).filter(
        ([, field]) => field.type !== 'optional' || pick(1) === 0,
      )
      return Object.fromEntries(
        fields.map(([name, field]) => [
          name,
          accepted(field.type === 'optional' ? field.inner : field, pick),
        ]),
      )
    }
    case 'union':
      return accepted(json.members[pick(json.members.length - 1)]!, pick)
    case 'open':
      return pick(3) === 0 ? { unknown: true } : accepted(json.inner, pick)
    case 'nullable':
      return pick(2) === 0 ? null : accepted(json.inner, pick)
    default:
      return null
  }
}
