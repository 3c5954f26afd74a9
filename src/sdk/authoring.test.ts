import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Json } from '../value/strict-json.ts'
import { parseFields, parseValidator } from '../value/validator-json.ts'
import * as authoring from './authoring.ts'
import type { FunctionDefinition } from './functions.ts'
import type { SchemaDefinition } from './schemas.ts'
import type { ValidatorDefinition } from './validators.ts'

const { action, defineSchema, internalAction, internalMutation, internalQuery } = authoring
const { mutation, query, table, v } = authoring

const jsonOf = (validator: ValidatorDefinition) =>
  (validator as unknown as { [key: symbol]: unknown })[Symbol.for('svc.validator')]
const functionOf = (definition: FunctionDefinition) =>
  (definition as unknown as { [key: symbol]: Record<string, unknown> })[Symbol.for('svc.function')]!
const schemaOf = (schema: SchemaDefinition) =>
  (schema as unknown as { [key: symbol]: { tables: unknown } })[Symbol.for('svc.schema')]!

test('the types declare exactly the values that the module exports', () => {
  const types = readFileSync(join(import.meta.dirname, 'svc.d.ts'), 'utf8')
  const declared = [...types.matchAll(/^export declare (?:function|const|class) (\w+)/gm)]
  const names = Object.keys(authoring).filter((name) => !name.startsWith('__'))
  expect(declared.map((match) => match[1]).sort()).toEqual(names.sort())
  const builder = types.slice(types.indexOf('export declare const v: {'))
  const methods = [...builder.slice(0, builder.indexOf('\n}')).matchAll(/^ {2}(\w+)[(<]/gm)]
  expect(methods.map((match) => match[1]).sort()).toEqual(Object.keys(v).sort())
})

test('every validator is plain data that a manifest accepts', () => {
  const validators = {
    null: v.null(),
    boolean: v.boolean(),
    int64: v.int64({ minimum: -5n, maximum: 2n ** 63n - 1n }),
    float64: v.float64({ minimum: -0, maximum: 0.5 }),
    string: v.string({ minimumLength: 1, maximumLength: 4000 }),
    pattern: v.string({ maximumLength: 9, pattern: /^[a-z]+(\/\d{2})?$/u }),
    bytes: v.bytes({ maximumLength: 10 }),
    timestamp: v.timestamp(),
    id: v.id('messages'),
    literal: v.union(v.literal('text'), v.literal(true), v.literal(-5n)),
    array: v.array(v.string(), { maximumItems: 3 }),
    object: v.object({ a: v.optional(v.nullable(v.any())) }),
    record: v.record(v.int64(), { maximumItems: 3 }),
    open: v.open(v.union(v.literal('a'), v.object({ b: v.string() }))),
    defaults: v.object({ a: v.optional(v.string()).default('x'), b: v.optional(v.any()) }),
    uploadGrant: v.uploadGrant(),
    downloadGrant: v.downloadGrant(),
    downloadUrl: v.downloadUrl(),
    httpDelivery: v.httpDelivery(),
    httpResponse: v.httpResponse(),
  }
  for (const validator of Object.values(validators)) {
    const json = jsonOf(validator)
    expect(JSON.parse(JSON.stringify(json))).toEqual(json)
    expect(parseValidator(JSON.parse(JSON.stringify(json)))).toEqual(json)
  }
  expect(jsonOf(validators.int64)).toEqual({
    type: 'int64',
    minimum: '-5',
    maximum: '9223372036854775807',
  })
  expect(jsonOf(validators.float64)).toEqual({ type: 'float64', minimum: 0, maximum: 0.5 })
  expect(jsonOf(validators.pattern)).toEqual({
    type: 'string',
    maximumLength: 9,
    pattern: '^[a-z]+(\\/\\d{2})?$',
  })
  expect(jsonOf(v.string({ maximumLength: undefined }))).toEqual({ type: 'string' })
  const fields = ['path', 'token', 'expiresAt']
  expect(jsonOf(v.downloadGrant())).toMatchObject({ fields: { expiresAt: { type: 'timestamp' } } })
  const namesOf = (grant: unknown) => Object.keys((grant as { fields: object }).fields)
  expect(namesOf(jsonOf(v.downloadGrant()))).toEqual(fields)
  expect(namesOf(jsonOf(v.downloadUrl()))).toEqual(['path', 'expiresAt'])
  expect(namesOf(jsonOf(v.uploadGrant()))).toEqual([...fields, 'uploadId', 'maximumBytes'])
})

test('a default is the stored JSON of its declared type, with the defaults inside it', () => {
  const id = 'messages_01ARZ3NDEKTSV4RRFFQ69G5FAV'
  const inner = v.object({ a: v.optional(v.int64()).default(1n), b: v.optional(v.boolean()) })
  const cases: [ValidatorDefinition, unknown, unknown][] = [
    [v.int64(), -5n, { $i: '-5' }],
    [v.timestamp(), 5n, { $t: '5' }],
    [v.id('messages'), id, { $d: id }],
    [v.string(), id, id],
    [v.bytes(), Uint8Array.of(1, 2), { $b: 'AQI' }],
    [v.float64(), -0, 0],
    [v.nullable(v.string()), null, null],
    [v.array(v.timestamp()), [5n], [{ $t: '5' }]],
    [inner, {}, { a: { $i: '1' } }],
    [inner, { a: 2n, b: undefined }, { a: { $i: '2' } }],
    [v.record(v.any()), { $x: 1, n: 1n }, { $$x: 1, n: { $i: '1' } }],
    [v.open(v.union(v.literal('a'))), 'a', 'a'],
  ]
  for (const [validator, given, stored] of cases) {
    const json = jsonOf(v.optional(validator).default(given))
    expect(json).toEqual({ type: 'optional', inner: jsonOf(validator), default: stored })
    expect(parseFields({ field: json as Json })).toEqual({ field: json })
  }
})

test('a table without defaults and open unions has the manifest that it always had', () => {
  const text = JSON.stringify(schemaOf(defineSchema({ a: table({ b: v.optional(v.string()) }) })))
  const fields = '{"b":{"type":"optional","inner":{"type":"string"}}}'
  expect(text).toBe(`{"tables":{"a":{"fields":${fields},"indexes":[]}}}`)
})

test('a Function definition has its declared fields, with sorted clients', () => {
  const handler = () => null
  const send = mutation({
    clients: ['public', 'confidential'],
    arguments: { body: v.string(), topic: v.optional(v.string()) },
    returns: v.id('messages'),
    errors: { CHANNEL_ARCHIVED: 'conflict' },
    handler,
  })
  expect(functionOf(send)).toEqual({
    kind: 'mutation',
    visibility: 'public',
    clients: ['confidential', 'public'],
    auth: 'none',
    arguments: {
      body: { type: 'string' },
      topic: { type: 'optional', inner: { type: 'string' } },
    },
    returns: { type: 'id', table: 'messages' },
    errors: { CHANNEL_ARCHIVED: 'conflict' },
    handler,
  })
  expect(functionOf(internalQuery({ handler }))).toEqual({
    kind: 'query',
    visibility: 'internal',
    clients: [],
    auth: 'none',
    arguments: {},
    returns: { type: 'any' },
    errors: {},
    handler,
  })
  expect(functionOf(internalMutation({ handler })).visibility).toBe('internal')
  expect(functionOf(query({ handler })).kind).toBe('query')
})

test('a schema has its tables, with indexes sorted by name', () => {
  const messages = table({ channel: v.id('channels'), author: v.string() })
  const schema = defineSchema({
    channels: table({ name: v.string() }).unique('byName', ['name']),
    messages: messages.index('byChannel', ['channel']).index('byAuthor', ['author', 'channel']),
  })
  expect(schemaOf(schema).tables).toEqual({
    channels: {
      fields: { name: { type: 'string' } },
      indexes: [{ name: 'byName', fields: ['name'], unique: true }],
    },
    messages: {
      fields: { channel: { type: 'id', table: 'channels' }, author: { type: 'string' } },
      indexes: [
        { name: 'byAuthor', fields: ['author', 'channel'], unique: false },
        { name: 'byChannel', fields: ['channel'], unique: false },
      ],
    },
  })
  expect(jsonOf(schema.document('channels'))).toEqual({
    type: 'object',
    fields: {
      _id: { type: 'id', table: 'channels' },
      _createdAt: { type: 'timestamp' },
      _revision: { type: 'int64' },
      name: { type: 'string' },
    },
  })
})

const handler = () => null
type UnknownBuilders = Readonly<Record<'number' | 'date', () => unknown>>
const uncalledBuilder = v.string as unknown as ValidatorDefinition
const fields = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, v.string()]))
const hosts = (count: number) => Array.from({ length: count }, (_, i) => `h${i}.test`)
const names = (count: number) => Object.keys(fields(count))
const optionalString = v.optional(v.string())
const endless: { self?: object } = {}
endless.self = endless
const manyIndexes = () =>
  names(65).reduce((each, name) => each.index(name, ['f0']), table(fields(1)))

