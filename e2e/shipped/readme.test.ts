/**
 * Runs the first steps of README.md as they are written. Only the database and the two addresses
 * are replaced, as a reader would do.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../testing/databases/postgres.ts'
import { freePort } from '../../testing/servers/ports.ts'
import { CLIENT, run, SERVER } from '../harness.ts'

const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')

test('the first steps of README.md lead to a successful call', async () => {
  const walk = /<!-- walk -->\n```sh\n([\s\S]*?)```/.exec(README)?.[1] ?? ''
  expect(walk).toContain('svc call channels.list')
  const database = await freshDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-readme-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const tools = join(folder, 'bin')
  const empty = join(folder, 'empty')
  for (const path of [tools, empty]) mkdirSync(path)
  symlinkSync(SERVER, join(tools, 'svc-server'))
  symlinkSync(CLIENT, join(tools, 'svc'))
  const [management, application] = await Promise.all([freePort(), freePort()])
  const script = walk
    .replace("'postgres://user:password@127.0.0.1:5432/svc'", `'${database.url}'`)
    .replaceAll('127.0.0.1:3220', `127.0.0.1:${management}`)
    .replaceAll('127.0.0.1:3210', `127.0.0.1:${application}`)
  const result = await run(['/bin/sh', '-e', '-c', `trap 'kill $!; wait' EXIT\n${script}`], {
    directory: empty,
    environment: {
      PATH: `${tools}:${process.env.PATH}`,
      SERVICE_CONFIG_HOME: join(folder, 'config'),
      SERVICE_MANAGEMENT_LISTEN: `127.0.0.1:${management}`,
      SVC_ALLOW_LOOPBACK_HTTP: 'true',
    },
  })
  const log = readFileSync(join(empty, 'server.log'), 'utf8')
  await database.drop()
  expect(result.status, result.stderr + log).toBe(0)
  expect(result.stdout).toContain('"name": "general"')
})
