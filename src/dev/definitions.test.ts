/** The Functions that a build finds in the files of a Workspace. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { describeHere } from '../../build/testing/describe-here.ts'
import { buildWorkspace, type WorkspaceBuild } from './build.ts'

const SCHEMA = "import { defineSchema } from 'svc'\nexport default defineSchema({})\n"

/** Builds a Workspace of these files. */
function build(files: Readonly<Record<string, string>>): Promise<WorkspaceBuild> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-definitions-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  for (const [path, text] of Object.entries({ 'schema.ts': SCHEMA, ...files })) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  return buildWorkspace(directory, { describe: describeHere })
}

test('a Function that names no clients has those of the settings of its Workspace', async () => {
  const text = `import { internalQuery, query } from 'svc'
const handler = () => 1n
export const plain = query({ handler })
export const none = query({ clients: [], handler })
export const other = query({ clients: ['confidential'], handler })
export const hidden = internalQuery({ handler })
`
  const settings = { 'svc.json': '{ "clients": ["public", "confidential"] }' }
  const { description } = await build({ ...settings, 'functions/a.ts': text })
  expect(description.functions.map(({ name, clients }) => [name, clients])).toEqual([
    ['a.hidden', []],
    ['a.none', []],
    ['a.other', ['confidential']],
    ['a.plain', ['confidential', 'public']],
  ])
})
