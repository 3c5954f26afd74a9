/**
 * The agent of an editor, and the console, whose server is a `svc dev`.
 *
 * @module-tag slow
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { connectAgent } from '../../testing/agents/agent-clients.ts'
import { argv } from '../argv.ts'
import { CLIENT, run } from '../harness.ts'
import { DevelopmentProcess } from './development-process.ts'

const BROKEN = `import { query } from 'svc'

export const broken = query({
  clients: ['public'],
  handler: () => {
    throw new TypeError('no luck') // the line
  },
})
`

const NOTES = `import { defineSchema, table, v } from 'svc'
export default defineSchema({ notes: table({ text: v.string() }) })
`
const DOCUMENT_ID = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-agents-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

test('an agent that starts first finds the svc dev, and the line of a failure', async () => {
  const directory = temporaryDirectory()
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

/** Starts a `svc dev` with one table and a document in it. */
async function served() {
  const directory = temporaryDirectory()
  const root = join(directory, 'root')
  const environment = { SERVICE_CONFIG_HOME: join(directory, 'config') }
  const start = async (more: readonly string[] = []) => {
    const development = new DevelopmentProcess(argv`--root ${root} --port 0 ${more}`)
    onTestFinished(() => development.stop())
    await development.next('ready', 0)
    return development
  }
  const development = await start(argv`--template empty`)
  const from = development.events.length
  writeFileSync(join(root, 'workspace/schema.ts'), NOTES)
  await development.next('served', from)
  const svc = (args: readonly string[]) =>
    run(argv`${CLIENT} ${args} --root ${root}`, { environment })
  await svc(argv`data put notes ${JSON.stringify({ text: 'a secret of a user' })}`)
  return { directory, root, environment, start, development, svc }
}

type Served = Awaited<ReturnType<typeof served>>

