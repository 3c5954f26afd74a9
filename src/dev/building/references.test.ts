/**
 * @module-tag slow
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { describeHere } from '../../../testing/describe-here.ts'
import { buildWorkspace } from './build.ts'

const SCHEMA = "import { defineSchema } from 'svc'\nexport default defineSchema({})\n"
const directories: string[] = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

function workspaceOf(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-references-'))
  directories.push(directory)
  for (const [path, text] of Object.entries({ 'schema.ts': SCHEMA, ...files })) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  return directory
}

const build = (directory: string) => buildWorkspace(directory, { describe: describeHere })

test('references to Functions do not depend on the generated file', async () => {
  const files = {
    'functions/a.ts': `import { action } from 'svc'
import { api, internal } from '../_generated/api'
const names = [api.deep.b.ping, internal.a.one].map((it) => it[Symbol.for('svc.reference')])
if (names.join() !== 'deep/b.ping,a.one') throw new Error(names.join())
export const act = action({ clients: ['public'], handler: (ctx) => ctx.runQuery(api.deep.b.ping) })
`,
    'functions/deep/b.ts': `import { query } from 'svc'
export const ping = query({ clients: ['public'], handler: () => 1n })
`,
  }
  const first = await build(workspaceOf(files))
  const generated = { '_generated/api.ts': 'throw new Error("this was bundled")' }
  const second = await build(workspaceOf({ ...files, ...generated }))
  expect(Buffer.from(second.artifact).equals(first.artifact)).toBe(true)
  const uses = { network: [], secrets: [] }
  expect(first.description.functions).toMatchObject([
    { name: 'a.act', kind: 'action', uses },
    { name: 'deep/b.ping', kind: 'query' },
  ])
})
