import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  type FakeServer,
  failure,
  newId,
  type Recorded,
} from '../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../testing/client/test-client.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

const STATUS = ['status', '--remote', '--root', 'root', '--json']

function stored(): { [key: string]: Json } {
  return parseStrictJson(readFileSync(client.credentials)) as { [key: string]: Json }
}

function refreshes(): Recorded[] {
  return server.requestsTo('POST', '/v1/auth/refresh')
}

const PROCESSES = process.env.SVC_TEST_LONG === '1' ? 16 : 6

describe('a session', () => {
  it('a session is refreshed once after a 401, and stored before its token is used', {
    tags: ['slow'],
  }, async () => {
    server.expireAccess()
    let storedAtUse: Json | undefined
    server.intercept = ({ path, headers }) => {
      if (path.endsWith('/status') && refreshes().length === 1) {
        storedAtUse = `Bearer ${stored().accessToken}` === headers.authorization
      }
      return null
    }
    expect((await client.run(...STATUS)).exit).toBe(0)
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `GET ${server.base}/status`,
      'POST /v1/auth/refresh',
      `GET ${server.base}/status`,
    ])
    expect(storedAtUse).toBe(true)
    expect(refreshes()[0]!.headers.authorization).toBeUndefined()
  })

  it('a session is refreshed before its access token ends', async () => {
    const soon = String(BigInt(Date.now() + 20_000) * 1000n)
    writeFileSync(client.credentials, JSON.stringify({ ...stored(), accessExpiresAtMicros: soon }))
    expect((await client.run(...STATUS)).exit).toBe(0)
    expect(server.requests.map(({ path }) => path)).toEqual([
      '/v1/auth/refresh',
      `${server.base}/status`,
    ])
  })

  it('a session has ended if it is rejected after a refresh', async () => {
    server.intercept = ({ path }) =>
      path.endsWith('/status') ? failure('PLATFORM_AUTHENTICATION_FAILED') : null
    expect((await client.run(...STATUS)).exit).toBe(3)
    expect(refreshes()).toHaveLength(1)
  })

  it('stays stored if its refresh is rejected, lost or fails', async () => {
    server.expireAccess()
    const before = stored()
    for (const [reply, exit] of [
      [failure('PLATFORM_AUTHENTICATION_FAILED'), 3],
      [failure('PLATFORM_UNAVAILABLE'), 5],
      ['drop', 9],
    ] as const) {
      server.intercept = ({ path }) => (path === '/v1/auth/refresh' ? reply : null)
      expect((await client.run(...STATUS)).exit).toBe(exit)
      expect(stored()).toEqual(before)
    }
    expect(refreshes()).toHaveLength(3)
  })

  it('adopts the token that another process stored while it waited', async () => {
    server.expireAccess()
    server.intercept = ({ path, headers }) => {
      if (!path.endsWith('/status') || headers.authorization !== before) return null
      // Another process refreshes between the 401 and the read of the file.
      const login = server.login() as { accessToken: string; refreshToken: string }
      const { accessToken, refreshToken } = login
      writeFileSync(client.credentials, JSON.stringify({ ...stored(), accessToken, refreshToken }))
      return failure('PLATFORM_AUTHENTICATION_FAILED')
    }
    const before = `Bearer ${stored().accessToken}`
    expect((await client.run(...STATUS)).exit).toBe(0)
    expect(refreshes()).toEqual([])
  })

  it('a session is not sent to another server after a login has replaced it', async () => {
    server.intercept = ({ path }) => {
      if (!path.endsWith('/status')) return null
      const managementOrigin = 'https://other.example.com'
      writeFileSync(client.credentials, JSON.stringify({ ...stored(), managementOrigin }))
      return failure('PLATFORM_AUTHENTICATION_FAILED')
    }
    const ran = await client.run(...STATUS)
    expect([ran.exit, JSON.parse(ran.out).error.code]).toEqual([4, 'CLIENT_ORIGIN_MISMATCH'])
    expect(refreshes()).toEqual([])
  })

  it('a session in schema 1 is read, and upgraded by the next refresh', async () => {
    const { authenticationOrigin: _, ...rest } = stored()
    writeFileSync(client.credentials, JSON.stringify({ ...rest, version: 1 }))
    expect((await client.run(...STATUS)).exit).toBe(0)
    expect(stored().version).toBe(1)
    server.expireAccess()
    expect((await client.run(...STATUS)).exit).toBe(0)
    expect(stored()).toMatchObject({ version: 2, authenticationOrigin: server.origin })
  })

  it('a session is kept when the command is interrupted during its refresh', async () => {
    server.expireAccess()
    server.intercept = ({ path }) => {
      if (path === '/v1/auth/refresh') client.interrupt()
      return null
    }
    const ran = await client.run(...STATUS)
    expect([ran.exit, JSON.parse(ran.out).error.code]).toEqual([130, 'CLIENT_INTERRUPTED'])
    server.intercept = () => null
    expect((await client.run(...STATUS)).exit).toBe(0)
    expect([refreshes().length, server.sessionRevoked]).toEqual([1, false])
  })

  it.each(['{', '[]', '{"version":3}', '{"version":2,"version":2}', ''])(
    'the file %j is CLIENT_CREDENTIALS_INVALID, and the file stays',
    async (content) => {
      writeFileSync(client.credentials, content)
      const ran = await client.run(...STATUS)
      const { error } = JSON.parse(ran.out)
      expect([ran.exit, error.code]).toEqual([6, 'CLIENT_CREDENTIALS_INVALID'])
      expect(error.message).toContain(client.credentials)
      expect(readFileSync(client.credentials, 'utf8')).toBe(content)
    },
  )

  it('a session in a file that cannot be read is CLIENT_FILE_FAILED', async () => {
    rmSync(client.credentials)
    mkdirSync(client.credentials)
    const ran = await client.run(...STATUS)
    expect([ran.exit, JSON.parse(ran.out).error]).toMatchObject([
      1,
      { code: 'CLIENT_FILE_FAILED', message: expect.stringContaining(client.credentials) },
    ])
  })

  it('below a file instead of a directory is CLIENT_FILE_FAILED', async () => {
    client.variables.SERVICE_CONFIG_HOME = client.credentials
    const ran = await client.run(...STATUS)
    expect([ran.exit, JSON.parse(ran.out).error]).toMatchObject([
      1,
      { message: expect.stringContaining(`There is no directory ${client.credentials}.`) },
    ])
  })

  it.each([
    ['sessionId', newId.make('opr')],
    ['accessToken', 'rk_at_v1_short'],
    ['refreshToken', `rk_at_v1_${'A'.repeat(43)}`],
    ['managementOrigin', 'https://x/path'],
    ['accessExpiresAtMicros', 5],
    ['extra', null],
  ])(
    'a session with a wrong %s is CLIENT_CREDENTIALS_INVALID and shows no value',
    async (key, value) => {
      writeFileSync(client.credentials, JSON.stringify({ ...stored(), [key]: value }))
      const ran = await client.run(...STATUS)
      expect([ran.exit, JSON.parse(ran.out).error.code]).toEqual([6, 'CLIENT_CREDENTIALS_INVALID'])
      expect(ran.out).not.toContain('rk_at_v1_')
    },
  )
})

