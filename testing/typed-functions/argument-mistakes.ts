/**
 * Calls with arguments of the wrong type, in every entry that takes a reference and arguments. Each
 * mistake is made on its own, in otherwise correct arguments.
 */
import { v, validatorJson } from '../../src/sdk/validators.ts'
import type { FunctionManifest } from '../../src/value/manifest.ts'
import type { FieldsJson } from '../../src/value/validators.ts'

const FIELDS: FieldsJson = {
  body: { type: 'string' },
  file: { type: 'id', table: 'files' },
  kind: {
    type: 'union',
    members: [
      { type: 'literal', value: { string: 'text' } },
      { type: 'literal', value: { string: 'system' } },
    ],
  },
  nested: {
    type: 'object',
    fields: {
      to: { type: 'id', table: 'users' },
      tags: { type: 'array', items: { type: 'string' } },
    },
  },
}

const PAGE: FieldsJson = {
  cursor: { type: 'nullable', inner: { type: 'string' } },
  limit: { type: 'int64' },
}

function manifest(name: string, more: Partial<FunctionManifest>): FunctionManifest {
  return {
    name: `calls.${name}`,
    kind: 'query',
    visibility: 'public',
    clients: ['public'],
    auth: 'none',
    errors: {},
    arguments: FIELDS,
    returns: { type: 'int64' },
    ...more,
  }
}

/** The Functions that the calls name. */
export const CALLED: readonly FunctionManifest[] = [
  manifest('read', {}),
  manifest('write', { kind: 'mutation' }),
  manifest('act', { kind: 'action' }),
  manifest('grant', {
    kind: 'action',
    arguments: {},
    returns: validatorJson(v.uploadGrant(), 'returns'),
  }),
  manifest('list', {
    arguments: { ...FIELDS, ...PAGE },
    returns: {
      type: 'object',
      fields: {
        items: { type: 'array', items: { type: 'string' } },
        cursor: { type: 'nullable', inner: { type: 'string' } },
        done: { type: 'boolean' },
      },
    },
  }),
]

const GOOD = { body: "'a'", file: 'file', kind: "'text'", nested: "{ to: user, tags: ['a'] }" }

/** The fields that take the place of correct ones, by what is wrong with them. */
const MISTAKES: Readonly<Record<string, Partial<typeof GOOD>>> = {
  'text or null': { body: 'textOrNull' },
  'text or undefined': { body: 'textOrUndefined' },
  'null for an ID': { file: 'null' },
  'any text for a union of literals': { kind: 'text' },
  'another literal': { kind: "'image'" },
  'any text for an ID': { file: 'text' },
  'an ID of another table': { file: 'user' },
  'any text for a nested ID': { nested: "{ to: text, tags: ['a'] }" },
  'a nested item that may be null': { nested: '{ to: user, tags: [textOrNull] }' },
  'a nested field that is missing': { nested: '{ to: user }' },
  'a nested field that is unknown': { nested: "{ to: user, tags: ['a'], more: 1n }" },
}

/** Expressions with the place of the arguments. */
const CLIENT_ENTRIES = [
  'client.query(api.calls.read, ARGUMENTS)',
  'client.mutation(api.calls.write, ARGUMENTS)',
  'client.action(api.calls.act, ARGUMENTS)',
  'client.watch(api.calls.read, ARGUMENTS, (value: bigint) => value)',
  'client.observe(api.calls.read, ARGUMENTS)',
  'client.paginate(api.calls.list, ARGUMENTS, { pageSize: 5 })',
  'local.get(api.calls.read, ARGUMENTS)',
  'local.set(api.calls.read, ARGUMENTS, 5n)',
  'useQuery(api.calls.read, ARGUMENTS)',
  'useQuery(api.calls.read, ARGUMENTS, { suspense: true })',
  'useMutation(api.calls.write)(ARGUMENTS)',
  'useAction(api.calls.act)(ARGUMENTS)',
  'usePaginatedQuery(api.calls.list, ARGUMENTS, { pageSize: 5 })',
]
const FUNCTION_ENTRIES = [
  'ctx.runQuery(api.calls.read, ARGUMENTS)',
  'ctx.runMutation(api.calls.write, ARGUMENTS)',
  'ctx.runAction(api.calls.act, ARGUMENTS)',
  'writing.runQuery(api.calls.read, ARGUMENTS)',
  'writing.runMutation(api.calls.write, ARGUMENTS)',
  'ctx.scheduler.runAfter({ seconds: 1 }, api.calls.write, ARGUMENTS)',
  'ctx.scheduler.runAt(5n, api.calls.act, ARGUMENTS)',
  'cronJobs({ a: { every: { hours: 1 }, function: api.calls.write, arguments: ARGUMENTS } })',
  'backend.query(api.calls.read, ARGUMENTS)',
  'backend.mutation(api.calls.write, ARGUMENTS)',
  'backend.action(api.calls.act, ARGUMENTS)',
]

const VALUES = `
import type { Id } from './api'
import { api } from './api'
declare const text: string
declare const textOrNull: string | null
declare const textOrUndefined: string | undefined
declare const file: Id<'files'>
declare const user: Id<'users'>
`

function argumentsText(fields: typeof GOOD): string {
  return `{ ${Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')} }`
}

/** Each entry once with correct arguments and once with each mistake, one call a line. */
function callsOf(entries: readonly string[]): string {
  const wrong = Object.entries(MISTAKES).map(([what, fields]): [string, string] => [
    what,
    argumentsText({ ...GOOD, ...fields }),
  ])
  const whole: [string, string][] = [
    ['null for all arguments', 'null'],
    ['undefined for all arguments', 'undefined'],
  ]
  return entries
    .flatMap((entry) => [
      `void ${entry.replace('ARGUMENTS', argumentsText(GOOD))}`,
      ...[...wrong, ...whole].flatMap(([what, args]) => [
        `// @ts-expect-error ${what}`,
        `void ${entry.replace('ARGUMENTS', args)}`,
      ]),
    ])
    .join('\n')
}

/** The calls of an application. */
export const CLIENT_CALLS = `${VALUES}
import type { Client, LocalValues } from 'svc/client'
import { useAction, useMutation, usePaginatedQuery, useQuery } from 'svc/react'
declare const client: Client
declare const local: LocalValues
${callsOf(CLIENT_ENTRIES)}
export function Skipping() {
  const args = text === '' ? 'skip' : ${argumentsText(GOOD)}
  // @ts-expect-error the kind was widened to any text
  useQuery(api.calls.read, args)
  return useQuery(api.calls.read, text === '' ? 'skip' : ${argumentsText(GOOD)})
}
export async function uploads() {
  const grant = await client.action(api.calls.grant)
  const stored = await client.upload(grant, new Uint8Array(1))
  await client.mutation(api.calls.write, ${argumentsText({ ...GOOD, file: 'stored.fileId' })})
  // @ts-expect-error the ID of the grant
  await client.mutation(api.calls.write, ${argumentsText({ ...GOOD, file: 'stored.uploadId' })})
}
`

/** The calls of Functions and of their tests. */
export const FUNCTION_CALLS = `${VALUES}
import { type ActionContext, cronJobs, type MutationContext } from 'svc'
import type { TestEnvironment } from 'svc/test'
declare const ctx: ActionContext
declare const writing: MutationContext
declare const backend: TestEnvironment
${callsOf(FUNCTION_ENTRIES)}
`
