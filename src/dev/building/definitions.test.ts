/** The Functions that a build finds in the files of a Workspace. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { describeHere } from '../../../testing/describe-here.ts'
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

test('a Function without clients has those of the settings of its Workspace', {
  tags: ['slow'],
}, async () => {
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

const PING = "export const ping = query({ clients: ['public'], handler: () => 1n })"

/** Returns the message of a failed build of a module with these lines. */
async function rejectionOf(lines: string, more: Readonly<Record<string, string>> = {}) {
  const text = `import { query } from 'svc'\n${PING}\n${lines}\n`
  const error = await build({ 'functions/a.ts': text, ...more }).then(
    () => expect.unreachable('it builds'),
    (thrown: unknown) => thrown as { code: string; detail: string },
  )
  expect(error.code).toBe('WORKSPACE_INVALID')
  return error.detail
}

const UNEXPORTED =
  '  This query(...) has no export of its own. ' +
  'Write export const NAME = query(...) in a file below functions.'
const HELPERS = "import { query } from 'svc'\nexport const help = query({ handler: () => 1n })\n"

test.each([
  ['without export', 'const list = query({ handler: () => 1n })', 'functions/a.ts:3'],
  [
    'in an object',
    '\nexport const all = { one: query({ handler: () => 1n }) }',
    'functions/a.ts:4',
  ],
  ['outside of functions', "import '../lib/helpers'", 'lib/helpers.ts:2'],
])('a definition %s is an error with its line', async (_, lines, location) => {
  const found = await rejectionOf(lines, { 'lib/helpers.ts': HELPERS })
  expect(found).toMatch(new RegExp(`^${RegExp.escape(location)}(?::\\d+)?\n`))
  expect(found).toContain(UNEXPORTED)
})

test('a definition as the default export is an error with its line', {
  tags: ['slow'],
}, async () => {
  expect(await rejectionOf('export default query({ handler: () => 1n })')).toBe(
    'functions/a.ts:3\n' +
      '  A default export has no name by which applications could call it.\n' +
      '  Write export const NAME = query(...).',
  )
})

test('an empty schema is reported before the Functions that use it while they load', async () => {
  const use = "import schema from '../schema'\nexport const note = schema.document('notes')"
  expect(await rejectionOf(use, { 'schema.ts': '' })).toBe(
    'schema.ts\n  The default export of schema.ts must be defineSchema({ ... }). Write: ' +
      "import { defineSchema } from 'svc', then: export default defineSchema({})",
  )
})

test('a definition may be exported by another file than the one that makes it', async () => {
  const { description } = await build({
    'lib/helpers.ts': HELPERS,
    'functions/a.ts': "export { help } from '../lib/helpers'\n",
    'functions/b.ts': "import { help } from '../lib/helpers'\nexport const again = help\n",
  })
  expect(description.functions.map(({ name }) => name)).toEqual(['a.help', 'b.again'])
})
