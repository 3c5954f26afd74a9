/**
 * Goal: a client that was generated from the document understands every result, and the server
 * understands what the document lets it send. Method: plain forms of random values of random
 * validators are checked against the schemas.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { fc, inputs } from '../../../../testing/properties.ts'
import {
  accepted,
  arbitraryValidator,
  picker,
} from '../../../../testing/schemas/arbitrary-validators.ts'
import { SEED } from '../../../../testing/seeds.ts'
import { compilePlainDecoder } from '../../../value/plain-json/decoding.ts'
import { compilePlainEncoder } from '../../../value/plain-json/encoding.ts'
import { fromStoredJson } from '../../../value/stored.ts'
import { encodeTagged } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { compileValidator, type ValidatorJson } from '../../../value/validators.ts'
import type { Value } from '../../../value/values.ts'
import { plainSchema } from './schemas.ts'

const TAGGED = { type: 'object', required: ['type'], properties: { value: {}, type: {} } }

function schemaOf(validator: ValidatorJson): (json: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true })
  const components = { schemas: { TaggedValue: { ...TAGGED, additionalProperties: false } } }
  return ajv.compile({ ...plainSchema(validator), components })
}

function acceptedValue(validator: ValidatorJson, pick: (max: number) => number): Value | null {
  try {
    const check = compileValidator(validator, { coerce: true })
    return check(fromStoredJson(accepted(validator, pick)), '$')
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

test(`the schema accepts the plain form of every value (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  const numbers = fc.infiniteStream(fc.nat({ max: 1_000 }))
  const property = fc.property(arbitraryValidator, numbers, (validator, stream) => {
    const value = acceptedValue(validator, picker(stream))
    if (value === null) return
    const text = compilePlainEncoder(validator, 'number')(encodeTagged(value))
    const context = `${text} by ${JSON.stringify(validator)}`
    expect(schemaOf(validator)(JSON.parse(text)), context).toBe(true)
  })
  fc.assert(property, { numRuns: inputs(500) })
})

test.each<[ValidatorJson, unknown]>([
  [{ type: 'int64' }, 1.5],
  [{ type: 'int64', minimum: '0', maximum: '9' }, 10],
  [{ type: 'string', maximumLength: 2 }, 'abc'],
  [{ type: 'string', pattern: 'a+' }, 'ab'],
  [{ type: 'id', table: 'notes' }, 'users_01ARZ3NDEKTSV4RRFFQ69G5FAV'],
  [
    {
      type: 'union',
      members: ['a', 'b'].map((string) => ({ type: 'literal', value: { string } })),
    },
    'c',
  ],
  [{ type: 'object', fields: { a: { type: 'null' } } }, {}],
  [{ type: 'object', fields: {} }, { a: 1 }],
  [{ type: 'any' }, 'x'],
])('the schema of %j rejects %j, as the server does', (validator, json) => {
  expect(schemaOf(validator)(json)).toBe(false)
  expect(() => compilePlainDecoder(validator)(json as never, '$')).toThrow(ValidationError)
})
