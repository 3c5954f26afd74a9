/**
 * `svc login` with an identity provider, against a provider and a server that record their
 * requests. The "browser" is a fetch that follows redirects.
 */
import { existsSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeProvider, ISSUER, RESOURCE } from '../../../../testing/client/fake-provider.ts'
import { FakeServer, failure, INVITATION } from '../../../../testing/client/fake-server.ts'
import { type Ran, TestClient } from '../../../../testing/client/test-client.ts'
import { sha256 } from '../../../system/digests.ts'
import { encodeBase64Url } from '../../../value/base64url.ts'

let server: FakeServer
let provider: FakeProvider
let client: TestClient
let opened: string[]
let pages: string[]

beforeEach(async () => {
  server = await new FakeServer().start()
  provider = await new FakeProvider().start()
  client = new TestClient()
  server.oidcConfig = () => provider.config
  server.externalToken = provider.accessToken
  server.linked = true
  client.fetch = provider.fetch
  opened = []
  pages = []
  client.openBrowser = async (url) => {
    opened.push(url)
    visit(url)
    return true
  }
})

afterEach(() => {
  server.stop()
  provider.stop()
  client[Symbol.dispose]()
})

/** Plays the person: opens the address and follows the redirects. */
function visit(url: string): void {
  // A page may arrive after the end of the command and its test.
  const seen = pages
  fetch(url)
    .then((response) => response.text())
    .then((page) => seen.push(page))
    .catch(() => seen.push('no page'))
}

function login(...more: string[]): Promise<Ran> {
  return client.run('login', '--url', server.origin, '--browser', ...more)
}

async function page(): Promise<string> {
  await expect.poll(() => pages).toHaveLength(1)
  return pages[0]!
}

/** Checks that no output and no file contains the token, a code or the verifier. */
function expectNoSecret({ out, err }: Ran): void {
  const stored = existsSync(client.credentials) ? readFileSync(client.credentials, 'utf8') : ''
  const [exchange] = provider.requestsTo('/token')
  const form = new URLSearchParams(exchange?.body ?? '')
  for (const secret of [provider.accessToken, form.get('code'), form.get('code_verifier')]) {
    if (secret !== null) expect(out + err + stored + opened.join()).not.toContain(secret)
  }
}

