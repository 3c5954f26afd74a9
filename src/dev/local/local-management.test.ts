/**
 * Goal: commands of the client act on a running `svc dev`, and no other program can.
 * Method: `svc dev` and the client in this process, connected by the loopback address.
 */
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestClient } from '../../../testing/client/test-client.ts'
import {
  type EventOf,
  LocalDevelopment,
  notesSchema,
} from '../../../testing/development/local-development.ts'
import { parseLocalServer } from '../../wire/files/local-server.ts'

const VERSION_ONLY = `import { query, v } from 'svc'
export const version = query({ clients: ['public'], returns: v.string(), handler: () => '2' })
`

const BACKEND = `import { internalMutation, query, v } from 'svc'
const clients = ['confidential'] as const
export const secret = query({ clients, returns: v.string(), handler: () => 'for backends' })
export const long = query({ clients: ['public'], handler: () => 'x'.repeat(9_000_000) })
export const wrong = query({
  clients: ['public'], returns: v.string(), handler: () => 5n as never,
})
export const tick = internalMutation({ returns: v.null(), handler: () => null })
`

const CRONS = `import { cronJobs } from 'svc'
import { internal } from './_generated/api'
export default cronJobs({
  yearly: { schedule: '0 0 1 1 *', function: internal.backend.tick },
})
`

let dev: LocalDevelopment
let ready: EventOf<'ready'>
const client = new TestClient()
beforeAll(async () => {
  dev = new LocalDevelopment()
  ready = await dev.start()
})
afterAll(async () => {
  await dev.dispose()
  client[Symbol.dispose]()
})

const serverFile = () => join(dev.root, 'dev.json')
const server = () => parseLocalServer(readFileSync(serverFile()))
/** Runs a command and fails unless it succeeds. */
async function svc(...argv: string[]): Promise<string> {
  const { exit, out, err } = await client.run(...argv)
  expect({ exit, err }).toMatchObject({ exit: 0 })
  return out
}

