/** The cost of the types of a large Workspace for the application that calls it. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { APP_CLIENT_FILES } from '../src/app-client/embedded.generated.ts'
import { generateReferences } from '../src/dev/codegen/codegen.ts'
import type { FunctionManifest } from '../src/value/manifest.ts'
import type { FieldsJson } from '../src/value/validators.ts'

const TSC = join(import.meta.dirname, '../node_modules/.bin/tsc')
const FUNCTIONS = 1_000
const KINDS = ['query', 'mutation', 'action'] as const

const FIELDS: FieldsJson = {
  channel: { type: 'id', table: 'channels' },
  author: { type: 'string' },
  body: { type: 'string', maximumLength: 4_000 },
  likes: { type: 'optional', inner: { type: 'int64' } },
  tags: { type: 'nullable', inner: { type: 'array', items: { type: 'string' } } },
}

function functions(count: number): FunctionManifest[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `module${i % 50}.call${i}`,
    kind: KINDS[i % 3]!,
    visibility: 'public',
    clients: ['public'],
    auth: 'none',
    arguments: FIELDS,
    returns: { type: 'array', items: { type: 'object', fields: FIELDS } },
    errors: { CLOSED: 'conflict', GONE: 'not_found' },
  }))
}

function application(directory: string, called: readonly FunctionManifest[]): void {
  const files = Object.entries(APP_CLIENT_FILES).map(([path, text]) => [
    `node_modules/${path}`,
    text,
  ])
  const args = "{ channel, author: 'a', body: 'b', tags: null }"
  const calls = called.map(({ name, kind }, i) => {
    const called = `client.${kind}(api.${name}, ${args})`
    return `export const r${i} = ${called}.then(([r]) => r?.tags?.length)`
  })
  const uses = [
    "import { createClient } from 'svc/client'",
    "import { api, type Id } from './api'",
    "const client = createClient({ url: '', applicationKey: '', target: '' })",
    "const channel = 'c' as Id<'channels'>",
    ...calls,
  ]
  const settings = {
    compilerOptions: {
      target: 'es2022',
      module: 'esnext',
      moduleResolution: 'bundler',
      strict: true,
      noEmit: true,
      types: [],
      skipLibCheck: true,
    },
    files: ['uses.ts'],
  }
  const texts = [
    ...files,
    ['api.ts', generateReferences({ functions: called, tables: [] })],
    ['uses.ts', uses.join('\n')],
    ['tsconfig.json', JSON.stringify(settings)],
  ] as [string, string][]
  for (const [path, text] of texts) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
}

test('an application that calls each of 1,000 Functions compiles', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-thousand-'))
  try {
    for (const count of [1, FUNCTIONS]) {
      application(directory, functions(count))
      const started = performance.now()
      const { stdout } = spawnSync(TSC, ['-p', directory], { encoding: 'utf8' })
      const millis = Math.round(performance.now() - started)
      expect(stdout).toBe('')
      process.stdout.write(`${count} Functions: ${millis} ms\n`)
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
})
