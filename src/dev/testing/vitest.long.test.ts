import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeWorkspace } from '../new-workspaces.ts'

const VITEST = join(import.meta.dirname, '../../../node_modules/vitest')

test('Vitest imports the modules of a Workspace', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-vitest-'))
  writeWorkspace(directory, { name: 'Chat' })
  symlinkSync(VITEST, join(directory, 'node_modules/vitest'))
  const text = `import { expect, test } from 'vitest'
import { v } from 'svc'
import { api } from './_generated/api'
import schema from './schema'
import * as messages from './functions/messages'
test('imports', () => {
  expect(() => v.id('a b')).toThrow(expect.objectContaining({ name: 'DefinitionError' }))
  expect(api.messages.send.name).toBe('messages.send')
  expect(schema[Symbol.for('svc.schema')]).toBeTruthy()
  expect(Object.keys(messages).sort()).toEqual(['list', 'send'])
})
`
  writeFileSync(join(directory, 'vitest.test.ts'), text)
  const environment = { ...process.env, NO_COLOR: '1', VITEST: '' }
  const { status, stdout, stderr } = spawnSync('node', [join(VITEST, 'vitest.mjs'), 'run'], {
    cwd: directory,
    encoding: 'utf8',
    env: environment,
  })
  expect(stdout + stderr).toMatch(/Tests +1 passed/)
  expect(status).toBe(0)
  rmSync(directory, { recursive: true })
})
