/**
 * Values and validators as JSON Schema. value/tagged.ts and value/validator-json.ts define them,
 * with rules that a schema cannot express: the order of keys and the range of int64.
 */
import { PATTERN_LENGTH_MAX } from '../../value/patterns/syntax.ts'
import { FLOAT64, INT64, TYPED_ID } from '../../value/tagged.ts'
import { VALUE_ENTRIES_MAX } from '../../value/values.ts'
import type { JsonSchema } from '../../wire/rules.ts'

const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

function closed(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  return {
    type: 'object',
    properties: { ...properties, ...optional },
    required: Object.keys(properties),
    additionalProperties: false,
  }
}

/** Schema of an object whose `type` determines its other properties. */
function typed(
  type: string,
  properties: Readonly<Record<string, JsonSchema>> = {},
  optional: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  return closed({ type: { const: type }, ...properties }, optional)
}

const text = (pattern: RegExp): JsonSchema => ({ type: 'string', pattern: pattern.source })
const count: JsonSchema = { type: 'integer', minimum: 0 }
const int64 = text(INT64)
const number: JsonSchema = { type: 'number' }

const list = (items: JsonSchema): JsonSchema => {
  return { type: 'array', items, maxItems: VALUE_ENTRIES_MAX }
}

export const VALUE_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  TaggedValue: {
    description: 'A value with its type, nested 64 deep at most.',
    oneOf: [
      typed('null'),
      typed('boolean', { value: { type: 'boolean' } }),
      typed('int64', { value: int64 }),
      typed('float64', { value: text(FLOAT64) }),
      typed('string', { value: { type: 'string' } }),
      typed('bytes', { value: text(/^[A-Za-z0-9_-]*$/) }),
      typed('timestamp', { value: int64 }),
      typed('typed_id', { value: text(TYPED_ID) }),
      typed('array', { value: list(ref('TaggedValue')) }),
      ref('TaggedObject'),
    ],
  },
  TaggedObject: {
    description: 'Entries strictly sorted by the UTF-8 bytes of their keys.',
    ...typed('object', {
      value: list(closed({ key: { type: 'string' }, value: ref('TaggedValue') })),
    }),
  },
  StoredValue: {
    description:
      'A value as JSON. A type that JSON does not have is an object with one key: ' +
      '`$i` an int64, `$t` a timestamp, `$b` bytes, `$d` an ID.',
  },
  Validator: {
    description: 'The type of the arguments or of the result of a Function.',
    oneOf: [
      typed('null'),
      typed('boolean'),
      typed('timestamp'),
      typed('any'),
      typed('int64', {}, { minimum: int64, maximum: int64 }),
      typed('float64', {}, { minimum: number, maximum: number }),
      typed(
        'string',
        {},
        {
          minimumLength: count,
          maximumLength: count,
          pattern: { type: 'string', maxLength: PATTERN_LENGTH_MAX },
        },
      ),
      typed('bytes', {}, { maximumLength: count }),
      typed('id', { table: text(/^[a-z][a-zA-Z0-9]{0,63}$/) }),
      typed('literal', {
        value: {
          oneOf: [
            closed({ string: { type: 'string' } }),
            closed({ boolean: { type: 'boolean' } }),
            closed({ int64 }),
          ],
        },
      }),
      typed('array', { items: ref('Validator') }, { maximumItems: count }),
      typed('record', { values: ref('Validator') }, { maximumItems: count }),
      typed('object', { fields: ref('ValidatorFields') }),
      typed('nullable', { inner: ref('Validator') }),
      typed('open', { inner: ref('Validator') }),
      typed('union', { members: { type: 'array', items: ref('Validator'), minItems: 1 } }),
    ],
  },
  ValidatorFields: {
    description:
      'Validators by field name. An optional field may be absent; it then has its default, if any.',
    type: 'object',
    additionalProperties: {
      oneOf: [
        ref('Validator'),
        typed('optional', { inner: ref('Validator') }, { default: ref('StoredValue') }),
      ],
    },
  },
}
