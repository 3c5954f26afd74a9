import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  MIGRATION_SETS,
  type MigrationSet,
  renderMigrations,
  staleMigrations,
} from './embed-migrations.ts'

const SET: MigrationSet = { directory: 'sql', module: 'migrations.generated.ts' }
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-embed-'))
  mkdirSync(join(root, 'sql'))
})

afterEach(() => {
  rmSync(root, { recursive: true })
})

const put = (name: string, text: string) => writeFileSync(join(root, 'sql', name), text)

test('every generated module equals its SQL files', () => {
  expect(staleMigrations(join(import.meta.dirname, '..'))).toEqual([])
  expect(MIGRATION_SETS.length).toBeGreaterThanOrEqual(3)
})

test('any text of an SQL file is preserved byte for byte', async () => {
  const text = "select '\\n', `x`, $\u007by}, \"\\`\", 'é😀';\n-- $$ \\\\ ${`\n"
  put('0001-first.sql', text)
  put('0002-next-one.sql', 'select 2;\n')
  const path = join(root, 'rendered.ts')
  writeFileSync(path, renderMigrations(root, SET))
  const module = (await import(path)) as { MIGRATIONS: unknown }
  expect(module.MIGRATIONS).toEqual([
    { version: 1, name: 'first', sql: text },
    { version: 2, name: 'next-one', sql: 'select 2;\n' },
  ])
})

test('a migration has the effects that are stated for its file', async () => {
  mkdirSync(join(root, 'migrations/here'), { recursive: true })
  writeFileSync(join(root, 'migrations/here/0001-first.sql'), 'select 1;\n')
  const state = (file: string) =>
    writeFileSync(
      join(root, 'migrations/effects.json'),
      JSON.stringify({ [file]: { readableFrom: 3, documentMicros: 9 } }),
    )
  const set = { directory: 'migrations/here', module: 'effects.ts' }
  state('here/0001-first.sql')
  writeFileSync(join(root, 'effects.ts'), renderMigrations(root, set))
  expect(((await import(join(root, 'effects.ts'))) as { MIGRATIONS: unknown }).MIGRATIONS).toEqual([
    { version: 1, name: 'first', readableFrom: 3, documentMicros: 9, sql: 'select 1;\n' },
  ])
  state('here/0001-other.sql')
  expect(() => renderMigrations(root, set)).toThrow('0001-other.sql')
  mkdirSync(join(root, 'migrations/identity'), { recursive: true })
  writeFileSync(join(root, 'migrations/identity/0001-first.sql'), 'select 1;\n')
  state('identity/0001-first.sql')
  expect(() => renderMigrations(root, set)).toThrow(
    'states readableFrom of identity/0001-first.sql',
  )
})

test.each([
  ['a gap', ['0001-a.sql', '0003-b.sql']],
  ['a duplicate version', ['0001-a.sql', '0001-b.sql']],
  ['a malformed name', ['0001_a.sql']],
  ['an unrelated file', ['0001-a.sql', 'README']],
])('%s in the folder of migrations is rejected', (_, names) => {
  for (const name of names) put(name, 'select 1;\n')
  expect(() => renderMigrations(root, SET)).toThrow()
})

test('a carriage return is rejected, since a checkout may add or remove it', () => {
  put('0001-a.sql', 'select 1;\r\n')
  expect(() => renderMigrations(root, SET)).toThrow('carriage return')
})
