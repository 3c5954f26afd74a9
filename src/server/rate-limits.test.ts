/**
 * The server as a process: its rate limits, and the peers that they apply to.
 *
 * @module-tag slow
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TEST_PEPPER, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { type ServerProcess, startServer } from '../../testing/servers/server-process.ts'

let t: TestIdentity
let server: ServerProcess | undefined
let directory: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-limits-'))
  t = await testIdentity()
})

afterEach(async () => {
  await server?.stop()
  await t.dispose()
  rmSync(directory, { recursive: true, force: true })
})

async function serve(given: Record<string, string> = {}): Promise<void> {
  const executable = join(directory, 'svc-server')
  const main = join(import.meta.dirname, '../main.ts')
  writeFileSync(executable, `#!/bin/sh\nexec '${process.execPath}' '${main}' svc-server "$@"\n`)
  chmodSync(executable, 0o700)
  server = await startServer({
    executable,
    directory,
    environment: {
      PATH: process.env.PATH ?? '',
      SERVICE_IDENTITY_DATABASE_URL: t.url,
      SERVICE_PLATFORM_IDENTITY_PEPPER: TEST_PEPPER.reveal(),
      SERVICE_STATE_DIRECTORY: t.stateDirectory,
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      ...given,
    },
  })
}

/** Sends 40 concurrent requests with a wrong token and these headers. Returns the statuses. */
async function failures(forwarded: (i: number) => string): Promise<Set<number>> {
  const responses = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      fetch(`${server?.management}/v1/auth/refresh`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': forwarded(i) },
        body: JSON.stringify({ refreshToken: 'wrong' }),
      }),
    ),
  )
  for (const each of responses.filter(({ status }) => status === 429)) {
    expect(Number(each.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  return new Set(responses.map(({ status }) => status))
}

test('one peer is limited even if it varies X-Forwarded-For', async () => {
  await serve()
  // Concurrent requests may all be rejected, and the budget refills meanwhile on a slow machine.
  await expect.poll(() => failures((i) => `203.0.113.${i}`)).toContain(429)
  const health = await fetch(`${server?.management}/health/ready`)
  expect(health.status).toBe(200)
})

test('behind a trusted proxy each client has its own limit', async () => {
  await serve({ SERVICE_MANAGEMENT_TLS_TERMINATED: 'true' })
  await expect.poll(() => failures(() => '203.0.113.9, 198.51.100.1')).toContain(429)
  expect(await failures((i) => `198.51.100.1, 203.0.113.${i}`)).toEqual(new Set([401]))
})
