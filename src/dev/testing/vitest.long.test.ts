import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { NODE_PATH } from '../../../testing/servers/node-path.ts'
import { guideExample } from '../../../testing/test-kit/guides.ts'
import { kitWorkspace } from '../../../testing/test-kit/workspaces.ts'

const VITEST = join(import.meta.dirname, '../../../node_modules/vitest')

test('Vitest imports the modules of a Workspace and runs the example of the guide', () => {
  const workspace = kitWorkspace('chat')
  const { directory, executable } = workspace
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
  workspace.write('vitest.test.ts', text)
  workspace.write('tests/guide.test.ts', guideExample('vitest'))
  const files = ['vitest.test.ts', 'tests/guide.test.ts']
  const { status, stdout, stderr } = spawnSync(
    'node',
    [join(VITEST, 'vitest.mjs'), 'run', ...files],
    {
      cwd: directory,
      encoding: 'utf8',
      env: {
        ...process.env,
        PATH: NODE_PATH,
        NO_COLOR: '1',
        VITEST: '',
        SVC_EXECUTABLE: executable,
      },
    },
  )
  expect(stdout + stderr).toMatch(/Tests +2 passed/)
  expect(status).toBe(0)
  workspace.remove()
})
