import { spawnSync } from 'node:child_process'
import { lstatSync, mkdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { NODE_PATH } from '../../../testing/servers/node-path.ts'
import { guideExample } from '../../../testing/test-kit/guides.ts'
import { type KitWorkspace, kitWorkspace } from '../../../testing/test-kit/workspaces.ts'
import { linkPackage } from './package-link.ts'

const BUN = join(import.meta.dirname, '../../../node_modules/.bin/bun')
let workspace: KitWorkspace
let directory = ''

beforeAll(() => {
  workspace = kitWorkspace('chat')
  directory = workspace.directory
})
afterAll(() => workspace.remove())

/** Runs a program in the Workspace; returns its status and its output. */
function run(program: string, ...parameters: readonly string[]) {
  const env = { ...process.env, PATH: NODE_PATH, SVC_EXECUTABLE: workspace.executable }
  const options = { cwd: directory, encoding: 'utf8', env } as const
  const { status, stdout, stderr } = spawnSync(program, parameters, options)
  return { status, output: stdout + stderr }
}

const ASSERTIONS = `
  assert.throws(() => v.id('a b'), { name: 'DefinitionError' })
  assert.equal(api.messages.send.name, 'messages.send')
`

test('node:test imports "svc" and the references', { tags: ['slow'] }, () => {
  const text = `import assert from 'node:assert'
import { test } from 'node:test'
import { v } from 'svc'
import { api } from './_generated/api.js'
test('imports', () => {${ASSERTIONS}})
`
  writeFileSync(join(directory, 'node.test.mjs'), text)
  const { status, output } = run('node', '--test', 'node.test.mjs')
  expect(output).toMatch(/^# pass 1$/m)
  expect(status).toBe(0)
})

test('bun test imports the modules of a Workspace', () => {
  const text = `import assert from 'node:assert'
import { expect, test } from 'bun:test'
import { v } from 'svc'
import { api } from './_generated/api'
import schema from './schema'
import * as messages from './functions/messages'
test('imports', () => {${ASSERTIONS}
  assert.ok(schema[Symbol.for('svc.schema')])
  assert.deepEqual(Object.keys(messages).sort(), ['list', 'send'])
})
`
  writeFileSync(join(directory, 'bun.test.ts'), text)
  const { status, output } = run(BUN, 'test', './bun.test.ts')
  expect(output).toMatch(/^ 1 pass$/m)
  expect(status).toBe(0)
})

test('node:test runs the tests of the template and the example of the guide', {
  tags: ['slow'],
}, () => {
  workspace.write('tests/node.test.js', guideExample('node'))
  const { status, output } = run('node', '--test', 'tests/messages.test.js', 'tests/node.test.js')
  expect(output).toMatch(/^# pass 3$/m)
  expect(status).toBe(0)
})

test('bun test runs the tests of the template and the example of the guide', {
  tags: ['slow'],
}, () => {
  workspace.write('tests/bun.test.ts', guideExample('bun'))
  const files = ['./tests/messages.test.js', './tests/bun.test.ts']
  // Its tests end after 5 seconds otherwise, which is the pace of the machine.
  const { status, output } = run(BUN, 'test', '--timeout', '120000', ...files)
  expect(output).toMatch(/^ 3 pass$/m)
  expect(status).toBe(0)
})

test('an installed package svc is not replaced, and a link needs a package.json', () => {
  const installed = join(directory, 'installed')
  mkdirSync(join(installed, 'node_modules/svc'), { recursive: true })
  writeFileSync(join(installed, 'package.json'), '{}')
  linkPackage(installed)
  expect(lstatSync(join(installed, 'node_modules/svc')).isDirectory()).toBe(true)
  const bare = join(directory, 'bare')
  mkdirSync(bare)
  linkPackage(bare)
  expect(lstatSync(join(bare, 'node_modules'), { throwIfNoEntry: false })).toBeUndefined()
  writeFileSync(join(bare, 'package.json'), '{}')
  linkPackage(bare)
  linkPackage(bare)
  expect(readlinkSync(join(bare, 'node_modules/svc'))).toBe('../_generated')
})
