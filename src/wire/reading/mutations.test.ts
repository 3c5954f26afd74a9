import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { mutatedJson, Random } from '../../../testing/fuzzing/fuzz.ts'
import { arbitraryOf } from '../../../testing/openapi/arbitrary-requests.ts'
import { fc } from '../../../testing/properties.ts'
import { declaredSchemas, rulesAgainst } from '../../../testing/wire-schemas.ts'
import { SECRET_FORMAT } from '../fields.ts'
import { jsonSchemaOf } from './json-schema.ts'
import { compiledType } from './read.ts'

/** Rules that JSON Schema cannot express. */
const UNSAID = [
  'canonical decimal microseconds',
  'a canonical unsigned 64-bit integer',
  'a canonical unsigned 64-bit integer from 1 up',
  'a path such as /stripe',
  'at least one method',
  'exact origins, or * alone',
  'in order, each once',
  'no header with a credential',
  ...[128, 256, 512].map((max) => `1 to ${max} characters in NFC without control characters`),
]

/** The validator of all schemas, so that the schema of schemas is compiled once. */
const ajv = new Ajv2020({ strict: false, addUsedSchema: false })
ajv.addFormat(SECRET_FORMAT, true)

/** Number of values of each schema that all of its rules accept. */
const ACCEPTED = 5
/** Number of mutations of each schema. */
const MUTATIONS = process.env.SVC_TEST_LONG === '1' ? 300 : 60

test.each(await declaredSchemas())(
  'mutations of %s are accepted exactly where its JSON Schema accepts them',
  (_, schema) => {
    const described = jsonSchemaOf(schema, { checkedOnly: true })
    const matches = ajv.compile(described)
    const contract = { resolve: (inner: unknown) => inner } as never
    const values = arbitraryOf(contract, described as never)
    // Rules that JSON Schema cannot express reject nine of ten values of some schemas.
    const accepting = values.filter((data) => rulesAgainst(schema, data).length === 0)
    const valid = [...fc.sample(accepting, ACCEPTED), ...fc.sample(values, 20 - ACCEPTED)]
    const random = new Random(fc.sample(fc.nat(), 1)[0]!)
    for (let i = 0; i < MUTATIONS; i++) {
      const sample = valid[i % valid.length]
      const data: unknown = i < valid.length ? sample : mutatedJson(random, sample)
      const rules = rulesAgainst(schema, data)
      const shown = JSON.stringify(data)
      // Uncompiled, as a schema is used for the first time.
      expect(compiledType(schema).allows(data), shown).toBe(rules.length === 0)
      if (matches(data)) expect(UNSAID, shown).toEqual(expect.arrayContaining([...rules]))
      else expect(rules, shown).not.toEqual([])
    }
  },
)