describe('a running svc dev', () => {
  test('svc dev prints a command that calls a Function', { tags: ['slow'] }, async () => {
    expect(ready.try).toBe(`svc call notes.fail --root ${dev.root}`)
    expect(ready).toMatchObject({
      console: `svc console --root ${dev.root}`,
      agents: `svc mcp --root ${dev.root}`,
    })
    const { err } = await client.run(...ready.try!.split(' ').slice(1))
    expect(err).toContain('FUNCTION_FAILED')
    expect(await svc('call', 'notes.version', '--root', dev.root)).toBe('"1"\n')
  })

  test('commands with the root of svc dev need no address, key or target', {
    tags: ['slow'],
  }, async () => {
    const at = ['--root', dev.root]
    expect(await svc('call', 'notes.add', '{"text":"first"}', ...at)).toBe('null\n')
    expect(await svc('functions', ...at)).toContain('notes.list')
    expect(await svc('tables', ...at)).toContain('byText')
    expect(await svc('status', ...at)).toMatch(/CHANNEL[\s\S]*dev /)
    expect(await svc('data', 'query', 'notes', ...at)).toContain('{"text":"first"}')
    await svc('data', 'put', 'notes', '{"text":"second"}', ...at)
    expect(JSON.parse(await svc('call', 'notes.list', ...at))).toEqual(['first', 'second'])
    await expect
      .poll(() => svc('logs', ...at, '--grep', 'broken on purpose'))
      .toContain('notes.fail')
    // A pattern matches the printed text, including the codes.
    expect(await svc('logs', ...at, '--grep', 'errorCode=FUNCTION_FAILED')).toContain('notes.fail')
    expect(await svc('logs', ...at, '--grep', 'errorCode=NO_SUCH')).toBe('')
    expect(await svc('health', ...at)).toContain('healthy')
  })

  test('commands call and watch Functions of confidential clients', {
    tags: ['slow'],
  }, async () => {
    const served = dev.next('served')
    dev.write('functions/backend.ts', BACKEND)
    await served
    const at = ['--root', dev.root]
    expect(await svc('call', 'backend.secret', ...at)).toBe('"for backends"\n')
    const shown = Promise.withResolvers<string>()
    client.onOutput = shown.resolve
    const watching = client.run('watch', 'backend.secret', ...at, '--json')
    expect(JSON.parse(await shown.promise)).toMatchObject({ result: 'for backends' })
    client.interrupt()
    expect(await watching).toMatchObject({ exit: 130 })
    client.onOutput = () => {}
    // The key of pages is public, as is that of an application.
    expect((await dev.call('backend.secret')).error).toMatchObject({ code: 'AUTH_POLICY_DENIED' })
  })

  test('a failed call names the log, which has the reason', { tags: ['slow'] }, async () => {
    const at = ['--root', dev.root]
    const codes = { 'backend.long': 'LIMIT_EXCEEDED', 'backend.wrong': 'RESULT_INVALID' }
    for (const [name, code] of Object.entries(codes)) {
      const failed = await client.run('call', name, ...at)
      expect(failed.err).toContain(code)
      const [, command = ''] = /Run `svc (logs .*)`/.exec(failed.err) ?? []
      const reason = code === 'LIMIT_EXCEEDED' ? 'result: at most 8 MiB' : 'a string'
      // Records are written in batches, so one may follow the answer of its call.
      await expect.poll(() => svc(...command.split(' '))).toContain(reason)
      expect(await svc('logs', ...at, '--grep', `errorCode=${code}`)).toContain(name)
    }
  })

  test('commands list, disable and run the Crons of svc dev', { tags: ['slow'] }, async () => {
    const at = ['--root', dev.root]
    const none = await client.run('crons', 'disable', 'yearly', ...at)
    expect(none).toMatchObject({ exit: 7 })
    const served = dev.next('served')
    dev.write('crons.ts', CRONS)
    await served
    await dev.next('crons', ({ crons }) => crons.length === 1, 0)
    expect(await svc('crons', 'list', ...at)).toMatch(/yearly +enabled/)
    expect(await svc('crons', 'disable', 'yearly', ...at)).toContain('yearly is disabled')
    const ran = dev.next('ran', ({ cron }) => cron === 'yearly')
    await svc('crons', 'run', 'yearly', ...at)
    expect((await ran).outcome).toBe('ok')
    expect(await svc('scheduled', 'list', ...at)).toContain('succeeded')
    expect(await svc('crons', 'enable', 'yearly', ...at)).toContain('yearly is enabled')
  })

  test('--dev finds svc dev from a directory below its root', async () => {
    const below = join(dev.root, 'a', 'b')
    mkdirSync(below, { recursive: true })
    // A file of the same name, as in the directory of a page, is ignored.
    writeFileSync(join(below, 'dev.json'), '{"url":"http://127.0.0.1:1"}')
    expect(await svc('call', 'notes.version', '--dev', '--root', below)).toBe('"1"\n')
  })

  test('svc watch follows svc dev until it is interrupted', async () => {
    const shown = Promise.withResolvers<string>()
    client.onOutput = shown.resolve
    const watching = client.run('watch', 'notes.version', '--root', dev.root, '--json')
    expect(JSON.parse(await shown.promise)).toMatchObject({ revision: '1', result: '1' })
    client.interrupt()
    expect(await watching).toMatchObject({ exit: 130 })
    client.onOutput = () => {}
  })

  test('svc dev rejects other tokens, and changes that the Workspace would undo', async () => {
    const { managementUrl, accessToken } = server()
    const { environmentId, projectId } = JSON.parse(
      readFileSync(join(dev.root, 'service.json'), 'utf8'),
    )
    const path = `${managementUrl}/v1/projects/${projectId}/environments/${environmentId}/status`
    const status = async (token: string | null) => {
      const headers = token === null ? {} : { authorization: `Bearer ${token}` }
      return (await fetch(path, { headers })).status
    }
    expect(await status(accessToken.reveal())).toBe(200)
    expect(await status(null)).toBe(401)
    expect(await status(`rk_at_v1_${'A'.repeat(43)}`)).toBe(401)
    expect((await fetch(`${managementUrl}/v1/operators`)).status).toBe(404)
    const set = await client.run('config', 'set', 'CURRENCY', 'EUR', '--root', dev.root)
    expect(set).toMatchObject({ exit: 3 })
    expect(set.err).toContain('configuration:manage')
  })

  test('the token is in a file of this user, which every start replaces', {
    tags: ['slow'],
  }, async () => {
    expect(statSync(serverFile()).mode & 0o777).toBe(0o600)
    const first = server().accessToken.reveal()
    await dev.stop()
    const none = await client.run('status', '--dev', '--root', dev.root)
    expect(none).toMatchObject({ exit: 8, err: expect.stringContaining('svc dev --root DIR') })
    await dev.start()
    expect(server().accessToken.reveal()).not.toBe(first)
    expect(await svc('call', 'notes.version', '--dev', '--root', dev.root)).toBe('"1"\n')
  })

  test('svc dev opens only the application API to the network, and only with --host', {
    tags: ['slow'],
  }, async () => {
    const addresses = Object.values(networkInterfaces())
      .flatMap((each = []) => each)
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
    expect(ready.networkUrls).toEqual([])
    await dev.stop()
    const { networkUrls, applicationKey } = await dev.start({ opensToNetwork: true })
    expect(networkUrls).toHaveLength(addresses.length)
    for (const url of networkUrls) {
      const body = JSON.stringify({
        version: 1,
        target: 'channel:dev',
        function: 'notes.version',
        arguments: { type: 'object', value: [] },
      })
      const page = url.replace(/:[0-9]+$/, ':5173')
      const send = (key: Record<string, string>, origin = page) => {
        const headers = { 'content-type': 'application/json', origin, ...key }
        return fetch(`${url}/v1/query`, { method: 'POST', headers, body })
      }
      const key = { 'x-service-key': applicationKey }
      expect((await send({})).status).toBe(401)
      expect((await send(key, 'http://192.0.2.1:5173')).status).toBe(403)
      const answered = await send(key)
      expect(answered.status).toBe(200)
      expect(answered.headers.get('access-control-allow-origin')).toBe(page)
      const management = server().managementUrl.replace('127.0.0.1', new URL(url).hostname)
      await expect(fetch(management)).rejects.toThrow()
    }
    expect(server().url).toMatch(/^http:\/\/127\.0\.0\.1:/)
  })
})

