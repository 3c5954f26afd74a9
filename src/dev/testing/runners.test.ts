import { spawnSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeWorkspace } from '../new-workspaces.ts'
import { linkPackage } from './package-link.ts'

const BUN = join(import.meta.dirname, '../../../node_modules/.bin/bun')
let directory = ''

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-runners-'))
  writeWorkspace(directory, { name: 'Chat' })
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Runs a program in the Workspace, without the executable; returns its status and its output. */
function run(program: string, ...parameters: readonly string[]) {
  const options = { cwd: directory, encoding: 'utf8' } as const
  const { status, stdout, stderr } = spawnSync(program, parameters, options)
  return { status, output: stdout + stderr }
}

const ASSERTIONS = `
  assert.throws(() => v.id('a b'), { name: 'DefinitionError' })
  assert.equal(api.messages.send.name, 'messages.send')
`

test('node:test imports "svc" and the references', () => {
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

test('a package that is installed as svc stays, and no link is made without a package.json', () => {
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