describe('svc login --browser', () => {
  it('sends exactly the necessary requests to the provider and the server', async () => {
    const ran = await login('--device', 'laptop', '--json')
    expect(ran).toMatchObject({ exit: 0, err: '' })
    expect(JSON.parse(ran.out)).toMatchObject({ version: 1, authenticationOrigin: server.origin })
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /v1/auth/config',
      'GET /v1/auth/oidc/config',
      'POST /v1/auth/oidc',
    ])

    const asked = new URL(opened[0]!).searchParams
    const redirectUri = asked.get('redirect_uri')!
    expect(redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:[0-9]+\/callback$/)
    const [exchange] = provider.requestsTo('/token')
    const form = new URLSearchParams(exchange!.body)
    expect(Object.fromEntries(asked)).toEqual({
      tenant: 'a&b',
      response_type: 'code',
      client_id: 'svc-cli',
      redirect_uri: redirectUri,
      scope: 'openid operators',
      state: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: encodeBase64Url(sha256(form.get('code_verifier')!)),
      code_challenge_method: 'S256',
      resource: RESOURCE,
    })
    expect(Object.fromEntries(form)).toEqual({
      grant_type: 'authorization_code',
      code: expect.stringMatching(/^[\w-]{32}$/),
      redirect_uri: redirectUri,
      client_id: 'svc-cli',
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
      resource: RESOURCE,
    })
    expect(exchange!.method).toBe('POST')
    expect(exchange!.headers['content-type']).toMatch(
      /^application\/x-www-form-urlencoded(?:;charset=UTF-8)?$/,
    )
    expect(exchange!.headers.authorization).toBeUndefined()

    const [oidc] = server.requestsTo('POST', '/v1/auth/oidc')
    expect(oidc!.headers.authorization).toBe(`Bearer ${provider.accessToken}`)
    expect(JSON.parse(oidc!.body)).toEqual({ deviceName: 'laptop' })
    expect(await page()).toContain('You are logged in')
    expect(JSON.parse(readFileSync(client.credentials, 'utf8')).sessionId).toBe(server.sessionId)
    expectNoSecret(ran)
    await expect(fetch(redirectUri)).rejects.toThrow()
  })

  it('links a person for the first time with an invitation', async () => {
    server.linked = false
    const without = await login()
    expect(without.exit).toBe(3)
    expect(without.err).toContain('add --code-env VAR')
    expect(existsSync(client.credentials)).toBe(false)
    expect(await page()).toContain('The login failed')

    const first = await login('--code-env', 'SVC_CODE')
    expect(first.exit).toBe(0)
    const bodies = server.requestsTo('POST', '/v1/auth/oidc').map(({ body }) => JSON.parse(body))
    expect(bodies).toEqual([{}, { code: INVITATION }])
    expect((await login()).exit).toBe(0)
  })

  it('prints the address with --no-open, opens nothing and waits', async () => {
    client.onError = (text) => {
      const [url] = /http:\S+/.exec(text) ?? []
      if (url !== undefined) visit(url)
    }
    const ran = await login('--no-open', '--json')
    expect([ran.exit, opened]).toEqual([0, []])
    expect(ran.err).toMatch(/^Open this address in a browser:\nhttp:\/\/127\.0\.0\.1:\S+\n$/)
    JSON.parse(ran.out)
    expectNoSecret(ran)
  })

  it.each<[string, () => Promise<boolean>]>([
    ['is none', async () => false],
    ['cannot be started', () => Promise.reject(new RangeError('no'))],
  ])('continues if there %s browser, and prints the address', async (_, open) => {
    client.openBrowser = open
    client.onError = (text) => {
      const [url] = /http:\S+authorize\S+/.exec(text) ?? []
      if (url !== undefined) visit(url)
    }
    const ran = await login()
    expect(ran.exit).toBe(0)
    expect(ran.err).toContain('No browser could be started. Open this address:')
  })

  it('sends no resource if the provider has none', async () => {
    provider.resource = null
    expect((await login()).exit).toBe(0)
    expect(opened[0] + provider.requestsTo('/token')[0]!.body).not.toContain('resource')
  })

  type Respond = FakeProvider['answer']
  it.each<[string, Respond, string]>([
    ['rejects', (a) => ({ error: 'access_denied', state: a.get('state')!, iss: ISSUER }), 'denied'],
    [
      'responds with a code and an error',
      (a, code) => ({ code, error: 'x', state: a.get('state')!, iss: ISSUER }),
      'both a code and an error',
    ],
    [
      'names another issuer',
      (a, code) => ({ code, state: a.get('state')!, iss: 'https://evil.test' }),
      'unexpected "iss"',
    ],
    [
      'leaves out the issuer that it promises',
      (a, code) => ({ code, state: a.get('state')! }),
      '"iss" (issuer) missing',
    ],
  ])(
    'fails when the provider %s, and sends no code',
    { tags: ['slow'] },
    async (_, respond, reason) => {
      provider.answer = respond
      const ran = await login()
      expect([ran.exit, ran.err]).toEqual([3, expect.stringContaining(reason)])
      expect(ran.err).toContain('CLIENT_BROWSER_LOGIN_FAILED')
      expect([provider.requestsTo('/token'), server.requestsTo('POST', '/v1/auth/oidc')]).toEqual([
        [],
        [],
      ])
      expect(await page()).toContain('The login failed')
      expect(existsSync(client.credentials)).toBe(false)
    },
  )

  it.each([
    ['cannot be had', { status: 404 }],
    ['are a redirect', { status: 302, headers: { location: '/elsewhere' } }],
    ['promise nothing', { status: 200, body: { issuer: ISSUER } }],
    ['are not JSON', { status: 200, text: '<html>' }],
  ])('needs no issuer in the response if the metadata %s', async (_, metadata) => {
    provider.metadata = () => metadata
    provider.answer = (asked, code) => ({ code, state: asked.get('state')! })
    expect((await login()).exit).toBe(0)
    expect(provider.requestsTo('/elsewhere')).toEqual([])
  })

  it('rejects metadata of another issuer', async () => {
    provider.metadata = () => ({ status: 200, body: { issuer: `${ISSUER}/` } })
    const ran = await login()
    expect([ran.exit, ran.err]).toEqual([3, expect.stringContaining('names another issuer')])
    expect(provider.requestsTo('/token')).toEqual([])
  })

  const token = (body: object) => ({ status: 200, body: { token_type: 'Bearer', ...body } })
  it.each<[string, ReturnType<FakeProvider['tokenReply']>, number]>([
    ['an error', { status: 400, body: { error: 'invalid_grant' } }, 3],
    ['a page', { status: 500, text: '<html>' }, 3],
    ['a redirect', { status: 307, headers: { location: '/elsewhere' } }, 3],
    ['no token', token({}), 3],
    ['an empty token', token({ access_token: '' }), 3],
    ['a token with a line break', token({ access_token: 'a\r\nx: y' }), 3],
    ['a token that is too long', token({ access_token: 'a'.repeat(16_001) }), 3],
    ['another type of token', token({ access_token: 'a', token_type: 'mac' }), 3],
    ['a duplicate key', { status: 200, text: '{"access_token":"a","access_token":"b"}' }, 3],
    ['more than it may', { status: 200, text: `"${'x'.repeat(100_000)}"` }, 3],
    ['nothing', 'drop', 5],
  ])('fails when the token endpoint responds with %s', async (_, reply, exit) => {
    provider.tokenReply = () => reply
    const ran = await login('--json')
    expect(ran.exit).toBe(exit)
    expect(provider.requestsTo('/token')).toHaveLength(1)
    expect([provider.requestsTo('/elsewhere'), server.requestsTo('POST', '/v1/auth/oidc')]).toEqual(
      [[], []],
    )
    expect(await page()).toContain('The login failed')
    expectNoSecret(ran)
  })

  it('shows a failure page when the server rejects the login', async () => {
    server.externalToken = 'another'
    const ran = await login('--code-env', 'SVC_CODE')
    expect([ran.exit, ran.err]).toEqual([3, expect.stringContaining('PLATFORM_AUTHENTICATION')])
    expect(ran.err).not.toContain('add --code-env VAR')
    expect(await page()).toContain('The login failed')
    expectNoSecret(ran)
  })

  it('sends the token once, even when the response is lost', async () => {
    server.intercept = ({ path }) => (path === '/v1/auth/oidc' ? 'drop-after' : null)
    expect((await login()).exit).toBe(9)
    expect(server.requestsTo('POST', '/v1/auth/oidc')).toHaveLength(1)
  })

  it('keeps the stored session after a failure', async () => {
    await client.login(server)
    const before = readFileSync(client.credentials, 'utf8')
    provider.tokenReply = () => ({ status: 400, body: { error: 'invalid_grant' } })
    await login()
    expect(readFileSync(client.credentials, 'utf8')).toBe(before)
  })

  it('ends with 130 when it is interrupted, and leaves no port open', async () => {
    let redirectUri = ''
    client.openBrowser = async (url) => {
      redirectUri = new URL(url).searchParams.get('redirect_uri')!
      client.interrupt()
      return true
    }
    const ran = await login('--json')
    expect([ran.exit, JSON.parse(ran.out).error.code]).toEqual([130, 'CLIENT_INTERRUPTED'])
    await expect(fetch(redirectUri)).rejects.toThrow()
  })

  it('never opens an address that is not HTTP or HTTPS', async () => {
    server.oidcConfig = () => ({ ...provider.config, authorizationEndpoint: 'file:///etc/passwd' })
    const ran = await login()
    expect([ran.exit, opened]).toEqual([1, []])
    expect(ran.err).toContain('The authorization endpoint of the browser login cannot be used.')
  })

  it('names the login methods that the server accepts', async () => {
    server.methods = ['invitation']
    expect((await login()).err).toContain('it accepts invitation codes')
    server.methods = ['invitation', 'browser_oidc']
    server.oidcConfig = null
    const ran = await login()
    expect([ran.exit, ran.err]).toEqual([
      3,
      expect.stringContaining('does not support browser logins'),
    ])
  })
})

