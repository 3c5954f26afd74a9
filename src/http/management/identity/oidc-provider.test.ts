/** Tests the code flow of a native client against a real OpenID Provider, over HTTP. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type ExternalLogins,
  externalLogins,
} from '../../../../testing/providers/external-logins.ts'
import {
  authorize,
  type OpenIdProvider,
  openIdProvider,
  type Tokens,
} from '../../../../testing/providers/oidc-providers.ts'
import { Login } from '../../../wire/identity/auth.ts'
import { OidcConfig } from '../../../wire/identity/oidc.ts'
import { read } from '../../../wire/reading/read.ts'

let op: OpenIdProvider
let t: ExternalLogins

beforeEach(async () => {
  op = await openIdProvider()
  t = await externalLogins({ oidc: op.settings, network: 'real' })
  // The provider uses the real clock.
  t.system.advance(Date.now() - t.system.nowMillis())
})

afterEach(async () => {
  await t.dispose()
  await op.close()
})

/** Logs in at the provider with the settings from the server. */
async function authorized(from?: Response): Promise<Tokens> {
  const response = from ?? (await t.request('GET', '/v1/auth/oidc/config'))
  return authorize(read(OidcConfig, await response.json(), 'PLATFORM_INTERNAL'))
}

async function login(response: Response, status: number): Promise<Login> {
  expect(response.status).toBe(status)
  return read(Login, await response.json(), 'PLATFORM_INTERNAL')
}

test('a native client logs in with an invitation once and without one afterwards', {
  tags: ['slow'],
}, async () => {
  const code = await t.invite()
  const first = await login(
    await t.logIn({ code }, { token: (await authorized()).access_token }),
    201,
  )
  const again = await login(await t.logIn({}, { token: (await authorized()).access_token }), 200)
  expect(again.operator).toEqual(first.operator)
})

test('the ID token of a login is not accepted as an operator token', {
  tags: ['slow'],
}, async () => {
  const { id_token: token } = await authorized()
  expect((await t.logIn({ code: await t.invite() }, { token })).status).toBe(401)
})

test('keys are reloaded after a rotation by the provider', { tags: ['slow'] }, async () => {
  const token = (await authorized()).access_token
  await login(await t.logIn({ code: await t.invite() }, { token }), 201)
  await op.rotate()
  const rotated = (await authorized()).access_token
  expect((await t.logIn({}, { token: rotated })).status).toBe(401)
  t.system.advance(30_000)
  await login(await t.logIn({}, { token: rotated }), 200)
  expect((await t.logIn({}, { token })).status).toBe(401)
})

test('an expired token is rejected', async () => {
  const token = (await authorized()).access_token
  const code = await t.invite()
  t.system.advance(601_000)
  expect((await t.logIn({ code }, { token })).status).toBe(401)
})

test('an access token with a lifetime over a day is rejected', { tags: ['slow'] }, async () => {
  await op.close()
  op = await openIdProvider({ tokenSeconds: 86_401 })
  const identity = t.another({ external: { oidc: op.settings } })
  const config = await t.request('GET', '/v1/auth/oidc/config', { identity })
  const token = (await authorized(config)).access_token
  expect((await t.logIn({ code: await t.invite() }, { token, identity })).status).toBe(401)
})
