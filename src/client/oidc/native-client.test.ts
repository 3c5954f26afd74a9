/**
 * A complete external login: this client, a certified OpenID Provider and the real identity routes
 * over PostgreSQL. Only the addresses are mapped.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { httpBrowser, type Page } from '../../../testing/browsers/browser.ts'
import { TestClient } from '../../../testing/client/test-client.ts'
import { type ExternalLogins, externalLogins } from '../../../testing/providers/external-logins.ts'
import { type OpenIdProvider, openIdProvider } from '../../../testing/providers/oidc-providers.ts'
import { LOCAL_ORIGIN } from '../origins.ts'

let provider: OpenIdProvider
let identity: ExternalLogins
let client: TestClient
let page: Promise<Page>

beforeEach(async () => {
  provider = await openIdProvider()
  identity = await externalLogins({ oidc: provider.settings, network: 'real' })
  identity.system.advance(Date.now() - identity.system.nowMillis())
  client = new TestClient()
  client.fetch = route
  client.openBrowser = async (url) => {
    page = httpBrowser().visit(url)
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

const LOGIN = ['login', '--url', LOCAL_ORIGIN, '--browser']

test('a person is linked by an invitation and logs in without one afterwards', async () => {
  const rejected = await client.run(...LOGIN)
  expect([rejected.exit, rejected.err]).toEqual([3, expect.stringContaining('--code-env')])
  expect((await page).title).toBe('The login failed')

  client.variables.SVC_CODE = await identity.invite()
  const first = await client.run(...LOGIN, '--code-env', 'SVC_CODE', '--json')
  expect(first).toMatchObject({ exit: 0, err: '' })
  expect((await page).title).toBe('You are logged in')

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

test('a separately obtained token logs in, and a token of another person does not', async () => {
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
