import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { fc } from '../../testing/properties.ts'
import { isFault } from '../errors/fault.ts'
import type { Json } from '../value/strict-json.ts'
import { CredentialRequest } from './application-clients.ts'
import { PromoteRequest } from './channels.ts'
import { HistoryQuery } from './configuration.ts'
import { GrantField, InvitationRequest } from './identity/access.ts'
import { ExchangeRequest, RefreshRequest } from './identity/auth.ts'
import { ManagedGrantsRequest } from './identity/oidc.ts'
import { CallRequest, Invoked } from './invocations.ts'
import { MetricsReport } from './metrics.ts'
import { jsonSchemaOf } from './reading/json-schema.ts'
import { compiledType, read } from './reading/read.ts'
import { isSchema, NO_FIELDS, type Schema, schema } from './schema.ts'

const files = readdirSync(import.meta.dirname, { recursive: true })
  .map(String)
  .filter((name) => /^(?:identity\/)?[a-z-]+\.ts$/.test(name))
const modules = await Promise.all(
  files.map((file): Promise<Record<string, unknown>> => {
    return import(new URL(file, import.meta.url).href)
  }),
)
const declared = modules
  .flatMap((exported) => Object.entries(exported))
  .filter((entry): entry is [string, Schema<unknown>] => isSchema(entry[1]))
const violationsOf = (schema: Schema<unknown>, data: unknown, at?: string): string[] => {
  try {
    read(schema, data, 'PLATFORM_REQUEST_INVALID', at)
    return []
  } catch (error) {
    if (!isFault(error)) throw error
    return error.violations.map(({ path, rule }) => `${path}: ${rule}`)
  }
}

const allows = (schema: Schema<unknown>, data: unknown): boolean =>
  violationsOf(schema, data).length === 0

/** Messages, and the fields that several of them share. */
const isMessage = (schema: Schema<unknown>): boolean => compiledType(schema).extends('object')
const objects = declared.filter(([, schema]) => isMessage(schema))
/** Fields of tagged values, which value/tagged.ts checks. */
const UNCHECKED = ['TaggedField', 'TaggedObjectField']
const fields = declared.filter(([name, schema]) => {
  return !isMessage(schema) && !UNCHECKED.includes(name)
})

test('the exports that are messages are found', () => {
  const names = objects.map(([name]) => name)
  expect(names).toEqual(expect.arrayContaining(['OidcLoginRequest', 'Login', 'AuditPage']))
  expect(names.length).toBeGreaterThan(40)
  expect(fields.map(([name]) => name)).toEqual(expect.arrayContaining(['ChannelName', 'U64']))
})

test.each(objects)(
  '%s accepts an object only, and no list, null, text, number or boolean',
  (_, schema) => {
    for (const data of [[], [[]], [{}], [''], null, '', 'x', '1', 0, 1, true]) {
      expect(allows(schema, data), JSON.stringify(data)).toBe(false)
    }
  },
)

test.each(fields)('%s accepts no list, null, boolean or object', (_, schema) => {
  for (const data of [[], ['x'], null, true, {}, undefined]) {
    expect(allows(schema, data), JSON.stringify(data)).toBe(false)
  }
})

/** Collects the objects within a schema by path, from arktype's own description. */
function objectsIn(json: Json, path: string, found: Map<string, ObjectJson>): void {
  if (json === null || typeof json !== 'object') {
    if (json === 'object') found.set(path, {})
    return
  }
  if (Array.isArray(json)) {
    for (const [i, branch] of json.entries()) objectsIn(branch, `${path}|${i}`, found)
    return
  }
  const described = json as ObjectJson & { readonly [key: string]: Json }
  if (described.domain !== undefined && isObjectDomain(described.domain)) found.set(path, described)
  for (const { key, value } of [...(described.required ?? []), ...(described.optional ?? [])]) {
    objectsIn(value, `${path}.${key}`, found)
  }
  for (const { value } of described.index ?? []) objectsIn(value, `${path}[]`, found)
  if (described.sequence !== undefined) objectsIn(described.sequence, `${path}[]`, found)
}

