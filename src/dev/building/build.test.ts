import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { describeHere } from '../../../testing/describe-here.ts'
import { Fault } from '../../errors/fault.ts'
import { sha256 } from '../../system/digests.ts'
import { parseId } from '../../value/ids.ts'
import { decodeArtifact, decodePackage } from '../../value/packages/workspace-package.ts'
import { parseManifest } from '../../wire/files/manifest.ts'
import { writeWorkspace } from '../new-workspaces.ts'
import { formatProblem } from '../workspace/problems.ts'
import { buildWorkspace, type WorkspaceBuild } from './build.ts'
import { encodeWorkspacePackage } from './package.ts'

const PROJECT = parseId('prj', 'prj_01JZ0000000000000000000000')
const directories: string[] = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-build-'))
  directories.push(directory)
  return directory
}

const SCHEMA = "import { defineSchema } from 'svc'\nexport default defineSchema({})\n"
const PING = `import { query } from 'svc'
export const ping = query({ clients: ['public'], handler: () => 1n })
`

function workspaceOf(files: Readonly<Record<string, string>>): string {
  const directory = newDirectory()
  for (const [path, text] of Object.entries({ 'schema.ts': SCHEMA, ...files })) {
    if (text === '') continue
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  return directory
}

const build = (directory: string): Promise<WorkspaceBuild> =>
  buildWorkspace(directory, { describe: describeHere })

/** Returns the message of a failed build of these files. */
async function rejectionOf(files: Readonly<Record<string, string>>): Promise<string> {
  const error = await build(workspaceOf(files)).then(
    () => expect.unreachable('it builds'),
    (thrown: unknown) => thrown,
  )
  expect(error).toMatchObject({ code: 'WORKSPACE_INVALID' })
  return (error as Fault).detail!
}

test('the template builds into a package that a server accepts', { tags: ['slow'] }, async () => {
  const directory = join(newDirectory(), 'chat')
  writeWorkspace(directory, { name: 'Chat' })
  const built = await build(directory)
  expect(built.diagnostics).toEqual([])
  const decoded = decodePackage(encodeWorkspacePackage(built, PROJECT), sha256)
  const manifest = parseManifest(decoded.manifest)
  expect(manifest.functions.map(({ name }) => name)).toEqual([
    'channels.create',
    'channels.list',
    'messages.list',
    'messages.send',
  ])
  expect(manifest.tables.map(({ name }) => name)).toEqual(['channels', 'messages'])
  expect(manifest).toMatchObject({ projectId: PROJECT, workspace: 'default' })
  const { source, sourceMap } = decodeArtifact(decoded.artifact, sha256)
  expect(source).toBe(built.bundle.source)
  expect(JSON.parse(sourceMap!).sources).toEqual([
    'svc',
    'schema.ts',
    'svc:schema-check',
    'functions/channels.ts',
    'functions/messages.ts',
    'crons.ts',
    'svc:entry',
  ])
})

test('equal sources build equal bytes, in any directory and any process', {
  tags: ['slow'],
}, async () => {
  const files = {
    'lib/paths.js': 'export const paths = () => [typeof __dirname, __filename]\n',
    'functions/a.ts': PING,
    'functions/deep/b.ts': [
      "import { paths } from '../../lib/paths'",
      "import dep from 'dep'",
      PING,
      'export const x = () => [paths(), dep, process.env.NODE_ENV]',
    ].join('\n'),
    'node_modules/dep/package.json': '{"main":"i.js"}',
    'node_modules/dep/i.js': 'module.exports = { here: __dirname }\n',
  }
  const first = await build(workspaceOf(files))
  const second = await build(workspaceOf(files))
  const module = (name: string) => JSON.stringify(join(import.meta.dirname, name))
  const script = `
    const { readWorkspaceFiles } = await import(${module('../workspace/workspace-files.ts')})
    const { bundleWorkspace } = await import(${module('bundles.ts')})
    const files = readWorkspaceFiles(${JSON.stringify(workspaceOf(files))})
    const { source, sourceMap } = await bundleWorkspace(files)
    const { createHash } = await import('node:crypto')
    process.stdout.write(createHash('sha256').update(source).update(sourceMap).digest('hex'))`
  const third = spawnSync(process.execPath, ['-e', script], {
    cwd: newDirectory(),
    env: { NODE_ENV: 'development', TZ: 'Asia/Tokyo' },
    encoding: 'utf8',
  })
  const digest = ({ bundle: { source, sourceMap } }: WorkspaceBuild) =>
    createHash('sha256').update(source).update(sourceMap).digest('hex')
  expect(Buffer.from(second.artifact).equals(first.artifact)).toBe(true)
  expect(third.stdout).toBe(digest(first))
  expect(first.bundle.source + first.bundle.sourceMap).not.toContain(tmpdir())
})

const REJECTED: readonly [rule: string, files: Record<string, string>, message: string][] = [
  [
    'a syntax error is shown at its location',
    { 'functions/a.ts': 'export const a = {\n  b: 1;\n}\n' },
    'functions/a.ts:2:7\n  Expected "}" but found ";".',
  ],
  [
    'a missing file is shown at its import',
    { 'functions/a.ts': "\nimport { x } from '../nope'\nexport const y = x\n" },
    'functions/a.ts:2:19\n  There is no file "../nope".\n  Check the path and its spelling.',
  ],
  [
    'a missing package is shown with how to install it',
    { 'functions/a.ts': "import x from '@scope/nope/deep'\nexport const y = x\n" },
    'functions/a.ts:1:15\n  There is no package "@scope/nope/deep".\n' +
      '  Install it in the Workspace: npm install @scope/nope',
  ],
  [
    'an import of something that is not exported is named',
    { 'functions/a.ts': "import { qery } from 'svc'\nexport const a = qery\n" },
    'functions/a.ts:1:10\n  "svc" exports no "qery".\n  Check the spelling.',
  ],
  [
    'a builtin of Node fails with the chain of imports that leads to it',
    {
      'functions/a.ts': `import one from 'one'\n${PING}export const b = one\n`,
      'node_modules/one/package.json': '{"main":"lib/index.js"}',
      'node_modules/one/lib/index.js': "module.exports = require('./io')\n",
      'node_modules/one/lib/io.js': "module.exports = require('two')\n",
      'node_modules/two/index.js':
        "import { readFile } from 'node:fs/promises'\nexport { readFile }\n",
    },
    'functions/a.ts:1:17\n' +
      '  "node:fs/promises" is not available: a Function has no files, network or processes.\n' +
      '  functions/a.ts imports "one"\n' +
      '  node_modules/one/lib/index.js imports "./io"\n' +
      '  node_modules/one/lib/io.js imports "two"\n' +
      '  node_modules/two/index.js imports "node:fs/promises"\n' +
      '  Use a package that works in browsers, or remove the import.',
  ],
  [
    'a builtin without a prefix is found too',
    { 'functions/a.ts': "import { join } from 'path'\nexport const b = join\n" },
    'functions/a.ts:1:22\n  "path" is not available',
  ],
  [
    'a builtin of Bun is found too',
    { 'functions/a.ts': "import { Database } from 'bun:sqlite'\nexport const b = Database\n" },
    'functions/a.ts:1:26\n  "bun:sqlite" is not available',
  ],
  [
    'two exports of one name are rejected',
    { 'functions/a.ts': `${PING}export const ping = 2\n` },
    'functions/a.ts:3:14\n  "ping" is declared twice.\n  Rename one of the two.',
  ],
  [
    'a Function and a file of Functions cannot have one name',
    {
      'functions/admin.ts': PING.replace('ping', 'users'),
      'functions/admin/users.ts': PING,
    },
    'functions/admin/users.ts:2\n' +
      '  admin/users.ping is a duplicate of admin.users: ' +
      'applications write api.admin.users for both.\n' +
      '  Rename the export or the file.',
  ],
  [
    'names that differ only in case are rejected',
    { 'functions/Users.ts': PING, 'functions/users.ts': PING },
    'functions/users.ts\n  Its name differs from functions/Users.ts only in upper and lower case.',
  ],
  [
    'a file whose name no Function can have is rejected',
    { 'functions/my file.ts': PING },
    'functions/my file.ts\n  Its path is part of the names',
  ],
  [
    'a missing schema is named',
    { 'schema.ts': '', 'functions/a.ts': PING },
    'schema.ts\n  There is no such file',
  ],
  [
    'a schema must be the default export',
    { 'schema.ts': 'export const schema = 1\n', 'functions/a.ts': PING },
    'schema.ts\n  The schema is not exported.\n  Write: export default defineSchema({ ... })',
  ],
  [
    'an invalid definition is shown at its line, with the fix',
    {
      'schema.ts':
        "import { defineSchema, table, v } from 'svc'\n\nexport default defineSchema({\n" +
        "  messages: table({ body: v.string() }).index('byChannel', ['channel']),\n})\n",
    },
    'schema.ts:4:41\n' +
      '  Index "byChannel" lists "channel", which is not a field of the table. Use "body".',
  ],
  [
    'a pattern that would need backtracking is shown at its line',
    {
      'functions/a.ts':
        "import { query, v } from 'svc'\n\nexport const find = query({\n" +
        '  arguments: { word: v.string({ pattern: /^(a|b)\\1$/ }) },\n  handler: () => 1n,\n})\n',
    },
    'functions/a.ts:4:24\n' +
      '  v.string pattern has a back-reference at character 7. Check the value in the handler.',
  ],
  [
    'code that throws while it is loaded is shown at its line',
    { 'functions/a.ts': 'const x: any = null\n\nexport const y = x.z\n' },
    'functions/a.ts:3:',
  ],
  [
    'a package that throws is shown where the Workspace calls it, else in the package',
    {
      'functions/a.ts': "import { fail } from 'bad'\n\nexport const x = fail()\n",
      'node_modules/bad/index.js': "export const fail = () => {\n  throw new Error('no')\n}\n",
    },
    'functions/a.ts:3:18\n  Error: no',
  ],
  [
    'a package that throws while it is loaded is shown there',
    {
      'functions/a.ts': "import { x } from 'bad'\nexport const y = x\n",
      'node_modules/bad/index.js': "export const x = null\nthrow new Error('no')\n",
    },
    'node_modules/bad/index.js:2:11\n  Error: no',
  ],
  [
    'a global that a runner does not have is shown at its line',
    { 'functions/a.ts': '\nexport const y = document.title\n' },
    'functions/a.ts:2:18\n  ReferenceError: ',
  ],
  [
    'a default export that is not a schema is rejected',
    { 'schema.ts': 'export default { tables: {} }\n' },
    'schema.ts\n  The default export of schema.ts must be defineSchema({ ... }). Write: import {',
  ],
  [
    'an ID of a table that is not in the schema is rejected',
    {
      'functions/a.ts':
        "import { query, v } from 'svc'\n\nexport const list = query({\n" +
        "  arguments: { in: v.array(v.id('chanels')) },\n  handler: () => 1n,\n})\n",
    },
    'functions/a.ts:3\n  a.list: arguments.in[] is an ID of "chanels", which the schema',
  ],
  [
    'await outside of functions is rejected',
    { 'functions/a.ts': 'export const x = await Promise.resolve(1)\n' },
    'await is only available in async functions.\n  Write async before the function, or',
  ],
  [
    'an import with a computed name is rejected at its line',
    { 'functions/a.ts': 'export const x = (name: string) => {\n\n  return import(name)\n}\n' },
    'functions/a.ts:3\n  import(...) with a computed name cannot be bundled.',
  ],
  [
    'import.meta is rejected at its line',
    { 'functions/a.ts': 'export const x = () =>\n  import.meta.url\n' },
    'functions/a.ts:2\n  import.meta is not available',
  ],
  [
    'an import from the network is rejected',
    { 'functions/a.ts': "import x from 'https://example.com/x.js'\nexport const y = x\n" },
    'functions/a.ts:1:15\n  "https://example.com/x.js" is not part of the Workspace',
  ],
  [
    'a file that cannot be part of the bundle is rejected',
    { 'functions/a.ts': "import x from './x.wasm'\nexport const y = x\n", 'functions/x.wasm': 'x' },
    'A file of this kind cannot be imported',
  ],
  [
    'an unknown setting is rejected',
    { 'functions/a.ts': PING, 'svc.json': '{ "name": "x" }' },
    'svc.json\n  Expected no unknown field ($.name).',
  ],
  [
    'an invalid Workspace name is rejected',
    { 'functions/a.ts': PING, 'svc.json': '{ "workspace": "My app" }' },
    'svc.json\n  Expected a Workspace name ($.workspace).',
  ],
  [
    'settings must be JSON',
    { 'functions/a.ts': PING, 'svc.json': '{ workspace: "x" }' },
    'svc.json\n  Expected a key',
  ],
]

test.each(REJECTED)('%s', async (_, files, message) => {
  expect(await rejectionOf(files)).toContain(message)
})

test('a macro does not run: the build executes no code of a Workspace', async () => {
  const mark = join(newDirectory(), 'ran')
  const macro = `import { writeFileSync } from 'fs'
export const run = () => writeFileSync(${JSON.stringify(mark)}, '')
`
  const detail = await rejectionOf({
    'functions/a.ts': "import { run } from '../m' with { type: 'macro' }\nexport const x = run()\n",
    'm.ts': macro,
  })
  expect(detail).toContain('Macros are not available.')
  expect(existsSync(mark)).toBe(false)
})

test('packages are bundled in their version for browsers', async () => {
  const built = await build(
    workspaceOf({
      'functions/a.ts': [
        "import b from 'both'",
        "import e from 'events'",
        PING,
        'export const x = () => [b, e]',
      ].join('\n'),
      'node_modules/both/package.json':
        '{"main":"node.js","browser":{"./node.js":"./web.js","fs":false}}',
      'node_modules/both/node.js': "module.exports = require('child_process')\n",
      'node_modules/both/web.js': "module.exports = ['FOR-BROWSERS', require('fs')]\n",
      'node_modules/events/package.json': '{"main":"index.js"}',
      'node_modules/events/index.js': "module.exports = 'FROM-NPM'\n",
    }),
  )
  expect(built.bundle.source).toContain('FOR-BROWSERS')
  expect(built.bundle.source).toContain('FROM-NPM')
})

test('an import with a literal name is bundled', async () => {
  const built = await build(
    workspaceOf({
      'functions/a.ts': `${PING}export const x = () => import('../lazy')\n`,
      'lazy.ts': "export const text = 'import(' + 'LAZY)'\n",
    }),
  )
  expect(built.bundle.source).toContain('LAZY)')
})

test('declarations, tests and linked directories beside Functions are ignored', async () => {
  const directory = workspaceOf({
    'functions/a.ts': PING,
    'functions/a.test.ts': 'throw 1',
    'functions/a.d.ts': 'export {}',
  })
  symlinkSync(directory, join(directory, 'functions/loop'))
  const { description } = await build(directory)
  expect(description.functions.map(({ name }) => name)).toEqual(['a.ping'])
})

test('a Function without clients, and a Workspace without Functions, are warnings', async () => {
  const uncalled = PING.replace("clients: ['public'], ", '')
  const { diagnostics } = await build(workspaceOf({ 'functions/a.ts': uncalled }))
  expect(diagnostics.map(formatProblem)).toEqual([
    'functions/a.ts:2\n  a.ping has no clients, so no application can call it.\n' +
      '  Add clients: ["public"], or write internalQuery.',
  ])
  expect((await build(workspaceOf({}))).diagnostics.map(({ message }) => message)).toEqual([
    'The Workspace has no Functions.',
  ])
})

test('a failure that the code did not cause is passed on unchanged', async () => {
  const fault = new Fault('UNAVAILABLE')
  const describe = () => Promise.reject(fault)
  await expect(buildWorkspace(workspaceOf({ 'functions/a.ts': PING }), { describe })).rejects.toBe(
    fault,
  )
})

test('a description that violates a manifest rule names the Function', async () => {
  const deep = `${'v.array('.repeat(40)}v.string()${')'.repeat(40)}`
  expect(
    await rejectionOf({
      'functions/a.ts': [
        "import { query, v } from 'svc'",
        `export const b = query({ returns: ${deep}, handler: () => [] })`,
      ].join('\n'),
    }),
  ).toContain('functions/a.ts:2\n  a.b: expected at most 32 levels at returns.items')
  expect(await rejectionOf({ 'functions/a.ts': PING.replace('ping', 'größe') })).toBe(
    'functions/a.ts:2\n  a.größe: expected the name of a Function at name.\n' +
      '  Rename the export with letters, digits, _ and $ only.',
  )
})
