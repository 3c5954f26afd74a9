import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CRON_MISTAKES } from '../../../testing/typed-functions/cron-mistakes.ts'
import { EVOLUTION } from '../../../testing/typed-functions/evolution.ts'
import { HTTP_MISTAKES } from '../../../testing/typed-functions/http-mistakes.ts'
import { MIGRATION_MISTAKES } from '../../../testing/typed-functions/migration-mistakes.ts'
import { MISTAKES } from '../../../testing/typed-functions/mistakes.ts'
import { STORAGE_MISTAKES } from '../../../testing/typed-functions/storage-mistakes.ts'
import { TEST_KIT_MISTAKES } from '../../../testing/typed-functions/test-kit-mistakes.ts'
import { SDK_TEXTS } from '../../sdk/embedded.generated.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { ValidatorJson } from '../../value/validators.ts'
import { writeWorkspace } from '../new-workspaces.ts'
import { generateFiles, typeText } from './codegen.ts'

const TSC = join(import.meta.dirname, '../../../node_modules/typescript/bin/tsc')
let root = ''
let chat = ''

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-types-'))
  chat = join(root, 'chat')
  writeWorkspace(chat, { name: 'Chat' })
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Returns the errors of the compiler for a directory. */
function compile(directory: string, ...options: readonly string[]): string {
  const { stdout, stderr } = spawnSync(TSC, ['-p', directory, ...options], { encoding: 'utf8' })
  return stdout + stderr
}

const BLUE = { type: 'literal', value: { string: 'blue' } } as const
const OPEN = { type: 'open', inner: { type: 'union', members: [BLUE] } } as const
const TYPES: readonly [ValidatorJson, string][] = [
  [{ type: 'null' }, 'null'],
  [{ type: 'boolean' }, 'boolean'],
  [{ type: 'int64', minimum: '0' }, 'bigint'],
  [{ type: 'timestamp' }, 'bigint'],
  [{ type: 'float64' }, 'number'],
  [{ type: 'string', maximumLength: 3 }, 'string'],
  [{ type: 'bytes' }, 'Uint8Array'],
  [{ type: 'any' }, 'unknown'],
  [{ type: 'id', table: 'messages' }, "Id<'messages'>"],
  [{ type: 'literal', value: { string: 'a"\n' } }, '"a\\"\\n"'],
  [{ type: 'literal', value: { boolean: false } }, 'false'],
  [{ type: 'literal', value: { int64: '-5' } }, '-5n'],
  [{ type: 'array', items: { type: 'string' } }, 'string[]'],
  [{ type: 'array', items: { type: 'nullable', inner: { type: 'string' } } }, '(string | null)[]'],
  [{ type: 'record', values: { type: 'int64' } }, '{ [key: string]: bigint }'],
  [{ type: 'object', fields: {} }, 'Record<string, never>'],
  [
    {
      type: 'object',
      fields: {
        a: { type: 'string' },
        'b-c': { type: 'optional', inner: { type: 'null' } },
      },
    },
    '{ a: string; "b-c"?: null | undefined }',
  ],
  [
    { type: 'union', members: [{ type: 'int64' }, { type: 'timestamp' }, { type: 'null' }] },
    'bigint | null',
  ],
  [OPEN, '"blue" | { unknown: true }'],
  [{ type: 'array', items: OPEN }, '("blue" | { unknown: true })[]'],
  [{ type: 'nullable', inner: OPEN }, '"blue" | { unknown: true } | null'],
]

test.each(TYPES)('the validator %j is printed as a flat type', (json, text) => {
  expect(typeText(json, 'read')).toBe(text)
  expect(typeText(json, 'written')).toBe(text)
})

test('a field with a default is present where it is read, and optional where it is written', () => {
  const field = { type: 'optional', inner: { type: 'int64' }, default: { $i: '3' } } as const
  const nested: ValidatorJson = { type: 'object', fields: { level: field } }
  const json: ValidatorJson = { type: 'array', items: { type: 'nullable', inner: nested } }
  expect(typeText(json, 'read')).toBe('({ level: bigint } | null)[]')
  expect(typeText(json, 'written')).toBe('({ level?: bigint | undefined } | null)[]')
})

test('references nest by path and export, and separate public from internal Functions', () => {
  const make = (name: string, more: Partial<FunctionManifest> = {}): FunctionManifest => ({
    name,
    kind: 'query',
    visibility: 'public',
    clients: [],
    auth: 'none',
    arguments: {},
    returns: { type: 'null' },
    errors: {},
    ...more,
  })
  const functions = [
    make('admin/name.name', { kind: 'mutation', errors: { B: 'invalid', A: 'conflict' } }),
    make('admin/two-words.list', { visibility: 'internal' }),
    make('z.default'),
  ]
  const sdk = { module: '', globals: '', runtime: '', testKit: '', testKitTypes: '' }
  const text = generateFiles({ functions, tables: [] }, sdk).find(({ path }) =>
    path.endsWith('api.ts'),
  )!.text
  expect(text.slice(text.indexOf('/** Functions that applications call'))).toBe(`\
/** Functions that applications call. */
export const api = {
  admin: {
    name: {
      name: { kind: 'mutation', name: 'admin/name.name', arguments: {} } as Mutation<
        Record<string, never>,
        null,
        'APP_A' | 'APP_B'
      >,
    },
  },
  z: {
    default: { kind: 'query', name: 'z.default', arguments: {} } as Query<
      Record<string, never>,
      null,
      never
    >,
  },
}

/** Functions that only other Functions call. */
export const internal = {
  admin: {
    "two-words": {
      list: { kind: 'query', name: 'admin/two-words.list', arguments: {} } as Query<
        Record<string, never>,
        null,
        never
      >,
    },
  },
}
`)
})

