import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { IDENTITY_TEMPLATE, TEST_PEPPER } from '../../build/testing/identity.ts'
import { freePort } from '../../build/testing/ports.ts'
import { freshDatabase, type TestDatabase } from '../../build/testing/postgres.ts'

/*
 * Goal: the process itself lives and ends as promised. Method: the program from its source, with
 * identity alone, and a standard error that the test chose.
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

/** Once it answers; `before` is run by the shell that becomes the server. */
async function serve(stderr: number | 'ignore' = 'ignore', before = '') {
  const port = await freePort()
  const listen = `127.0.0.1:${port}`
  const script = `${before}\nexec "$0" "$@"`
  const child = spawn('sh', ['-c', script, process.execPath, MAIN, 'svc-server', 'serve'], {
    env: {
      SERVICE_IDENTITY_DATABASE_URL: database.url,
      SERVICE_PLATFORM_IDENTITY_PEPPER: TEST_PEPPER.reveal(),
      SERVICE_STATE_DIRECTORY: join(directory, 'state'),
      SERVICE_MANAGEMENT_LISTEN: listen,
    },
    stdio: ['ignore', 'ignore', stderr],
  })
  server = child
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? code))
  })
  const isLive = async () => {
    const options = { signal: AbortSignal.timeout(5_000) }
    const reply = await fetch(`http://${listen}/health/live`, options).catch(() => null)
    return reply?.status
  }
  await expect.poll(isLive, { timeout: 25_000 }).toBe(200)
  return { child, ended, isLive, port }
}

test('a full disk under the log stops neither the work of the server nor its end', async () => {
  const full = openSync('/dev/full', 'w')
  const { child, ended, isLive } = await serve(full)
  closeSync(full)
  expect(await isLive()).toBe(200)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})

test('a log that nobody reads does not keep the server from its end', async () => {
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

test('a second signal ends the server at once, whatever is in flight', async () => {
  const { child, ended, isLive, port } = await serve()
  const socket = connect(port, '127.0.0.1')
  const head = 'POST /v1/auth/exchange HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  // The server asks for the body of a request when it has read the head.
  const asks = once(socket, 'data')
  socket.write(`${head}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`)
  expect(String(await asks)).toMatch(/^HTTP\/1\.1 100 /)
  socket.on('error', () => undefined)
  child.kill('SIGTERM')
  await expect.poll(isLive, { timeout: 25_000 }).toBeUndefined()
  expect(child.exitCode).toBeNull()
  child.kill('SIGINT')
  expect(await ended).toBe('SIGINT')
  socket.destroy()
})

/** Sends the signals to a server and returns its exit and its log. */
async function logOf(before: string, signals: readonly NodeJS.Signals[]) {
  const path = join(directory, 'log')
  const file = openSync(path, 'w')
  const { child, ended } = await serve(file, before)
  closeSync(file)
  for (const signal of signals) child.kill(signal)
  return [await ended, readFileSync(path, 'utf8')]
}

test('a hangup ends the server as other signals do', async () => {
  const [exit, log] = await logOf('', ['SIGHUP'])
  expect([exit, log]).toEqual([0, expect.stringContaining('Stopping after SIGHUP.')])
})

test.skipIf(process.platform !== 'linux')('under nohup a hangup is nothing', async () => {
  const [exit, log] = await logOf("trap '' HUP", ['SIGHUP', 'SIGTERM'])
  expect([exit, log]).toEqual([0, expect.stringContaining('Stopping after SIGTERM.')])
})
