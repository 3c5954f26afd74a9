/**
 * @module-tag slow
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { execute } from '../../testing/databases/cluster.ts'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { IDENTITY_TEMPLATE, TEST_PEPPER } from '../../testing/identity.ts'
import { freePort } from '../../testing/servers/ports.ts'

/*
 * Goal: the process starts, stays up and stops as promised. Method: the program runs from its
 * source, with identity alone, and each test chooses its standard error.
 */

const MAIN = join(import.meta.dirname, '../main.ts')

let directory: string
let database: TestDatabase
let server: ChildProcess | undefined

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-serve-'))
  mkdirSync(join(directory, 'state'), { mode: 0o700 })
  database = await freshDatabase(IDENTITY_TEMPLATE)
})

afterEach(async () => {
  server?.kill('SIGKILL')
  server = undefined
  await database.drop()
  rmSync(directory, { recursive: true })
})

function settings(listen: string): Record<string, string> {
  return {
    SERVICE_IDENTITY_DATABASE_URL: database.url,
    SERVICE_PLATFORM_IDENTITY_PEPPER: TEST_PEPPER.reveal(),
    SERVICE_STATE_DIRECTORY: join(directory, 'state'),
    SERVICE_MANAGEMENT_LISTEN: listen,
  }
}

/** Starts a server and waits until it is ready. The shell that becomes it runs `before` first. */
async function serve(stderr: number | 'ignore' = 'ignore', before = '') {
  const port = await freePort()
  const listen = `127.0.0.1:${port}`
  const script = `${before}\nexec "$0" "$@"`
  const child = spawn('sh', ['-c', script, process.execPath, MAIN, 'svc-server', 'serve'], {
    env: settings(listen),
    stdio: ['ignore', 'ignore', stderr],
  })
  server = child
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? code))
  })
  const probe = async (path: string) => {
    const options = { signal: AbortSignal.timeout(60_000) }
    const reply = await fetch(`http://${listen}${path}`, options).catch(() => null)
    return reply?.status
  }
  const isReady = () => probe('/health/ready')
  await expect.poll(isReady).toBe(200)
  return { child, ended, isReady, isLive: () => probe('/health/live'), port }
}

test('the start removes audit records that are older than their retention', async () => {
  const audit = async () => {
    const client = new Client({ connectionString: database.url })
    await client.connect()
    const { rows } = await client.query('select operation from service_platform_audit')
    await client.end()
    return rows.map((row) => row.operation)
  }
  await execute(
    database.url,
    `insert into service_platform_audit (audit_id, operation, outcome, at_micros)
     values ('aud_00000000000000000000000001', 'session.create', 'succeeded', 1)`,
  )
  await serve()
  await expect.poll(audit, { timeout: 60_000 }).toEqual(['bootstrap.create'])
})

test('a full disk has a retryable exit code, and an invalid state directory has not', () => {
  const start = (before: string, state: string) => {
    const script = `${before}\nexec "$0" "$@"`
    const args = ['-c', script, process.execPath, MAIN, 'svc-server', 'serve']
    const env = { ...settings('127.0.0.1:0'), SERVICE_STATE_DIRECTORY: state }
    const { status, stderr } = spawnSync('sh', args, { env, encoding: 'utf8' })
    return [status, /SERVER_[A-Z_]+/.exec(stderr)?.[0]]
  }
  // Each write to a file fails with EFBIG, which stands for EIO and ENOSPC too.
  const full = start('trap "" XFSZ; ulimit -f 0', join(directory, 'state'))
  expect(full).toEqual([1, 'SERVER_STATE_DIRECTORY_UNAVAILABLE'])
  expect(start('', '/proc/state')).toEqual([78, 'SERVER_STATE_DIRECTORY_INVALID'])
})

test('the start fails with another pepper than that of the database', async () => {
  const { child, ended } = await serve()
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  const { status, stderr } = spawnSync(process.execPath, [MAIN, 'svc-server', 'serve'], {
    env: {
      ...settings('127.0.0.1:0'),
      SERVICE_PLATFORM_IDENTITY_PEPPER: 'A'.repeat(43),
      // Without effect here; an operator may have left it in the settings.
      SERVICE_PEPPER_CHANGE_CONFIRM: 'void-every-session-and-invitation',
    },
    encoding: 'utf8',
  })
  expect(status).toBe(78)
  expect(stderr).toContain('svc-server: SERVER_IDENTITY_PEPPER_MISMATCH: ')
  expect(stderr).not.toContain('server.ready')
})

test('a server whose log is on a full disk serves and stops', async () => {
  const full = openSync('/dev/full', 'w')
  const { child, ended, isLive } = await serve(full)
  closeSync(full)
  expect(await isLive()).toBe(200)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})

test('a server stops although its log is not read', async () => {
  const path = join(directory, 'pipe')
  spawnSync('mkfifo', [path])
  const filling = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const fill = (bytes: number) => {
    try {
      for (;;) writeSync(filling, Buffer.alloc(bytes))
    } catch {
      // It is full.
    }
  }
  fill(4096)
  fill(1)
  const full = openSync(path, constants.O_RDWR)
  const { child, ended } = await serve(full)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  closeSync(filling)
  closeSync(full)
})

test('a second signal terminates the server at once, with requests in flight', async () => {
  const { child, ended, isLive, isReady, port } = await serve()
  const socket = connect(port, '127.0.0.1')
  const head = 'POST /v1/auth/exchange HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  const lines = `${head}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n{`
  socket.on('error', () => undefined).write(lines)
  // The server has read the request once it asks for the body.
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 100 /)
  child.kill('SIGTERM')
  await expect.poll(isReady).toBe(503)
  expect([await isLive(), child.exitCode]).toEqual([200, null])
  child.kill('SIGINT')
  expect(await ended).toBe('SIGINT')
  socket.destroy()
})

test('a hangup, such as the end of its terminal, does not stop the server', async () => {
  const { child, ended, isLive } = await serve()
  child.kill('SIGHUP')
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect([await isLive(), child.exitCode, child.signalCode]).toEqual([200, null, null])
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})