test('a new Workspace compiles with nothing installed, under the strictest settings too', {
  tags: ['slow'],
}, () => {
  expect(compile(chat)).toBe('')
  const strictest = ['--exactOptionalPropertyTypes', '--noPropertyAccessFromIndexSignature']
  expect(compile(chat, '--skipLibCheck', 'false', ...strictest)).toBe('')
})

test('the page of the chat template compiles with React and Vite alone, and finds mistakes', {
  tags: ['slow'],
}, () => {
  const packages = join(import.meta.dirname, '../../../node_modules')
  const modules = join(root, 'node_modules')
  mkdirSync(join(modules, '@types'), { recursive: true })
  for (const name of ['@types/react', '@types/react-dom', 'vite']) {
    symlinkSync(join(packages, name), join(modules, name))
  }
  expect(compile(join(chat, 'web'))).toBe('')
  const messages = join(chat, 'web/src/messages.tsx')
  const text = readFileSync(messages, 'utf8')
  writeFileSync(messages, text.replace('limit: LIMIT', 'limit: 200'))
  const found = compile(join(chat, 'web'))
  expect(found).toContain("Type 'number' is not assignable to type 'bigint'")
  // A mistake in the arguments of a hook is not a mistake in what it returns.
  expect(found).not.toContain("'status' does not exist")
  writeFileSync(messages, text)
})

test.each(['api', 'empty'])(
  'the template %s compiles with nothing installed',
  { tags: ['slow'] },
  (template) => {
    const directory = join(root, template)
    writeWorkspace(directory, { name: 'New', template })
    expect(compile(directory, '--skipLibCheck', 'false')).toBe('')
  },
)

test.each([
  ['of an author', MISTAKES],
  ['with files', STORAGE_MISTAKES],
  ['with Crons', CRON_MISTAKES],
  ['with migrations', MIGRATION_MISTAKES],
  ['with routes of other services', HTTP_MISTAKES],
  ['of a test', TEST_KIT_MISTAKES],
])('the compiler finds the mistakes %s, and nothing else', { tags: ['slow'] }, (_, source) => {
  writeFileSync(join(chat, 'functions/mistakes.ts'), source)
  expect(compile(chat, '--skipLibCheck', 'false')).toBe('')
  const bare = source.replaceAll(/^.*@ts-expect-error.*$/gm, '')
  writeFileSync(join(chat, 'functions/mistakes.ts'), bare)
  const found = new Set(
    [...compile(chat).matchAll(/mistakes\.ts\((\d+),/g)].map(([, line]) => line),
  )
  rmSync(join(chat, 'functions/mistakes.ts'))
  expect(found.size).toBe([...source.matchAll(/@ts-expect-error/g)].length)
})

test('a document has its defaults where it is read, and may lack them where it is written', {
  tags: ['slow'],
}, () => {
  const directory = join(root, 'evolution')
  writeWorkspace(directory, { name: 'Evolution', template: 'empty' })
  const tables = [{ name: 'tickets', fields: {}, indexes: [] }]
  const files = {
    ...Object.fromEntries(
      generateFiles({ functions: [], tables }, SDK_TEXTS).map(({ path, text }) => [path, text]),
    ),
    ...EVOLUTION,
  }
  mkdirSync(join(directory, 'functions'), { recursive: true })
  for (const [path, text] of Object.entries(files)) writeFileSync(join(directory, path), text)
  const strictest = ['--exactOptionalPropertyTypes', '--skipLibCheck', 'false']
  expect(compile(directory)).toBe('')
  expect(compile(directory, ...strictest)).toBe('')
})

test('an application compiles with the references alone', { tags: ['slow'] }, () => {
  const application = join(root, 'application')
  mkdirSync(application)
  const api = readFileSync(join(chat, '_generated/api.ts'), 'utf8')
  writeFileSync(join(application, 'api.ts'), api)
  writeFileSync(
    join(application, 'main.ts'),
    `
import { api, type FunctionReference, type Id } from './api'
declare function call<A, R, E extends string>(
  reference: FunctionReference<'query' | 'mutation', A, R, E>,
  args: A,
): { result: R; error: E }

const channel = 'channels_1' as Id<'channels'>
const { result, error } = call(api.messages.send, { channel, author: 'a', body: 'b' })
export const id: Id<'messages'> = result
export const code: 'APP_CHANNEL_NOT_FOUND' = error
export const names: string[] = call(api.channels.list, {}).result.map(({ name }) => name)
// @ts-expect-error a field that is missing
call(api.messages.send, { channel, author: 'a' })
// @ts-expect-error an argument where there is none
call(api.channels.list, { limit: 5n })
// @ts-expect-error an int64 is a bigint
call(api.messages.list, { channel, limit: 5 })
`,
  )
  const settings = {
    compilerOptions: {
      target: 'es2022',
      module: 'esnext',
      moduleResolution: 'bundler',
      types: [],
      strict: true,
      noEmit: true,
      exactOptionalPropertyTypes: true,
      verbatimModuleSyntax: true,
      isolatedDeclarations: true,
      declaration: true,
      erasableSyntaxOnly: true,
    },
    include: ['*.ts'],
  }
  writeFileSync(join(application, 'tsconfig.json'), JSON.stringify(settings))
  const errors = compile(application).split('\n')
  // TS9010 is about inferred types of main.ts itself, which do not matter here.
  expect(errors.filter((line) => line !== '' && !/^main.*TS9010/.test(line))).toEqual([])
})