interface ObjectJson {
  readonly undeclared?: string
  readonly required?: { readonly key: string; readonly value: Json }[]
  readonly optional?: { readonly key: string; readonly value: Json }[]
  readonly index?: { readonly value: Json }[]
  readonly predicate?: Json
}

const isObjectDomain = (domain: Json): boolean =>
  JSON.stringify(domain).startsWith('"object"') || (domain as { domain?: Json }).domain === 'object'

const nested = new Map<string, ObjectJson>()
for (const [name, schema] of declared) objectsIn(compiledType(schema).json as Json, name, nested)

test('every object within a message is closed', () => {
  expect(nested.size).toBeGreaterThan(100)
  const open = [...nested].filter(([, { undeclared }]) => undeclared !== 'reject')
  expect(open.map(([path]) => path).sort()).toEqual([
    'FunctionCatalog.functions[].arguments',
    'FunctionCatalog.functions[].returns',
    'OpenApiDocument',
    // value/plain-json checks the fields, which the Function declares.
    'PlainArguments',
    'TableCatalog.tables[].fields',
  ])
})

test('no object within a message accepts a list', () => {
  const lax = [...nested].filter(([, { required, predicate }]) => !required && !predicate)
  expect(lax.map(([path]) => path)).toEqual([])
  const { counters, ...report } = { ...REPORT }
  expect(allows(MetricsReport, { ...report, counters })).toBe(true)
  expect(allows(MetricsReport, { ...report, counters: [] })).toBe(false)
})

test('lengths count characters, in the schema as in its JSON Schema', () => {
  const { properties } = jsonSchemaOf(RefreshRequest) as { properties: Record<string, object> }
  expect(properties.refreshToken).toMatchObject({ type: 'string', maxLength: 256 })
  const character = fc.constantFrom('a', 'ü', '\u{1f600}', '\ud800')
  fc.assert(
    fc.property(fc.array(character, { minLength: 250, maxLength: 262 }), (characters) => {
      const refreshToken = characters.join('')
      expect(allows(RefreshRequest, { refreshToken })).toBe(Array.from(refreshToken).length <= 256)
    }),
  )
})

test('an object without required fields accepts no list in any position', () => {
  const outer = schema({
    'optional?': { 'one?': 'string', 'deep?': { 'two?': 'string' } },
    'record?': { '[string]': 'string' },
    'list?': 'string[]',
    'spread?': { '...': NO_FIELDS, 'three?': 'string' },
    'either?': [{ 'four?': 'string' }, '|', 'null'],
  })
  for (const good of [
    { optional: {}, record: {}, list: [], spread: {}, either: {} },
    { optional: { one: 'x', deep: {} }, record: { any: 'x' }, either: null },
  ]) {
    expect(violationsOf(outer, good)).toEqual([])
  }
  for (const bad of ['optional', 'record', 'spread']) {
    expect(violationsOf(outer, { [bad]: [] })).toEqual([`${bad}: an object`])
    expect(violationsOf(outer, { [bad]: ['x'] })).toEqual([`${bad}: an object`])
  }
  expect(violationsOf(outer, { optional: { deep: [] } })).toEqual(['optional.deep: an object'])
  expect(violationsOf(outer, { either: [] })).toHaveLength(1)
  expect(violationsOf(outer, [])).toEqual(['$: an object'])
})

const PROJECT = 'prj_01JZ0000000000000000000000'
const CALL = { version: 1, target: 'channel:production', function: 'f', arguments: null }
const ANSWER = {
  version: 1,
  status: 'ok',
  requestId: 'req_01JZ0000000000000000000000',
  releaseId: 'rel_01JZ0000000000000000000000',
  result: null,
}
const REPORT = {
  version: 1,
  collectedAtMicros: '1',
  processStartedAtMicros: '1',
  counters: { calls: '1' },
  gauges: {},
  histograms: {},
}
const scoped = (scope: unknown) => ({ scope, capabilities: [], source: 'managed' })

