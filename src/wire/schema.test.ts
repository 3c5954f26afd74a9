import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { isFault } from '../errors/fault.ts'
import { GrantField, InvitationRequest } from './access.ts'
import { CredentialRequest } from './application-clients.ts'
import { ExchangeRequest } from './auth.ts'
import { PromoteRequest } from './channels.ts'
import { HistoryQuery } from './configuration.ts'
import { CallRequest, Invoked } from './invocations.ts'
import { MetricsReport } from './metrics.ts'
import { ManagedGrantsRequest } from './oidc.ts'
import { compiled, isSchema, read, type Schema } from './schema.ts'

const files = readdirSync(import.meta.dirname).filter((name) => /^[a-z-]+\.ts$/.test(name))
const modules = await Promise.all(
  files.map((file): Promise<Record<string, unknown>> => {
    return import(new URL(file, import.meta.url).href)
  }),
)
const declared = modules
  .flatMap((exported) => Object.entries(exported))
  .filter((entry): entry is [string, Schema<unknown>] => isSchema(entry[1]))
const allows = (schema: Schema<unknown>, data: unknown): boolean => schema.safeParse(data).success

/** Messages, and the fields that several of them share. */
const isMessage = (schema: z.core.$ZodType): boolean =>
  schema instanceof z.ZodUnion ? schema.options.every(isMessage) : schema instanceof z.ZodObject
const objects = declared.filter(([, schema]) => isMessage(schema))
const fields = declared.filter(([, schema]) => !isMessage(schema))

test('the exports that are messages are found', () => {
  const names = objects.map(([name]) => name)
  expect(names).toEqual(expect.arrayContaining(['OidcLoginRequest', 'Login', 'AuditPage']))
  expect(names.length).toBeGreaterThan(40)
  expect(fields.map(([name]) => name)).toEqual(expect.arrayContaining(['ChannelName', 'U64']))
})

test.each(objects)('%s is an object: no list, null, text, number or boolean', (_, schema) => {
  for (const data of [[], [[]], [{}], [''], null, '', 'x', '1', 0, 1, true]) {
    expect(allows(schema, data), JSON.stringify(data)).toBe(false)
  }
})

test.each(fields)('%s is one value: no list, null, boolean or object', (_, schema) => {
  for (const data of [[], ['x'], null, true, {}, undefined]) {
    expect(allows(schema, data), JSON.stringify(data)).toBe(false)
  }
})

/** Whatever stands inside: the one object that is open is a description of others. */
function everyObject(schema: z.core.$ZodType, path: string, found: Map<string, z.ZodObject>): void {
  if (schema instanceof z.ZodObject) {
    found.set(path, schema)
    for (const [name, field] of Object.entries(schema.shape)) {
      everyObject(field, `${path}.${name}`, found)
    }
  } else if (schema instanceof z.ZodUnion) {
    schema.options.forEach((each, i) => {
      everyObject(each, `${path}|${i}`, found)
    })
  } else if (schema instanceof z.ZodArray) {
    everyObject(schema.element, `${path}[]`, found)
  } else if (schema instanceof z.ZodRecord) {
    everyObject(schema.valueType, `${path}[]`, found)
  } else if (schema instanceof z.ZodNullable || schema instanceof z.ZodExactOptional) {
    everyObject(schema.unwrap(), path, found)
  }
}

test('every object inside of a message is closed', () => {
  const found = new Map<string, z.ZodObject>()
  for (const [name, schema] of declared) everyObject(schema, name, found)
  expect(found.size).toBeGreaterThan(100)
  const open = [...found].filter(([, { def }]) => !(def.catchall instanceof z.ZodNever))
  expect(open.map(([path]) => path).sort()).toEqual([
    'FunctionCatalog.functions[].arguments',
    'FunctionCatalog.functions[].returns',
    'OpenApiDocument',
  ])
})

const violationsOf = (schema: Schema<unknown>, data: unknown, at?: string): string[] => {
  try {
    read(schema, data, 'PLATFORM_REQUEST_INVALID', at)
    return []
  } catch (error) {
    if (!isFault(error)) throw error
    return error.violations.map(({ path, rule }) => `${path}: ${rule}`)
  }
}

const PROJECT = 'prj_01JZ0000000000000000000000'
const CALL = { version: 1, target: 'channel:production', function: 'f', arguments: null }
const ANSWER = {
  version: 1,
  status: 'ok',
  requestId: 'req_01JZ0000000000000000000000',
  releaseId: 'rel_01JZ0000000000000000000000',
  result: null,
}
const scoped = (scope: unknown) => ({ scope, capabilities: [], source: 'managed' })

/** What is received may be a secret in the wrong place: `hunter2` is in no violation. */
const REFUSED: readonly (readonly [Schema<unknown>, unknown, readonly string[]])[] = [
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
      'expectedReleaseId: "empty" or a canonical rel_ identifier',
    ],
  ],
  [
    InvitationRequest,
    { operatorName: 'a', role: 'hunter2', scope: {} },
    [
      'role: one of "owner", "operator", "developer", "observer"',
      'scope.kind: one of "installation", "project", "environment"',
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
      'sourceRevision: a canonical unsigned 64-bit integer from 1 up',
      'grants[0].scope.kind: one of "project", "environment"',
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
      'scopes: at most 5 entries',
      'createdAtMicros: canonical decimal microseconds',
      'rateLimit: at least 1',
    ],
  ],
  [HistoryQuery, { limit: '1001' }, ['limit: 1 to 1000, 100 where it is left out']],
  [
    Invoked,
    { ...ANSWER, metadata: { kind: 'action' } },
    ['metadata.schedulesCreated: a canonical unsigned 64-bit integer'],
  ],
  [
    MetricsReport,
    { version: 1, collectedAtMicros: '1', processStartedAtMicros: '1', counters: [], gauges: {} },
    ['counters: an object', 'histograms: an object'],
  ],
]

describe('what is refused is told by its place and the rule', () => {
  test.each(REFUSED)('%#', (schema, data, expected) => {
    expect(violationsOf(schema, data)).toEqual(expected)
    expect(violationsOf(compiled(schema), data)).toEqual(expected)
  })

  test('below the place that the whole has', () => {
    expect(violationsOf(HistoryQuery, { limit: '0' }, 'query')).toEqual([
      'query.limit: 1 to 1000, 100 where it is left out',
    ])
    expect(violationsOf(HistoryQuery, { hunter2: '0' }, 'query')).toEqual([
      'query: no unknown field',
    ])
  })

  test('16 times at most', () => {
    const grants = Array(100).fill(null)
    const violations = violationsOf(ManagedGrantsRequest, { sourceRevision: 1, grants })
    expect(violations).toHaveLength(16)
    expect(violations.at(-1)).toBe('grants[15]: an object')
  })
})