/** Sends a request to the management address, with the token of the author unless given. */
async function request(
  { root }: Served,
  {
    method = 'GET',
    path,
    token,
    body,
  }: {
    readonly method?: string
    readonly path: string
    readonly token?: string
    readonly body?: object
  },
) {
  const { managementUrl, accessToken } = JSON.parse(readFileSync(join(root, 'dev.json'), 'utf8'))
  const response = await fetch(managementUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${token ?? accessToken}`,
      'content-type': 'application/json',
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

test('the usual session of an agent at svc dev reads no document and changes nothing', async () => {
  const dev = await served()
  const { root, directory, environment, svc } = dev
  const before = (await svc(argv`data query notes`)).stdout
  expect(before).toContain('a secret of a user')
  const agent = await connectAgent(argv`${CLIENT} mcp --root ${root} --allow data:read`, {
    environment,
    directory,
  })
  onTestFinished(() => agent.close())
  const { document: self } = await agent.call('readSelf')
  expect(self.data.session).toMatchObject({ purpose: 'mcp', current: true })
  const [{ capabilities, scope }] = self.data.grants
  expect(capabilities).toContain('logs:read')
  expect(capabilities.every((each: string) => each.endsWith(':read'))).toBe(true)
  expect(capabilities).not.toContain('data:read')
  expect(scope.kind).toBe('environment')
  const target = 'channel:dev'
  const value = { type: 'object', value: [{ key: 'text', value: { type: 'string', value: 'x' } }] }
  const calls: readonly (readonly [string, object])[] = [
    ['queryDocuments', { body: { target, table: 'notes' } }],
    ['readDocument', { table: 'notes', documentId: DOCUMENT_ID, target }],
    ['insertDocument', { table: 'notes', body: { target, documentId: DOCUMENT_ID, value } }],
    ['publishWorkspace', { workspace: 'app' }],
    ['setConfiguration', { name: 'COLOUR', body: { value: 'blue' } }],
  ]
  for (const [name, given] of calls) {
    const { isError, text } = await agent.call(name, given)
    expect([name, isError, text]).toEqual([name, true, expect.stringContaining('CLIENT_TOOL_')])
    expect(text).not.toContain('a secret of a user')
  }
  expect((await svc(argv`data query notes`)).stdout).toBe(before)
  const line = argv`${CLIENT} mcp allow data:read --root ${root}`.map((word) => `'${word}'`)
  await run(['/usr/bin/script', '-qec', line.join(' '), '/dev/null'], {
    environment: { ...environment, PATH: '/usr/bin:/bin', TERM: 'dumb' },
    input: 'data:read\r',
  })
  const permitted = await agent.call('queryDocuments', { body: { target, table: 'notes' } })
  expect([permitted.isError, permitted.text]).toEqual([
    false,
    expect.stringContaining('a secret of a user'),
  ])
})

test('svc dev itself limits a derived session, and accepts no stale token', async () => {
  const dev = await served()
  const { projectId, environmentId } = JSON.parse(
    readFileSync(join(dev.root, 'service.json'), 'utf8'),
  )
  const base = `/v1/projects/${projectId}/environments/${environmentId}`
  const scope = { kind: 'environment', projectId, environmentId }
  const derived = await request(dev, {
    method: 'POST',
    path: '/v1/auth/sessions/derived',
    body: { capabilities: ['logs:read'], scope, lifetimeSeconds: 600, purpose: 'mcp' },
  })
  expect(derived.status).toBe(201)
  const { accessToken: token, session } = derived.body
  expect((await request(dev, { path: `${base}/logs`, token })).status).toBe(200)
  const query = {
    method: 'POST',
    path: `${base}/data/query`,
    body: { target: 'channel:dev', table: 'notes' },
  }
  expect(await request(dev, query)).toMatchObject({ status: 200, body: { items: [{}] } })
  expect((await request(dev, { ...query, token })).status).toBe(403)
  const path = `/v1/auth/sessions/${session.sessionId}`
  expect((await request(dev, { method: 'DELETE', path, token })).status).toBe(204)
  expect((await request(dev, { path: `${base}/logs`, token })).status).toBe(401)
  // The token of the author is as stale after the next start.
  const { accessToken } = JSON.parse(readFileSync(join(dev.root, 'dev.json'), 'utf8'))
  await dev.development.stop()
  await dev.start()
  for (const stale of [token, accessToken]) {
    expect((await request(dev, { path: `${base}/logs`, token: stale })).status).toBe(401)
  }
})

test('the console at svc dev derives its session, also after the next start', async () => {
  const dev = await served()
  const child = spawn(CLIENT, argv`console --root ${dev.root} --no-open --json`, {
    env: dev.environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exit = new Promise((resolve) => child.on('close', resolve))
  const lines = createInterface({ input: child.stdout })
  const [line] = await new Promise<string[]>((resolve) =>
    lines.once('line', (...all) => resolve(all)),
  )
  const { url } = JSON.parse(line!)
  const open = await fetch(url, {
    redirect: 'manual',
    headers: {
      'sec-fetch-site': 'none',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
    },
  })
  const cookie = open.headers.get('set-cookie')!.split(';')[0]!
  const page = new URL(open.headers.get('location')!, url)
  const status = async () => {
    const { environmentId } = JSON.parse(readFileSync(join(dev.root, 'service.json'), 'utf8'))
    const response = await fetch(new URL('call/readStatus', page), {
      method: 'POST',
      headers: {
        cookie,
        origin: page.origin,
        'sec-fetch-site': 'same-origin',
        'sec-fetch-mode': 'cors',
        'sec-fetch-dest': 'empty',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ environmentId }),
    })
    return response.status
  }
  const purposes = async () => {
    const { body } = await request(dev, { path: '/v1/auth/sessions' })
    return body.sessions.map(({ purpose }: { readonly purpose?: string }) => purpose ?? 'author')
  }
  expect(await purposes()).toEqual(['console', 'author'])
  expect(await status()).toBe(200)
  await dev.development.stop()
  await dev.start()
  expect(await purposes()).toEqual(['author'])
  expect(await status()).toBe(200)
  expect(await purposes()).toEqual(['console', 'author'])
  child.kill('SIGINT')
  await exit
  expect(await purposes()).toEqual(['author'])
})
