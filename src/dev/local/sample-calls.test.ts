import { expect, test } from 'vitest'
import { v, validatorJson } from '../../sdk/validators.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { plainToArguments } from '../../value/plain.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { compileValidator, type FieldsJson } from '../../value/validators.ts'
import { sampleCall, sampleCommand, sampleCurl } from './sample-calls.ts'

const ROOT = '/tmp/a root'

function manifest(name: string, more: Partial<FunctionManifest> = {}): FunctionManifest {
  return {
    name,
    kind: 'query',
    visibility: 'public',
    clients: ['public'],
    auth: 'none',
    errors: {},
    arguments: {},
    returns: { type: 'any' },
    ...more,
  }
}

const fields = (validators: Parameters<typeof v.object>[0]): FieldsJson => {
  const json = validatorJson(v.object(validators), 'fields')
  return json.type === 'object' ? json.fields : {}
}
const ID = fields({ channel: v.id('channels') })
const TEXT = fields({ text: v.string() })

test.each([
  ['a Query without arguments', 'b', [manifest('a', { arguments: TEXT }), manifest('b')]],
  ['a Query before a Mutation', 'b', [manifest('a', { kind: 'mutation' }), manifest('b')]],
  [
    'a Mutation before an Action',
    'b',
    [manifest('a', { kind: 'action' }), manifest('b', { kind: 'mutation', arguments: TEXT })],
  ],
  [
    'what needs no identity',
    'b',
    [manifest('a', { auth: 'user' }), manifest('b', { auth: 'optional' })],
  ],
  [
    'what a key may call',
    'c',
    [
      manifest('a', { visibility: 'internal', clients: [] }),
      manifest('b', { clients: [] }),
      manifest('c', { clients: ['confidential'] }),
    ],
  ],
  ['what needs no ID', 'b', [manifest('a', { arguments: ID }), manifest('b', { kind: 'action' })]],
])('the sample command calls %s', (_, name, functions) => {
  expect(sampleCommand(sampleCall(functions)!, ROOT)).toMatch(
    new RegExp(`^svc call ${name}(?: '.*')? --root '`),
  )
})

const CURL = { url: 'http://127.0.0.1:3210', target: 'channel:development', key: 'rk_pub_v1_x' }

test('the sample is a request of curl too, with the arguments as they are written', () => {
  const text = fields({ text: v.string({ minimumLength: 1 }) })
  const line = sampleCurl(sampleCall([manifest('notes.list', { arguments: text })])!, CURL)
  expect(line).toBe(
    "curl -sS http://127.0.0.1:3210/v1/functions/notes.list -H 'Content-Type: application/json' " +
      "-H 'X-Service-Key: rk_pub_v1_x' -H 'X-Service-Target: channel:development' " +
      '-d \'{"text":"text"}\'',
  )
})

test('there is no sample for curl if the Function leaves the type of an argument open', () => {
  const untyped = fields({ value: v.any() })
  expect(sampleCurl(sampleCall([manifest('a', { arguments: untyped })])!, CURL)).toBeNull()
})

test('there is no sample command if arguments cannot be made up', () => {
  const pattern = fields({ code: v.string({ pattern: /[A-Z]{3}/ }) })
  const long = fields({ text: v.string({ minimumLength: 300 }) })
  const functions = [ID, pattern, long].map((each) => manifest('a', { arguments: each }))
  expect(sampleCall(functions)).toBeNull()
  expect(sampleCall([])).toBeNull()
})

test('the arguments of the sample fit their validators', () => {
  const everything = fields({
    none: v.null(),
    flag: v.boolean(),
    few: v.int64({ minimum: -9n, maximum: -5n }),
    many: v.int64({ minimum: 9_007_199_254_740_993n }),
    share: v.float64({ maximum: 0.5 }),
    short: v.string({ maximumLength: 2 }),
    quote: v.literal("it's"),
    five: v.literal(5n),
    at: v.timestamp(),
    data: v.bytes(),
    tags: v.array(v.id('tags')),
    byName: v.record(v.int64()),
    inner: v.object({ long: v.string({ minimumLength: 9 }), more: v.optional(v.id('tags')) }),
    either: v.union(v.id('tags'), v.boolean()),
    owner: v.nullable(v.id('users')),
    any: v.any(),
    open: v.open(v.union(v.id('tags'), v.literal('a'))),
    byDefault: v.optional(v.id('tags')).default('tags_01ARZ3NDEKTSV4RRFFQ69G5FAV'),
  })
  const functions = ['a', 'b'].map((half, i) => {
    const entries = Object.entries(everything).filter((_, at) => at % 2 === i)
    return manifest(half, { arguments: Object.fromEntries(entries) })
  })
  for (const each of functions) {
    const line = sampleCommand(sampleCall([each])!, ROOT)
    const word = /^svc call [ab] '(.*)' --root '\/tmp\/a root'$/.exec(line)?.[1]
    const text = (word ?? '').replaceAll("'\\''", "'")
    const values = plainToArguments(parseStrictJson(text), each.arguments)
    const type = { type: 'object', fields: each.arguments } as const
    expect(() => compileValidator(type, { coerce: false })(values, '$')).not.toThrow()
  }
})
