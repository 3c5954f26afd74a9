/** The guide to changes of a schema: its table is current, and its schemas allow what it says. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { schemaChanges } from '../src/product/compatibility/schema-changes.ts'
import { defineSchema, table } from '../src/sdk/schemas.ts'
import { v } from '../src/sdk/validators.ts'
import type { TableManifest } from '../src/value/manifest.ts'
import { codeBlocks } from '../testing/markdown/markdown.ts'
import { schemaChangesTable, withSchemaChanges } from './docs/schema-changes.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../src/docs/schema-changes.md'), 'utf8')

test('the table of changes is what the comparison decides', () => {
  expect(withSchemaChanges(GUIDE)).toBe(GUIDE)
  const rows = schemaChangesTable().split('\n')
  expect(rows).toContain('| add an optional field | documents | yes | yes |')
  expect(rows).toContain('| add a member to an open union | yes | yes | yes |')
  expect(rows.length).toBeGreaterThan(20)
})

test.each([
  ['### 1. Add a field that some', true],
  ['### 2. Add a field that every', true],
  ['### 3. Remove a field', true],
  ['### 4. Rename a field', true],
  ['### 5. Add a choice', true],
  ['### 7. Change a type', true],
  ['### 9. Change an object', true],
])('the schemas below "%s" serve side by side', (heading, expected) => {
  const start = GUIDE.indexOf(heading)
  expect(start).toBeGreaterThan(0)
  const section = GUIDE.slice(start, GUIDE.indexOf('\n### ', start + 1)).replace(/^ +/gm, '')
  const pair = codeBlocks(section)
    .filter(({ language }) => language === 'ts')
    .map(({ text }) => text.trim().split('\n'))
    .find((lines) => lines.length === 2 && lines.every((line) => /^\w+: table\(/.test(line)))!
  const [before, after] = pair.map(tablesOf)
  const changes = schemaChanges(after!, before!)
  expect(changes.length).toBeGreaterThan(0)
  expect(changes.every(({ refusals }) => refusals.length === 0)).toBe(expected)
})

/** Returns the tables of a line such as `users: table({ name: v.string() })`. */
function tablesOf(line: string): Map<string, TableManifest> {
  const evaluate = new Function('table', 'v', 'defineSchema', `return defineSchema({ ${line} })`)
  const schema = evaluate(table, v, defineSchema) as Record<symbol, { readonly tables: object }>
  const { tables } = schema[Symbol.for('svc.schema')]!
  const contents = Object.entries(JSON.parse(JSON.stringify(tables)) as typeof tables)
  return new Map(contents.map(([name, content]) => [name, { name, ...content }]))
}
