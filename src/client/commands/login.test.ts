import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeServer, failure, INVITATION } from '../../../testing/client/fake-server.ts'
import { TestClient } from '../../../testing/client/test-client.ts'

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  server = await new FakeServer().start()
  client = new TestClient()
})

afterEach(() => {
  server.stop()
  client[Symbol.dispose]()
})

describe('svc login', () => {
  it('exchanges the code of the named variable and stores the session', async () => {
    const options = ['--device', 'laptop', '--code-env', 'SVC_CODE', '--json']
    const ran = await client.run('login', '--url', server.origin, ...options)
    expect(ran).toMatchObject({ exit: 0, err: '' })
    const [config, exchange] = server.requests
    expect([config!.method, config!.path]).toEqual(['GET', '/v1/auth/config'])
    expect([exchange!.method, exchange!.path]).toEqual(['POST', '/v1/auth/exchange'])
    expect(JSON.parse(exchange!.body)).toEqual({ code: INVITATION, deviceName: 'laptop' })
    expect(exchange!.headers.authorization).toBeUndefined()

    expect(statSync(client.credentials).mode & 0o777).toBe(0o600)
    expect(statSync(`${client.home}/config`).mode & 0o777).toBe(0o700)
    const stored = JSON.parse(readFileSync(client.credentials, 'utf8'))
    expect(stored).toMatchObject({
      version: 2,
      authenticationOrigin: server.origin,
      managementOrigin: server.origin,
      sessionId: server.sessionId,
    })
    for (const token of [stored.accessToken, stored.refreshToken, INVITATION]) {
      expect(ran.out).not.toContain(token)
    }
  })

  it('stores the Management origin that the server names', async () => {
    server.managementOrigin = 'https://manage.example.com'
    await client.login(server)
    expect(JSON.parse(readFileSync(client.credentials, 'utf8'))).toMatchObject({
      authenticationOrigin: server.origin,
      managementOrigin: 'https://manage.example.com',
    })
  })

  it('replaces an earlier session', async () => {
    await client.login(server)
    const first = readFileSync(client.credentials, 'utf8')
    expect((await client.login(server)).exit).toBe(0)
    expect(readFileSync(client.credentials, 'utf8')).not.toBe(first)
  })

  it('asks for the code on a terminal', async () => {
    client.typed = [` ${INVITATION} `]
    const ran = await client.run('login', '--url', server.origin)
    expect(ran.exit).toBe(0)
    expect(ran.err).toContain('Invitation code: ')
    expect(ran.out + ran.err).not.toContain(INVITATION)
  })

  it.each([
    ['no terminal', [], 'There is no terminal'],
    ['an unset variable', ['--code-env', 'NOT_SET'], 'The variable NOT_SET is not set or empty.'],
    ['the code itself', ['--code-env', INVITATION], 'not the secret itself'],
    ['no variable name', ['--code-env', 'A-B'], 'needs the name of a variable.'],
    ['something else', ['--code-env', 'HOME'], 'is not an invitation code'],
  ])('sends no request with %s', async (_, options, message) => {
    const ran = await client.run('login', '--url', server.origin, ...options)
    expect([ran.exit, ran.err]).toEqual([2, expect.stringContaining(message)])
    expect(ran.err).not.toContain(INVITATION)
    expect(server.requests).toEqual([])
  })

  it.each([
    'http://127.0.0.1:8080',
    'http://localhost:3220',
    'http://[::1]:3220',
    'http://example.com',
    'https://example.com/path',
    'https://user@example.com',
    'https://EXAMPLE.com',
    'https://example.com:443',
    'ftp://example.com',
    'example.com',
    'http://127.0.0.1.example.com:3220',
  ])('rejects the origin %s', async (url) => {
    delete client.variables.SVC_ALLOW_LOOPBACK_HTTP
    const ran = await client.run('login', '--url', url, '--code-env', 'SVC_CODE')
    expect([ran.exit, ran.err]).toEqual([2, expect.stringContaining('CLIENT_ORIGIN_INVALID')])
  })

  it.each(['https://example.com', 'https://example.com/', 'http://127.0.0.1:3220'])(
    'accepts the origin %s',
    async (url) => {
      delete client.variables.SVC_ALLOW_LOOPBACK_HTTP
      const asked: string[] = []
      client.fetch = async (address) => {
        asked.push(address)
        throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' })
      }
      const ran = await client.run('login', '--url', url, '--code-env', 'SVC_CODE')
      expect([ran.exit, asked[0]]).toEqual([5, `${new URL(url).origin}/v1/auth/config`])
    },
  )

  it('accepts a server on the IPv6 loopback address if loopback is allowed', async () => {
    const asked: string[] = []
    client.fetch = async (address) => {
      asked.push(address)
      throw Object.assign(new TypeError('fetch failed'), { code: 'CERT_HAS_EXPIRED' })
    }
    await client.run('login', '--url', 'http://[::1]:4820', '--code-env', 'SVC_CODE')
    expect(asked[0]).toBe('http://[::1]:4820/v1/auth/config')
  })

  it('replaces a stored session whose origin is no longer allowed', async () => {
    await client.login(server)
    const stored = JSON.parse(readFileSync(client.credentials, 'utf8'))
    const evil = { ...stored, managementOrigin: 'http://evil.test' }
    writeFileSync(client.credentials, JSON.stringify(evil))
    expect((await client.run('whoami')).err).toContain('names http://evil.test')
    expect((await client.login(server)).exit).toBe(0)
    expect((await client.run('whoami')).exit).toBe(0)
  })

  it('a wrong code does not change the stored session', async () => {
    await client.login(server)
    const before = readFileSync(client.credentials, 'utf8')
    server.intercept = ({ path }) =>
      path === '/v1/auth/exchange' ? failure('PLATFORM_AUTHENTICATION_FAILED') : null
    const ran = await client.login(server)
    expect(ran.exit).toBe(3)
    expect(ran.err).toContain('The invitation code is wrong, used or expired.\n  Ask an owner')
    expect(readFileSync(client.credentials, 'utf8')).toBe(before)
  })

  it('sends the code once, even when the response is lost', async () => {
    server.intercept = ({ path }) => (path === '/v1/auth/exchange' ? 'drop-after' : null)
    expect((await client.login(server)).exit).toBe(9)
    expect(server.requestsTo('POST', '/v1/auth/exchange')).toHaveLength(1)
  })
})

describe('svc logout', () => {
  it('revokes the session and removes it', async () => {
    await client.login(server)
    const ran = await client.run('logout', '--json')
    expect(ran.exit).toBe(0)
    expect(JSON.parse(ran.out)).toMatchObject({ sessionId: server.sessionId, revoked: true })
    expect([server.sessionRevoked, existsSync(client.credentials)]).toEqual([true, false])
    expect((await client.run('logout')).exit).toBe(3)
  })

  it('removes the session without a connection and warns', async () => {
    await client.login(server)
    server.stop()
    const ran = await client.run('logout')
    expect([ran.exit, existsSync(client.credentials)]).toEqual([0, false])
    expect(ran.err).toContain('the server did not revoke the session')
  })

  it('removes a session that the server has ended', async () => {
    await client.login(server)
    server.sessionRevoked = true
    const ran = await client.run('logout')
    expect([ran.exit, existsSync(client.credentials)]).toEqual([0, false])
  })
})