/** A declaration, the problem that its message names, and a part of the fix. */
const SECOND = { seconds: 1 }
const retrying = (retry: object) =>
  action({ retry: { maximumAttempts: 3, backoff: { initial: SECOND }, ...retry }, handler })

const MISTAKES: readonly [() => unknown, problem: string, fix: string][] = [
  [
    () => (v as unknown as UnknownBuilders).number(),
    'v has no "number"',
    'v.float64(), or v.int64()',
  ],
  [() => (v as unknown as UnknownBuilders).date(), 'v has no "date"', '"timestamp"'],
  [() => v.array(uncalledBuilder), 'v.array(...) items is a function', 'Call it, as in v.string()'],
  [() => v.object({ a: { b: v.string() } }), 'v.object(...).a is an object', 'v.object({ ... })'],
  [() => v.object({ a: [v.string()] }), 'v.object(...).a is an array', 'v.array(...)'],
  [() => v.object({ a: 'text' }), 'v.object(...).a is a string', 'v.literal(...)'],
  [() => v.object({ a: undefined }), 'v.object(...).a is undefined', 'in a circle'],
  [() => v.object({ a: null }), 'v.object(...).a is null', 'v.null()'],
  [() => v.object(JSON.parse('{"__proto__":1}')), 'has a field "__proto__"', 'another name'],
  [() => v.object(undefined), 'v.object(...) is undefined', '{ name: v.string() }'],
  [() => v.array(v.optional(v.string())), 'v.array(...) items is optional', 'v.nullable(...)'],
  [() => v.optional(v.optional(v.string())), 'v.optional(...) is optional', 'v.nullable(...)'],
  [() => v.union(), 'v.union() has no members', 'at least one'],
  [() => v.union([v.string()]), 'is given an array', 'one by one'],
  [() => v.union(v.string(), 5), 'v.union(...) member 2 is a number', 'v.literal(...)'],
  [() => v.literal(5), 'v.literal(...) is given a number', 'v.literal(5n)'],
  [() => v.literal(null), 'v.literal(...) is given null', 'v.null()'],
  [() => v.literal(2n ** 63n), 'does not fit in 64 bits', '2n ** 63n'],
  [() => v.literal('\ud800'), 'half of a surrogate pair', 'whole text'],
  [() => v.int64({ minimum: 0 }), 'v.int64 minimum is a number', '0n'],
  [() => v.int64({ minimum: 2n, maximum: 1n }), 'so that no value fits', 'Exchange'],
  [() => v.float64({ maximum: Infinity }), 'v.float64 maximum is not a finite number', '0.5'],
  [() => v.string({ max: 5 }), 'v.string has no option "max"', '"maximumLength"'],
  [() => v.string({ maximumLength: -1 }), 'v.string maximumLength is not a count', '100'],
  [() => v.string(5 as never), 'v.string takes its bounds as an object', '{ minimumLength: ... }'],
  [() => v.string({ pattern: 'a' }), 'pattern is a string, not a regular', '/^[a-z0-9-]+$/'],
  [() => v.string({ pattern: /a/i }), 'v.string pattern has the flag "i"', '[A-Za-z]'],
  [() => v.string({ pattern: /a/gu }), 'v.string pattern has the flag "g"', 'Leave it out'],
  [() => v.string({ pattern: /a(?=b)/ }), 'has a look-ahead at character 2', 'the handler'],
  [() => v.string({ pattern: /a]/ }), 'has a "]" that means nothing', 'Write \\]'],
  [() => v.bytes({ minimumLength: 1 }), 'v.bytes has no option "minimumLength"', 'maximumLength'],
  [() => v.string().default('a'), 'not optional has a default', 'v.optional(...).default(...)'],
  [() => v.optional(v.string().default('a')), 'not optional has a default', 'v.optional(...)'],
  [() => v.optional(v.string()).default('a').default('b'), 'has two defaults', 'Remove one'],
  [() => v.array(v.optional(v.string()).default('a')), 'items is optional', 'v.nullable(...)'],
  [() => optionalString.default(5), 'does not fit its validator, which wants a string', 'accepts'],
  [
    () => v.optional(v.object({ a: v.array(v.int64()) })).default({ a: [1n, 2] }),
    'wants an int64 (a bigint such as 5n) at $.a[1]',
    'Write a value',
  ],
  [
    () => v.optional(v.object({})).default({ a: 1n }),
    'wants no undeclared field at $.a',
    'accepts',
  ],
  [() => optionalString.default(undefined), 'is undefined', 'Leave .default(...) out'],
  [() => optionalString.default(() => 'a'), 'has a function, which cannot be stored', 'Use null'],
  [() => v.optional(v.any()).default({ a: [new Date(0)] }), 'a class at $.a[0]', 'plain objects'],
  [() => v.optional(v.any()).default(Number.NaN), 'a number that is not finite', 'finite numbers'],
  [() => v.optional(v.any()).default(2n ** 63n), 'has more than 64 bits', 'Use null'],
  [() => v.optional(v.any()).default('\ud800'), 'half of a surrogate pair', 'Use null'],
  [() => v.optional(v.any()).default(JSON.parse('{"__proto__":1}')), 'a key no value has', 'Use'],
  [() => v.optional(v.any()).default(endless), 'inside itself, or too deep', 'plain objects'],
  [() => optionalString.default('x'.repeat(8_191)), '8193 characters of JSON', 'at most 8192'],
  [
    () => v.optional(v.open(v.union(v.literal('a')))).default({ unknown: true }),
    'does not fit',
    'accepts',
  ],
  [() => v.open(v.string()), 'v.open(...) is given v.string(...)', 'v.open(v.union(...))'],
  [() => v.open(v.open(v.union(v.string()))), 'is given v.open(...)', 'v.open(v.union(...))'],
  [() => v.open(v.literal('a'), v.literal('b')), 'is given 2 arguments', 'v.open(v.union(...))'],
  [() => v.open(), 'v.open(...) is given 0 arguments', 'with one union'],
  [() => v.open(v.union(v.any())), 'has a member that accepts { unknown: true }', 'Narrow'],
  [() => v.union(v.null(), v.open(v.union(v.string()))), 'member 2 is an open union', 'around all'],
  [() => v.union(v.nullable(v.open(v.union(v.string())))), 'member 1 is an open union', 'around'],
  [() => v.id('Messages'), 'v.id(...) is given "Messages"', 'v.id("messages")'],
  [() => v.id(undefined), 'v.id(...) is given undefined', 'v.id("messages")'],

  [() => table(v.object({})), 'table(...) is a validator', 'without v.object'],
  [() => table({ _id: v.string() }), 'table(...) has a field "_id"', 'belong to svc'],
  [() => table({ 'a-b': v.string() }), 'table(...) has a field "a-b"', 'letters, digits'],
  [() => table(fields(1)).index('by name', ['f0']), 'named "by name"', '"byChannel"'],
  [() => table(fields(1)).index('a', ['f0']).unique('a', ['f0']), 'declared twice', 'Rename'],
  [() => table(fields(1)).index('a', []), 'Index "a" has no fields', '["channel", "author"]'],
  [() => table(fields(1)).index('a', 'f0' as never), 'Index "a" has no fields', 'List them'],
  [() => table(fields(2)).index('a', ['f2']), '"f2", which is not a field', 'Use "f0" or "f1"'],
  [() => table(fields(2)).index('a', ['f0', 'f0']), 'lists "f0" twice', 'once'],
  [() => table(fields(2)).index('a', ['f0', '_createdAt']), '"_createdAt"', 'order of creation'],
  [() => table(fields(17)).index('a', names(17)), 'has 17 fields', 'at most 16'],
  [manyIndexes, 'is one index too many', 'at most 64'],
  [() => defineSchema([]), 'defineSchema(...) is given an array', 'messages: table({ ... })'],
  [() => defineSchema({ files: table({}) }), '"files" is reserved', 'another name'],
  [() => defineSchema({ Messages: table({}) }), '"Messages" is not a name', 'lower-case'],
  [() => defineSchema({ messages: {} }), '"messages" is an object, not a table', 'table({ ... })'],
  [
    () => defineSchema({ a: table({ b: v.array(v.object({ c: v.id('d') })) }) }),
    'Field a.b[].c is an ID of "d", which is not a table',
    'Use "a"',
  ],
  [
    () => defineSchema({ a: table({ b: v.open(v.union(v.id('d'))) }) }),
    'Field a.b is an ID of "d", which is not a table',
    'Use "a"',
  ],
  [() => defineSchema({ a: table({}) }).document('b'), 'is given "b"', 'Use "a"'],
  [() => defineSchema({ a: table({}) }).document('toString'), 'is given "toString"', 'Use "a"'],

  [() => query(handler), 'query(...) is given a function', 'handler: ...'],
  [() => query({}), 'query(...) has no handler', 'async (ctx, args)'],
  [() => mutation({ handler: {} }), 'mutation(...) has an object as its handler', 'handler:'],
  [() => query({ args: {}, handler }), 'query(...) has no option "args"', '"arguments"'],
  [() => internalQuery({ clients: [], handler }), 'has clients', 'query(...)'],
  [() => query({ auth: 'admin', handler }), 'auth is "admin"', '"service"'],
  [() => query({ auth: null, handler }), 'auth is null', '"service"'],
  [() => query({ clients: 'public', handler }), 'clients is a string', '["public"]'],
  [() => query({ clients: ['publc'], handler }), 'lists "publc"', '"confidential"'],
  [() => query({ clients: ['public', 'public'], handler }), '"public" twice', 'once'],
  [() => query({ arguments: v.object({}), handler }), 'arguments is a validator', 'v.object'],
  [() => query({ arguments: { a: String }, handler }), 'arguments.a is a function', 'Call it'],
  [() => query({ returns: { a: v.string() }, handler }), 'returns is an object', 'v.object'],
  [() => query({ returns: v.optional(v.string()), handler }), 'is optional', 'v.nullable'],
  [() => query({ errors: ['X'], handler }), 'errors is an array', 'CHANNEL_ARCHIVED'],
  [() => query({ errors: { notFound: 'invalid' }, handler }), '"notFound"', 'upper-case'],
  [() => query({ errors: { APP_X: 'invalid' }, handler }), '"APP_X"', 'Write X:'],
  [() => query({ errors: { X: 'missing' }, handler }), 'X "missing"', '"not_found"'],
  [() => query({ uses: {}, handler }), 'query(...) has uses', 'action(...)'],
  [() => internalAction({ clients: [], handler }), 'internalAction(...) has clients', 'action'],
  [() => query({ retry: {}, handler }), 'query(...) has retry', 'Leave retry out'],
  [() => query({ compress: 'no', handler }), 'query(...) compress is', 'Use false'],
  [
    () => mutation({ compress: false, handler }),
    'mutation(...) has compress',
    'Leave compress out',
  ],
  [() => internalQuery({ compress: false, handler }), 'internalQuery(...) has', 'Leave compress'],
  [() => action({ retry: { maximumAttempts: 3 }, handler }), 'retry is incomplete', 'initial'],
  [() => retrying({ maximumAttempts: 1 }), 'retry.maximumAttempts', 'from 2 to 100'],
  [() => retrying({ backoff: { initial: {} } }), 'backoff.initial is not a pause', 'seconds'],
  [() => retrying({ backoff: { initial: SECOND, factor: 0.5 } }), 'is not a factor', '1 to 100'],
  [() => retrying({ backoff: { initial: SECOND, maximum: { days: 2 } } }), 'maximum', '1 day'],
  [() => action({ uses: ['a.b'], handler }), 'uses is an array', '{ network:'],
  [() => action({ uses: { hosts: [] }, handler }), 'uses has no option "hosts"', '"network"'],
  [() => action({ uses: { network: 'a.b' }, handler }), 'network is a string', 'list'],
  ...[
    'https://a.b',
    'A.b',
    'a.b/',
    'a.b:0',
    'a.b:65536',
    '10.0.0.1',
    '*.b',
    'a..b',
    '-a.b',
    '',
  ].map((host): [() => unknown, string, string] => [
    () => action({ uses: { network: [host] }, handler }),
    `network lists "${host}"`,
    'lower-case host',
  ]),
  ...(
    [
      ['127.0.0.1:9', 'which is an IP address'],
      ['[::1]:9', 'which is an IP address'],
      ['a.b:65536', 'whose port is not from 1 to 65535'],
      ['https://a.b', 'which is more than a host'],
    ] as const
  ).map(([host, part]): [() => unknown, string, string] => [
    () => action({ uses: { network: [host] }, handler }),
    `network lists "${host}", ${part}`,
    'lower-case host',
  ]),
  [() => action({ uses: { network: ['a.b', 'a.b'] }, handler }), '"a.b" twice', 'once'],
  [() => action({ uses: { secrets: ['key'] }, handler }), 'secrets lists "key"', 'upper-case'],
  [() => action({ uses: { network: hosts(65) }, handler }), 'lists 65 names', 'at most 64'],
]

