/*
 * Goal: no response with a secret is ever compressed (BREACH): the length of a compressed response
 * tells who can add text to it what else is in it. Method: the schema of every response of both
 * route tables is searched for secrets. A field whose name suggests a secret fails until it is
 * marked as one or stands in the list below.
 */
import { expect, test } from 'vitest'
import { SECRET_FORMAT } from '../wire/fields.ts'
import { LINES_MEDIA_TYPE } from '../wire/media-types.ts'
import { MANAGEMENT_OPERATIONS } from '../wire/operations/management.ts'
import type { Operation } from '../wire/operations/operation.ts'
import { jsonSchemaOf } from '../wire/reading/json-schema.ts'
import type { Schema } from '../wire/schema.ts'
import {
  DEVELOPMENT_ROUTES,
  FUNCTIONS_DOCUMENT,
  INVOCATIONS,
  PLAIN_CALLS,
} from './application/routes.ts'
import { managementRoutes } from './management/routes.ts'

/** Fields that are not secrets, although their names may suggest one. */
const NOT_SECRET = [
  // Names of secrets that an Action uses, without values.
  'listFunctions .functions[].uses.secrets',
  // The name of the secret that a hook verifies with.
  'listFunctions .http[].verify.secret',
  // The key of an object in a bucket, and a URL.
  'listObjects .items[].key',
  'readOidcConfig .tokenEndpoint',
]
const SUSPICIOUS = /secret|token|password|private|grant$|^(?:key|code)$/i
/** Flags and other values that have no room for a secret. */
const HARMLESS = ['boolean', 'integer', 'number', 'null']

type Node = Readonly<Record<string, unknown>>

interface Found {
  readonly path: string
  readonly name: string
  readonly schema: Node
}

/** Yields every property at any depth. */
function* propertiesOf(schema: unknown, path: string): Generator<Found> {
  if (typeof schema !== 'object' || schema === null) return
  const node = schema as Node
  for (const [name, property] of Object.entries((node.properties ?? {}) as Node)) {
    yield { path: `${path}.${name}`, name, schema: property as Node }
    yield* propertiesOf(property, `${path}.${name}`)
  }
  yield* propertiesOf(node.items, `${path}[]`)
  yield* propertiesOf(node.additionalProperties, `${path}.*`)
  for (const keyword of ['anyOf', 'oneOf', 'allOf']) {
    for (const part of (node[keyword] ?? []) as unknown[]) yield* propertiesOf(part, path)
  }
}

const isSecret = ({ schema }: Found) => JSON.stringify(schema).includes(`"${SECRET_FORMAT}"`)
const canHoldText = ({ schema }: Found) =>
  !HARMLESS.includes(String(schema.type)) && schema.const === undefined

const repliesOf = ({ replies }: Pick<Operation, 'replies'>) =>
  Object.values(replies).filter(
    (form): form is Schema<object> => typeof form === 'object' && form !== null,
  )
const found = (operation: Pick<Operation, 'name' | 'replies'>): Found[] =>
  repliesOf(operation).flatMap((schema) => [
    ...propertiesOf(jsonSchemaOf(schema), `${operation.name} `),
  ])

const calls = [...INVOCATIONS, ...PLAIN_CALLS, FUNCTIONS_DOCUMENT]
const all = [...managementRoutes, ...DEVELOPMENT_ROUTES, ...calls]
const compressing = all.filter(({ compresses }) => compresses)

test('every operation of the tables is searched, and its secrets are recognized', () => {
  expect(managementRoutes.map(({ name }) => name).sort()).toEqual(
    Object.values(MANAGEMENT_OPERATIONS)
      .map(({ name }) => name)
      .sort(),
  )
  const secrets = new Set(
    all.flatMap((each) =>
      found(each)
        .filter(isSecret)
        .map(({ path }) => path),
    ),
  )
  expect([...secrets].sort()).toEqual([
    'createCredential .key',
    'deriveSession .accessToken',
    'deriveSession .refreshToken',
    'exchangeCode .accessToken',
    'exchangeCode .refreshToken',
    'issueInvitation .code',
    'issueStorageKey .secretAccessKey',
    'logInExternally .accessToken',
    'logInExternally .refreshToken',
    'refreshSession .accessToken',
    'refreshSession .refreshToken',
    'revealKey .key',
    'rotateCredential .key',
    'rotateStorageKey .secretAccessKey',
  ])
})

test.each(compressing.map((each) => [each.name, each] as const))(
  'no response of %s has a secret',
  (_, operation) => {
    const suspicious = found(operation).filter(
      (each) => isSecret(each) || (SUSPICIOUS.test(each.name) && canHoldText(each)),
    )
    expect(suspicious.map(({ path }) => path).filter((path) => !NOT_SECRET.includes(path))).toEqual(
      [],
    )
  },
)

test('only reads are compressed, and of calls only Queries', () => {
  const changes = compressing.filter(({ method }) => method !== 'GET')
  // The Function decides the kind of a plain call; plain-calls.test.ts calls one of each.
  expect(changes.map(({ name }) => name)).toEqual(['query', 'callFunction'])
})

test('neither files nor lines that are followed are compressed', () => {
  const streamed = compressing.filter(({ replies, ...rest }) => {
    const mediaTypes = 'mediaTypes' in rest ? rest.mediaTypes : []
    return Object.values(replies).includes('bytes') || mediaTypes.includes(LINES_MEDIA_TYPE)
  })
  expect(streamed).toEqual([])
})
