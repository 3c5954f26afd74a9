/**
 * The whole way of an external login: this client, a certified OpenID Provider and the real
 * identity routes over PostgreSQL. Only the addresses are mapped; the browser keeps cookies and
 * follows redirects.
 */
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type ExternalLogins, externalLogins } from '../../../build/testing/external-logins.ts'
import { type OpenIdProvider, openIdProvider } from '../../../build/testing/oidc-providers.ts'
import { LOCAL_ORIGIN } from '../origins.ts'
import { TestClient } from '../testing/test-client.ts'

let provider: OpenIdProvider
let identity: ExternalLogins
let client: TestClient
let page: Promise<string>

beforeEach(async () => {
  provider = await openIdProvider()
  identity = await externalLogins({ oidc: provider.settings, network: 'real' })
  identity.system.advance(Date.now() - identity.system.nowMillis())
  client = new TestClient()
  client.fetch = route
  client.openBrowser = async (url) => {
    page = browse(url)
    return true
  }
})

afterEach(async () => {
  client[Symbol.dispose]()
  await identity.dispose()
  await provider.close()
})

function route(url: string, init: RequestInit): Promise<Response> {
  if (url.startsWith(LOCAL_ORIGIN)) {
    return identity.request(init.method ?? 'GET', url.slice(LOCAL_ORIGIN.length), {
      headers: init.headers as Record<string, string>,
      ...(init.body === undefined ? {} : { body: init.body }),
    })
  }
  return fetch(url.replace(provider.settings.issuer, provider.origin), init)
}

/** The text of the page that the browser ends at. */
async function browse(start: string): Promise<string> {
  const cookies = new Map<string, string>()
  let url = start
  for (let hop = 0; hop < 10; hop++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]!.split('=')
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) return response.text()
    await response.text()
    url = new URL(location, url).href
  }
  return 'too many redirects'
}

const LOGIN = ['login', '--url', LOCAL_ORIGIN, '--browser']

test('a person is linked by an invitation and logs in without one afterwards', async () => {
  const refused = await client.run(...LOGIN)
  expect([refused.exit, refused.err]).toEqual([3, expect.stringContaining('--code-env')])
  expect(await page).toContain('did not succeed')

  client.variables.SVC_CODE = await identity.invite()
  const first = await client.run(...LOGIN, '--code-env', 'SVC_CODE', '--json')
  expect(first).toMatchObject({ exit: 0, err: '' })
  expect(await page).toContain('You are logged in')

  const again = await client.run(...LOGIN, '--device', 'laptop', '--json')
  expect(JSON.parse(again.out).operator).toEqual(JSON.parse(first.out).operator)

  const self = await client.run('whoami', '--json')
  expect(JSON.parse(self.out).session).toMatchObject({ deviceName: 'laptop', current: true })
  const { sessions } = JSON.parse((await client.run('sessions', '--json')).out)
  expect(sessions).toHaveLength(2)
  const { sessionId } = JSON.parse(first.out).session
  expect((await client.run('sessions', 'revoke', sessionId)).exit).toBe(0)
  expect((await client.run('sessions', 'revoke', sessionId)).exit).toBe(0)
  const left = JSON.parse((await client.run('sessions', '--json')).out).sessions
  expect(left).toMatchObject([{ deviceName: 'laptop' }])
  expect(readFileSync(client.credentials, 'utf8')).not.toContain('eyJ')
})

test('a token that was got elsewhere logs in, and one of somebody else does not', async () => {
  const seen: string[] = []
  client.fetch = (url, init) => {
    const { authorization } = init.headers as Record<string, string>
    if (url.endsWith('/v1/auth/oidc')) seen.push(authorization!.slice('Bearer '.length))
    return route(url, init)
  }
  client.variables.SVC_CODE = await identity.invite()
  await client.run(...LOGIN, '--code-env', 'SVC_CODE')
  client.variables.TOKEN = seen[0]!
  const token = ['login', '--url', LOCAL_ORIGIN, '--oidc-token-env', 'TOKEN']
  expect((await client.run(...token)).exit).toBe(0)
  client.variables.TOKEN = await identity.token()
  expect((await client.run(...token)).exit).toBe(3)
})