test.each(MISTAKES)(
  'a mistake in a definition throws an error that names the problem and the fix: %s',
  (declare, problem, fix) => {
    let thrown: unknown
    try {
      declare()
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ name: 'DefinitionError' })
    expect((thrown as Error).message).toContain(problem)
    expect((thrown as Error).message.split(problem)[1]).toContain(fix)
  },
)

test('an Action definition has its attempts and pauses in milliseconds', () => {
  const backoff = { initialMillis: 1_000, factor: 2, maximumMillis: 3_600_000 }
  expect(functionOf(retrying({})).retry).toEqual({ maximumAttempts: 3, backoff })
})

test('an Action definition has its hosts and secrets, sorted', () => {
  const uses = { network: ['localhost:8080', 'api.test'], secrets: ['B', 'A_1'] }
  expect(functionOf(action({ uses, handler }))).toMatchObject({
    kind: 'action',
    uses: { network: ['api.test', 'localhost:8080'], secrets: ['A_1', 'B'] },
  })
  expect(functionOf(internalAction({ handler }))).toMatchObject({
    visibility: 'internal',
    uses: { network: [], secrets: [] },
  })
  expect(functionOf(query({ handler }))).not.toHaveProperty('uses')
})

test('adding an index returns a new table and leaves the old one unchanged', () => {
  const plain = table({ a: v.string() })
  plain.index('byA', ['a'])
  expect(schemaOf(defineSchema({ plain })).tables).toEqual({
    plain: { fields: { a: { type: 'string' } }, indexes: [] },
  })
  expect(parseFields({ a: { type: 'string' } })).toEqual({ a: { type: 'string' } })
})