describe('svc login --oidc-token-env', () => {
  const TOKEN_LOGIN = ['--oidc-token-env', 'TOKEN']
  const tokenLogin = (...more: string[]): Promise<Ran> =>
    client.run('login', '--url', server.origin, ...TOKEN_LOGIN, ...more)

  it('sends the token of the named variable to the server and nowhere else', async () => {
    client.variables.TOKEN = `${provider.accessToken}\n`
    const ran = await tokenLogin('--device', 'ci', '--json')
    expect(ran).toMatchObject({ exit: 0, err: '' })
    const [oidc] = server.requestsTo('POST', '/v1/auth/oidc')
    expect(oidc!.headers.authorization).toBe(`Bearer ${provider.accessToken}`)
    expect(JSON.parse(oidc!.body)).toEqual({ deviceName: 'ci' })
    expect(provider.requests).toEqual([])
    expectNoSecret(ran)
  })

  it('links a person for the first time with an invitation', async () => {
    server.linked = false
    client.variables.TOKEN = provider.accessToken
    expect((await tokenLogin()).err).toContain('add --code-env VAR')
    expect((await tokenLogin('--code-env', 'SVC_CODE')).exit).toBe(0)
  })

  it.each<[string, string[], string]>([
    ['an unset variable', ['--oidc-token-env', 'NOT_SET'], 'is not set or empty'],
    ['the token itself', ['--oidc-token-env', 'eyJh.eyJz.c2ln'], 'needs the name of a variable'],
    ['no token', ['--oidc-token-env', 'SPACES'], 'does not hold a bearer token'],
    ['the browser as well', [...TOKEN_LOGIN, '--browser'], 'not both'],
    ['--no-open', [...TOKEN_LOGIN, '--no-open'], '--no-open needs --browser'],
    ['a code that is none', [...TOKEN_LOGIN, '--code-env', 'HOME'], 'is not an invitation code'],
  ])('sends no request with %s', async (_, options, message) => {
    client.variables.TOKEN = provider.accessToken
    client.variables.SPACES = 'two words'
    const ran = await client.run('login', '--url', server.origin, ...options)
    expect([ran.exit, ran.err]).toEqual([2, expect.stringContaining(message)])
    expect(ran.err).not.toContain('eyJ')
    expect(server.requests).toEqual([])
  })

  it('reports a token that the server rejects', async () => {
    client.variables.TOKEN = provider.accessToken
    server.intercept = ({ path }) =>
      path === '/v1/auth/oidc' ? failure('PLATFORM_RATE_LIMITED') : null
    expect((await tokenLogin()).exit).toBe(5)
    server.methods = ['invitation']
    expect((await tokenLogin()).err).toContain('does not accept tokens of an identity provider')
  })
})