/** Received values may be secrets in the wrong field: no violation contains `hunter2`. */
const REJECTED: readonly (readonly [Schema<unknown>, unknown, readonly string[]])[] = [
  [ExchangeRequest, [], ['$: an object']],
  [ExchangeRequest, 'hunter2', ['$: an object']],
  [ExchangeRequest, { code: 1 }, ['code: a string']],
  [ExchangeRequest, { code: 'hunter2'.repeat(99) }, ['code: at most 256 characters']],
  [ExchangeRequest, { code: '', hunter2: 1, hunter: 2 }, ['$: no unknown field']],
  [ExchangeRequest, JSON.parse('{"code":"","__proto__":1}'), ['$: no unknown field']],
  [
    ExchangeRequest,
    { code: '', deviceName: '\n' },
    ['deviceName: 1 to 128 characters in NFC without control characters'],
  ],
  [CallRequest, { ...CALL, version: 2 }, ['version: 1']],
  [CallRequest, { version: 1, target: 'a', function: 'b' }, ['arguments: present']],
  [
    PromoteRequest,
    { releaseId: 'hunter2', expectedReleaseId: 'hunter2' },
    [
      'releaseId: a canonical rel_ identifier',
      'expectedReleaseId: a canonical rel_ identifier or "empty"',
    ],
  ],
  [
    InvitationRequest,
    { operatorName: 'a', role: 'hunter2', scope: {} },
    [
      'role: "developer", "observer", "operator" or "owner"',
      'scope.kind: "environment", "installation" or "project"',
    ],
  ],
  [
    GrantField,
    scoped({ kind: 'project', projectId: PROJECT, environmentId: 'hunter2' }),
    ['scope.environmentId: null'],
  ],
  [
    ManagedGrantsRequest,
    { sourceRevision: '0', grants: [{ scope: { kind: 'installation' }, role: 'owner' }] },
    [
      'grants[0].scope.kind: "environment" or "project"',
      'sourceRevision: a canonical unsigned 64-bit integer from 1 up',
    ],
  ],
  [ManagedGrantsRequest, { sourceRevision: 1, grants: 'hunter2'.repeat(99) }, ['grants: an array']],
  [
    CredentialRequest,
    {
      credentialId: 'crd_01JZ0000000000000000000000',
      name: 'a',
      scopes: Array(6).fill('query'),
      createdAtMicros: String(2n ** 63n),
      rateLimit: 0,
    },
    [
      'createdAtMicros: canonical decimal microseconds',
      'scopes: at most 5 entries',
      'rateLimit: at least 1',
    ],
  ],
  [HistoryQuery, { limit: '1001' }, ['limit: 1 to 1000, 100 where it is left out']],
  [Invoked, { ...ANSWER, metadata: { kind: 'action' } }, ['metadata.schedulesCreated: a string']],
  [
    MetricsReport,
    { version: 1, collectedAtMicros: '1', processStartedAtMicros: '1', counters: [], gauges: {} },
    ['counters: an object', 'histograms: an object'],
  ],
]

describe('a violation has the path and the rule', () => {
  test.each(REJECTED)('%#', (schema, data, expected) => {
    expect(violationsOf(schema, data)).toEqual(expected)
    expect(violationsOf(schema, data).join()).not.toContain('hunter')
  })

  test('a violation has a path below the path of the whole', () => {
    expect(violationsOf(HistoryQuery, { limit: '0' }, 'query')).toEqual([
      'query.limit: 1 to 1000, 100 where it is left out',
    ])
    expect(violationsOf(HistoryQuery, { hunter2: '0' }, 'query')).toEqual([
      'query: no unknown field',
    ])
  })

  test('a violation is reported at most 16 times', () => {
    const grants = Array(100).fill(null)
    const violations = violationsOf(ManagedGrantsRequest, { sourceRevision: 1, grants })
    expect(violations).toHaveLength(16)
    expect(violations.at(-1)).toBe('grants[15]: an object')
  })
})
