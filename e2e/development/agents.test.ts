/** The agent of an editor whose server is a `svc dev`. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { connectAgent } from '../../testing/agents/agent-clients.ts'
import { argv } from '../argv.ts'
import { CLIENT } from '../harness.ts'
import { DevelopmentProcess } from './development-process.ts'

const BROKEN = `import { query } from 'svc'

export const broken = query({
  clients: ['public'],
  handler: () => {
    throw new TypeError('no luck') // the line
  },
})
`

test('an agent that starts first finds the svc dev, and the line of a failure', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-agents-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const root = join(directory, 'root')
  const agent = await connectAgent(argv`${CLIENT} mcp --root ${root}`, {
    environment: { SERVICE_CONFIG_HOME: join(directory, 'config') },
    directory,
  })
  onTestFinished(() => agent.close())
  expect((await agent.call('readStatus')).document.error.code).toBe('CLIENT_ROOT_INVALID')
  expect(await agent.read('svc://docs/functions')).toMatch(/^# Functions/)
  const development = new DevelopmentProcess(argv`--root ${root} --template empty --port 0`)
  onTestFinished(() => development.stop())
  await development.next('ready', 0)
  const workspace = join(root, 'workspace')
  const editors = JSON.parse(readFileSync(join(workspace, '.mcp.json'), 'utf8'))
  expect(editors.mcpServers.svc.args).toEqual(['mcp', '--root', '..'])
  const from = development.events.length
  mkdirSync(join(workspace, 'functions'), { recursive: true })
  writeFileSync(join(workspace, 'functions/luck.ts'), BROKEN)
  await development.next('served', from)
  expect(await development.call('luck.broken', 'query')).toBe('FUNCTION_FAILED')
  expect((await agent.call('readStatus')).isError).toBe(false)
  const names = (await agent.tools()).map(({ name }) => name)
  expect(names).toContain('listLogs')
  expect(names).not.toContain('queryDocuments')
  expect(names).not.toContain('readSelf')
  await expect
    .poll(async () => JSON.parse(await agent.read('svc://environment/failures')).data.failures)
    .toContainEqual(
      expect.objectContaining({
        function: 'luck.broken',
        trace: expect.stringContaining('functions/luck.ts:6'),
        source: expect.arrayContaining([expect.stringContaining('// the line')]),
      }),
    )
})
