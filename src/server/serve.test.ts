import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
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

/** Once it answers; `stderr` is a descriptor or a pipe that the test reads or not. */
async function serve(stderr: number | 'pipe') {
  const listen = `127.0.0.1:${await freePort()}`
  const child = spawn(process.execPath, [MAIN, 'serve'], {
    argv0: 'svc-server',
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
    const options = { signal: AbortSignal.timeout(500) }
    const reply = await fetch(`http://${listen}/health/live`, options).catch(() => null)
    return reply?.status
  }
  await expect.poll(isLive, { interval: 50, timeout: 10_000 }).toBe(200)
  return { child, ended, isLive }
}

test('a full disk under the log stops neither the work of the server nor its end', async () => {
  const full = openSync('/dev/full', 'w')
  const { child, ended, isLive } = await serve(full)
  closeSync(full)
  expect(await isLive()).toBe(200)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})