describe('a change of the schema', () => {
  test('a required field that documents lack is rejected with the steps to fill it', {
    tags: ['slow'],
  }, async () => {
    await dev.stop()
    await dev.start({ reset: true })
    await svc('call', 'notes.add', '{"text":"kept"}', '--root', dev.root)
    const rejected = dev.next('rejected')
    dev.write('functions/notes.ts', VERSION_ONLY)
    dev.write('schema.ts', notesSchema().replaceAll('text', 'body'))
    expect((await rejected).next).toEqual([
      expect.stringContaining('Make `body` optional'),
      expect.stringContaining('a migration in migrations.ts'),
      expect.stringContaining('If it replaces another field'),
      expect.stringContaining('give it a new name'),
      expect.stringContaining('--reset'),
    ])
  })

  test('an empty schema.ts is rejected with what to write', async () => {
    const rejected = dev.next('rejected')
    dev.write('schema.ts', '')
    expect((await rejected).details.join()).toContain('export default defineSchema({})')
  })

  test('a removed table keeps its documents, and a notice says how to delete them', {
    tags: ['slow'],
  }, async () => {
    const removed = dev.next('served', ({ changes }) => changes.tables.removed.length > 0)
    dev.write('schema.ts', `import { defineSchema } from 'svc'\nexport default defineSchema({})`)
    expect((await removed).warnings.join()).toMatch(/table notes.* stay stored.*--reset/)
    const again = dev.next('served')
    dev.write('schema.ts', notesSchema())
    await again
    expect(await svc('data', 'query', 'notes', '--root', dev.root)).toContain('kept')
  })
})

test('a command in a directory that svc dev does not serve says what to run', async () => {
  const outside = await client.run('status')
  expect(outside).toMatchObject({ exit: 8 })
  expect(outside.err).toContain('--root DIR')
  const both = await client.run('status', '--dev', '--remote')
  expect(both).toMatchObject({ exit: 2, err: expect.stringContaining('not both') })
})
