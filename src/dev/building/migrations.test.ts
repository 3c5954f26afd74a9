/** Builds of a Workspace with a file migrations.ts: its manifest, and the mistakes reported. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { poolBench } from '../../../testing/runners.ts'
import type { RunnerPool } from '../../engine/runners/runner-pool.ts'
import { isFault } from '../../errors/fault.ts'
import { codeChecks } from '../../product/compatibility/release-checks.ts'
import { realSystem } from '../../system/system.ts'
import type { WorkspaceDescription } from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import { buildWorkspace, type Describe } from './build.ts'

const SCHEMA = `
import { defineSchema, table, v } from 'svc'
export default defineSchema({
  tasks: table({ title: v.string(), priority: v.optional(v.string()) }).index('byTitle', ['title']),
})
`
const directory = mkdtempSync(join(tmpdir(), 'svc-migrations-'))
let pool: RunnerPool
let describe: Describe
beforeAll(async () => {
  mkdirSync(join(directory, 'functions'))
  writeFileSync(join(directory, 'schema.ts'), SCHEMA)
  pool = poolBench({}).pool
  await pool.start({ sandbox: 'preferred' })
  const { ids } = realSystem()
  describe = (bundle) => pool.describe({ ...bundle, releaseId: ids.make('rel') })
})
afterAll(async () => {
  await pool.close()
  rmSync(directory, { recursive: true })
})

/** Builds the Workspace with this text of migrations.ts and a module of Functions. */
async function build(migrations: string, functions = 'export {}\n'): Promise<WorkspaceDescription> {
  writeFileSync(join(directory, 'migrations.ts'), migrations)
  writeFileSync(join(directory, 'functions/tasks.ts'), functions)
  return (await buildWorkspace(directory, { describe })).description
}

const HEAD = `import { migration } from 'svc'\n`
const declared = (migrations: string, after = ''): string =>
  `${HEAD}export default {\n${migrations}\n}\n${after}`
const ADD = `  add: migration({ table: 'tasks', each: (ctx, task) => ({ priority: 'low' }) }),`

async function digestOf(migrations: string, functions?: string): Promise<string> {
  return (await build(migrations, functions)).migrations![0]!.digest
}

async function rejectionOf(text: string): Promise<string> {
  const error = await build(text).catch((thrown: unknown) => thrown)
  if (!isFault(error, 'WORKSPACE_INVALID')) throw error
  return error.detail!
}

test('migrations are part of the manifest, sorted by name, beside requires', {
  tags: ['slow'],
}, async () => {
  const options = `table: 'tasks', index: 'byTitle', batch: 7`
  const second = `  abc: migration({ ${options}, each: () => null }),`
  const text = declared(`${ADD}\n${second}`, `export const requires = ['old', 'add']\n`)
  const { migrations, requires } = await build(text)
  const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/)
  expect(migrations).toEqual([
    { name: 'abc', table: 'tasks', index: 'byTitle', batch: 7, digest },
    { name: 'add', table: 'tasks', index: null, batch: 500, digest },
  ])
  expect(requires).toEqual(['add', 'old'])
})

test('a Workspace without migrations has none in its manifest', async () => {
  const description = await build('export default {}\n')
  expect(Object.keys(description)).toEqual(['functions', 'tables'])
})

test('the digest changes with the code, the index and the name, and nothing else', {
  tags: ['slow'],
}, async () => {
  const digest = await digestOf(declared(ADD))
  const others = [
    ADD.replace("'low'", "'high'"),
    ADD.replace("table: 'tasks'", "table: 'tasks', index: 'byTitle'"),
    ADD.replace('add', 'set'),
  ]
  const digests = await Array.fromAsync(others, (other) => digestOf(declared(other)))
  expect(new Set([digest, ...digests]).size).toBe(4)
  const before = declared(`  // Explained.\n${ADD.replace("'tasks'", "'tasks', batch: 5")}`)
  expect(await digestOf(before)).toBe(digest)
  const beside = declared(`  aaa: migration({ table: 'tasks', each: () => null }),\n${ADD}`)
  expect((await build(beside)).migrations![1]!.digest).toBe(digest)
})

test('a Function that declares a name of migrations.ts does not change the digest', {
  tags: ['slow'],
}, async () => {
  const text = `${HEAD}const level = () => 'low'\nexport default {
  add: migration({ table: 'tasks', each: () => ({ priority: level() }) }),\n}\n`
  const alone = await digestOf(text)
  const functions = `import { query } from 'svc'
const level = () => 'high'
export const list = query({ handler: () => level() })\n`
  expect(await digestOf(text, functions)).toBe(alone)
})

test('a manifest whose migrations differ from the code fails the check', async () => {
  const description = await build(declared(ADD, `export const requires = ['add']\n`))
  const failed = (manifest: WorkspaceDescription) =>
    codeChecks(manifest, description as unknown as Json)
      .filter(({ outcome }) => outcome === 'failed')
      .map(({ name, detail }) => `${name}: ${detail}`)
  expect(failed(description)).toEqual([])
  const [migration] = description.migrations!
  const forged = { ...migration!, digest: `sha256:${'0'.repeat(64)}` }
  const rule = 'code:migrations: the manifest differs from the code'
  expect(failed({ ...description, migrations: [forged] })).toEqual([`${rule}: add`])
  expect(failed({ ...description, requires: [] })).toEqual([`${rule}: requires add`])
})

test.each([
  [`table: 'letters', each: () => null`, 'add: expected a table of the schema at table'],
  [`table: 'tasks', index: 'x', each: () => null`, 'expected an index of the table tasks at'],
  [`table: 'tasks', batch: 501, each: () => null`, 'Write a whole number from 1 to 500'],
  [`table: 'tasks', batch: 0, each: () => null`, 'batch is 0'],
  [`table: 'tasks'`, 'Write each: (ctx, document) =>'],
  [`table: 'tasks', each: (() => null).bind(null)`, 'each is a bound function'],
  [`table: 'tasks', each: () => null, size: 3`, 'has no option "size"'],
  [`table: 5, each: () => null`, 'Write the name of a table of schema.ts'],
])(
  'an invalid migration is rejected with its line: %s',
  { tags: ['slow'] },
  async (content, message) => {
    const detail = await rejectionOf(declared(`  add: migration({ ${content} }),`))
    expect(detail).toMatch(/^migrations\.ts:3/)
    expect(detail).toContain(message)
  },
)

test.each([
  ['export const x = 1\n', 'exports "x"'],
  ['export const requires = []\n', 'has no default export'],
  ['export default { add: 5 }\n', 'Write add: migration('],
  [declared(`  'a-b': migration({ table: 'tasks', each: () => null }),`), 'a migration "a-b"'],
  [declared(ADD, `export const requires = 'add'\n`), 'requires = ["addPriority"]'],
  [declared(ADD, `export const requires = ['add', 'add']\n`), 'lists "add" twice'],
])(
  'a file that is not one of migrations is rejected: %s',
  { tags: ['slow'] },
  async (text, message) => {
    const detail = await rejectionOf(text)
    expect(detail).toMatch(/^migrations\.ts/)
    expect(detail).toContain(message)
  },
)

test('more than 64 migrations are rejected', async () => {
  const names = Array.from({ length: 65 }, (_, i) => ADD.replace('add', `m${i}`))
  expect(await rejectionOf(declared(names.join('\n')))).toContain('Keep at most 64')
})
