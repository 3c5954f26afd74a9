import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import about from '../../package.json' with { type: 'json' }
import { NODE_PATH } from '../../testing/servers/node-path.ts'
import { argv } from '../argv.ts'
import { CLIENT, PACKED_CLIENT, runSync, SERVER } from '../harness.ts'

let empty: string
beforeAll(() => {
  empty = mkdtempSync(join(tmpdir(), 'svc-e2e-empty-'))
})
afterAll(() => rmSync(empty, { recursive: true }))

test('both executables run from an empty directory with an empty environment', () => {
  for (const executable of [SERVER, CLIENT]) {
    const result = runSync([executable, 'version'], { directory: empty })
    expect(result.stderr).toBe('')
    expect(result.status).toBe(0)
    expect(result.stdout).toContain(about.version)
  }
  expect(readdirSync(empty)).toEqual([])
})

test('each help text lists every command of its program', () => {
  const server = runSync(argv`${SERVER} --help`, { directory: empty })
  expect(server.status).toBe(0)
  for (const verb of [
    'check',
    'migrate',
    'recover-bootstrap',
    'recover-owner',
    'serve',
    'version',
  ]) {
    expect(server.stdout).toContain(verb)
  }
  const client = runSync(argv`${CLIENT} --help`, { directory: empty })
  expect(client.status).toBe(0)
  for (const verb of ['login', 'init', 'link', 'publish', 'release', 'promote', 'status']) {
    expect(client.stdout).toContain(verb)
  }
})

test('an unknown command exits with 2 and prints only to standard error', () => {
  for (const executable of [SERVER, CLIENT]) {
    const result = runSync([executable, 'no-such-verb'], { directory: empty })
    expect(result.status).toBe(2)
    expect(result.stdout).toBe('')
    expect(result.stderr).not.toBe('')
  }
})

test('the server reports the first missing setting', () => {
  for (const mode of ['check', 'migrate', 'serve']) {
    const result = runSync([SERVER, mode], { directory: empty })
    expect(result.status).toBe(78)
    expect(result.stderr).toContain('SERVER_CONFIGURATION_MISSING')
    expect(result.stderr).toContain('SERVICE_IDENTITY_DATABASE_URL')
  }
})

test('the packed client prints the same as the compiled one, under Node', () => {
  for (const args of [
    argv`--help`,
    argv`version`,
    argv`status --help`,
    argv`docs`,
    argv`docs errors`,
  ]) {
    const packed = runSync(argv`node ${PACKED_CLIENT} ${args}`, {
      directory: empty,
      environment: { PATH: NODE_PATH },
    })
    const compiled = runSync(argv`${CLIENT} ${args}`, { directory: empty })
    expect(packed.stderr).toBe('')
    expect(packed.status).toBe(0)
    expect(packed.stdout).toBe(compiled.stdout)
  }
})
