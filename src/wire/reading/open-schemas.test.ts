import { expect, test } from 'vitest'
import { arbitraryOf } from '../../../testing/openapi/arbitrary-requests.ts'
import { fc } from '../../../testing/properties.ts'
import { declaredSchemas, rulesAgainst } from '../../../testing/wire-schemas.ts'
import { isJsonObject } from '../../value/strict-json.ts'
import { OperationField } from '../idempotency-records.ts'
import { openSchema, type Schema } from '../schema.ts'
import { jsonSchemaOf } from './json-schema.ts'
import { read } from './read.ts'

/** Returns data that the schema may accept. */
function samples(schema: Schema<unknown>, count: number): unknown[] {
  const contract = { resolve: (inner: unknown) => inner } as never
  const described = jsonSchemaOf(schema, { checkedOnly: true }) as never
  return fc.sample(arbitraryOf(contract, described), count)
}

/** Returns copies of the data. In each copy another object has one more field. */
function withMoreFields(data: unknown): unknown[] {
  if (Array.isArray(data)) {
    return data.flatMap((part, at) => withMoreFields(part).map((more) => data.with(at, more)))
  }
  if (!isJsonObject(data)) return []
  const deeper = Object.entries(data).flatMap(([name, part]) =>
    withMoreFields(part).map((more) => ({ ...data, [name]: more })),
  )
  return [{ ...data, aFieldOfLater: { since: 9 } }, ...deeper]
}

test.each(await declaredSchemas())(
  'a client reads %s with a field that a newer server added at any depth',
  (_, schema) => {
    const open = openSchema(schema)
    for (const data of samples(schema, 10).filter((each) => isValid(schema, each))) {
      expect(rulesAgainst(open, data)).toEqual([])
      for (const more of withMoreFields(data)) {
        // Another rule is broken where the object is a map, whose fields are data.
        const isUnknown = rulesAgainst(schema, more).join() === 'no unknown field'
        if (isUnknown) expect(rulesAgainst(open, more), JSON.stringify(more)).toEqual([])
      }
    }
  },
)

function isValid(schema: Schema<unknown>, data: unknown): boolean {
  return rulesAgainst(schema, data).length === 0
}

test('unknown fields stay in what the client reads', () => {
  const data = { ...(samples(OperationField, 1)[0] as object), aFieldOfLater: 1 }
  expect(rulesAgainst(OperationField, data)).toEqual(['no unknown field'])
  expect(read(openSchema(OperationField), data, 'CLIENT_RESPONSE_INVALID')).toEqual(data)
})
