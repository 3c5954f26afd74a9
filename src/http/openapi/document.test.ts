import { readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { arbitraryValue } from '../../../testing/arbitrary-values.ts'
import { Contract } from '../../../testing/openapi/contract.ts'
import { fc } from '../../../testing/properties.ts'
import type { Json } from '../../value/strict-json.ts'
import { encodeTagged } from '../../value/tagged.ts'
import { parseValidator } from '../../value/validator-json.ts'
import type { ValidatorJson } from '../../value/validators.ts'
import {
  DEVELOPMENT_ROUTES,
  FILE_TRANSFERS,
  FUNCTIONS_DOCUMENT,
  INVOCATIONS,
  PLAIN_CALLS,
  PROBES,
  REALTIME,
} from '../application/routes.ts'
import { isS3Path, S3_PATH } from '../application/s3/requests.ts'
import { managementRoutes } from '../management/routes.ts'
import { openApiText, publishedDocument } from './published.ts'

interface Document {
  readonly info: { readonly description: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
}

const APPLICATION = [
  ...INVOCATIONS,
  ...PLAIN_CALLS,
  FUNCTIONS_DOCUMENT,
  ...FILE_TRANSFERS,
  ...DEVELOPMENT_ROUTES,
  ...PROBES,
  REALTIME,
]
const document = JSON.parse(openApiText()) as Document
const contract = new Contract(document)
const { schemas } = document.components

test('the document keeps the rules of OpenAPI 3.1, and every reference resolves', {
  tags: ['slow'],
}, async () => {
  const result = await new Validator().validate(JSON.parse(openApiText()))
  expect(result.errors).toBeUndefined()
  expect(result.valid).toBe(true)
  for (const [, name] of openApiText().matchAll(/"#\/([^"]+)"/g)) {
    expect(contract.resolve({ $ref: `#/${name}` }), name).toBeDefined()
  }
})

test('every route of both origins is an operation, and nothing else is', () => {
  const [read] = managementRoutes.filter(({ name }) => name === 'readObject')
  // The route of GET answers HEAD too.
  const routes = [...managementRoutes, { ...read!, method: 'HEAD' }, ...APPLICATION]
  const named = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
  const documented = contract.operations.map(({ method, path }) => `${method} ${path}`)
  expect(documented.toSorted()).toEqual(named.toSorted())
})

test('the document names the S3-compatible API, and none of its operations', () => {
  expect(document.info.description).toContain(`\`${S3_PATH}\``)
  expect(Object.keys(document.paths).filter(isS3Path)).toEqual([])
})

test('each operation has a unique name and sentences as summary and description', () => {
  const names = contract.operations.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z]*$/)
  for (const route of [...managementRoutes, ...APPLICATION]) {
    expect(route.summary).toMatch(/^[A-Z].*\.$/)
  }
  for (const { name, description } of contract.operations) {
    expect(description, name).toMatch(/^[A-Z].*\.$/)
  }
})

test('each answer is described by the name of its status in HTTP', () => {
  // RFC 9110 renamed this status; the runtime still has the earlier name.
  const names: Record<string, string | undefined> = { ...STATUS_CODES, 413: 'Content Too Large' }
  for (const { method, path, responses } of contract.operations) {
    for (const [status, response] of Object.entries(responses)) {
      const { description } = contract.resolve(response) as { description: string }
      const [first] = description.split('\n')
      expect(first?.toLowerCase(), `${method} ${path} ${status}`).toBe(
        `${names[status]?.toLowerCase()}.`,
      )
    }
  }
})

test('exactly the paths of the application origin name their own server', () => {
  for (const { path, elsewhere } of contract.operations) {
    const isApplication = APPLICATION.some((route) => {
      return route.path.replace(/:(\w+)/, '{$1}') === path
    })
    expect(elsewhere, path).toBe(isApplication)
  }
})