const MAIN = join(import.meta.dirname, '../../main.ts')

function startStatus(): Promise<{ exit: number | null; out: string }> {
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, [MAIN, 'svc', ...STATUS], {
    cwd: client.home,
    env: { PATH, ...client.variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  child.stdout.on('data', (chunk) => {
    out += chunk
  })
  child.stderr.on('data', (chunk) => {
    out += chunk
  })
  return new Promise((resolve) => child.on('close', (exit) => resolve({ exit, out })))
}

describe('parallel processes', () => {
  it('refresh an expired access token once, and none is logged out', {
    tags: ['slow'],
  }, async () => {
    server.expireAccess()
    // All have sent the expired token before the first 401 is returned.
    let waiting = 0
    const { promise: everyone, resolve: open } = Promise.withResolvers<void>()
    server.gate = async ({ path }) => {
      if (!path.endsWith('/status')) return
      if (++waiting === PROCESSES) open()
      await everyone
    }
    const ran = await Promise.all(Array.from({ length: PROCESSES }, startStatus))
    expect(ran.filter(({ exit }) => exit !== 0)).toEqual([])
    expect([refreshes().length, server.sessionRevoked]).toEqual([1, false])
    expect(readdirSync(join(client.home, 'config'))).toEqual(['credentials-v1.json'])
  })

  it('never send a consumed refresh token, even if their tokens expire all the time', {
    tags: ['slow'],
  }, async () => {
    // A token of one second is always about to expire, so every process refreshes or adopts.
    server.accessLifetimeMs = 1_000
    server.expireAccess()
    const ran = await Promise.all(Array.from({ length: PROCESSES / 2 }, startStatus))
    expect(ran.filter(({ exit }) => exit !== 0)).toEqual([])
    expect(server.sessionRevoked).toBe(false)
    const tokens = refreshes().map(({ body }) => body)
    expect(new Set(tokens).size).toBe(tokens.length)
  })
})