test('every object is closed', () => {
  const open: string[] = []
  const walk = (node: unknown, path: string): void => {
    if (node === null || typeof node !== 'object') return
    const schema = node as {
      readonly properties?: unknown
      readonly additionalProperties?: unknown
    }
    if (schema.properties !== undefined && schema.additionalProperties !== false) open.push(path)
    for (const [key, each] of Object.entries(node)) {
      // A condition constrains some fields of an object that is closed elsewhere.
      if (key !== 'if' && key !== 'then') walk(each, `${path}.${key}`)
    }
  }
  walk(schemas, '')
  expect(open).toEqual(['.OpenApiDocument'])
})

test('the document always has the text of the shipped file', () => {
  expect(`${JSON.stringify(publishedDocument(), null, 2)}\n`).toBe(openApiText())
  const shipped = join(import.meta.dirname, '../../../dist-config/openapi.json')
  expect(readFileSync(shipped, 'utf8')).toBe(openApiText())
})

describe('the schema of tagged values', () => {
  const problem = (value: unknown) =>
    contract.problem({ $ref: '#/components/schemas/TaggedValue' }, value)

  test('the schema of tagged values accepts the text of every value', () => {
    fc.assert(
      fc.property(arbitraryValue, (value) => {
        expect(problem(JSON.parse(encodeTagged(value)))).toBeNull()
      }),
    )
  })

  test.each([
    { type: 'null', value: null },
    { type: 'int64', value: 1 },
    { type: 'int64', value: '01' },
    { type: 'float64', value: '1' },
    { type: 'bytes', value: 'a+' },
    { type: 'typed_id', value: 'notes_1' },
    { type: 'object', value: [{ key: 'a' }] },
    { type: 'array', value: [1] },
    { type: 'string', value: 'x', more: 1 },
    { type: 'other', value: 'x' },
    {},
    null,
  ])('the schema of tagged values rejects %j', (value) => {
    expect(problem(value)).not.toBeNull()
  })
})

const ANY = { type: 'any' } as const
/** Each validator with everything that it may have; the compiler misses what is not here. */
const VALIDATORS: { readonly [T in ValidatorJson['type']]: Whole<T> } = {
  null: { type: 'null' },
  boolean: { type: 'boolean' },
  timestamp: { type: 'timestamp' },
  any: ANY,
  int64: { type: 'int64', minimum: '-1', maximum: '1' },
  float64: { type: 'float64', minimum: -0.5, maximum: 0.5 },
  string: { type: 'string', minimumLength: 1, maximumLength: 2, pattern: 'a+' },
  bytes: { type: 'bytes', maximumLength: 2 },
  id: { type: 'id', table: 'notes' },
  literal: { type: 'literal', value: { int64: '5' } },
  array: { type: 'array', items: ANY, maximumItems: 2 },
  object: { type: 'object', fields: { a: ANY, b: { type: 'optional', inner: ANY, default: 1 } } },
  record: { type: 'record', values: ANY, maximumItems: 2 },
  union: { type: 'union', members: [ANY] },
  nullable: { type: 'nullable', inner: ANY },
  open: { type: 'open', inner: { type: 'union', members: [{ type: 'null' }] } },
}
type Whole<T, M = ValidatorJson> = M extends { readonly type: infer U }
  ? T extends U
    ? Required<M>
    : never
  : never

describe('the schema of validators', () => {
  const problem = (json: unknown) => {
    return contract.problem({ $ref: '#/components/schemas/Validator' }, json)
  }

  test.each(Object.values(VALIDATORS))(
    'the schema of validators accepts $type as the server does',
    (json) => {
      expect(parseValidator(json as unknown as Json)).toEqual(json)
      expect(problem(json)).toBeNull()
      expect(problem({ type: 'array', items: json })).toBeNull()
    },
  )

  test.each(Object.values(VALIDATORS))(
    'the schema of validators rejects $type with another field',
    (json) => {
      expect(problem({ ...json, more: 1 })).not.toBeNull()
    },
  )
})
