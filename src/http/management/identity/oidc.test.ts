import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type ExternalLogins,
  externalLogins,
} from '../../../../testing/providers/external-logins.ts'
import { PROVIDER } from '../../../../testing/providers/identity-providers.ts'
import { TOKEN_REJECTIONS, type TokenCheck } from '../../../identity/jwt/rejections.ts'
import { encodeBase64Url } from '../../../value/base64url.ts'
import { Secret } from '../../../value/secret.ts'
import { Login } from '../../../wire/identity/auth.ts'
import { read } from '../../../wire/reading/read.ts'

let t: ExternalLogins

beforeEach(async () => {
  t = await externalLogins()
})

afterEach(() => t.dispose())

async function login(response: Response, status: number): Promise<Login> {
  expect(response.status).toBe(status)
  expect(response.headers.get('cache-control')).toBe('no-store, max-age=0')
  return read(Login, await response.json(), 'PLATFORM_INTERNAL')
}

async function rejection(response: Response): Promise<string> {
  expect(response.headers.get('cache-control')).toBe('no-store')
  const body = (await response.json()) as { error: { code: string } }
  return `${response.status} ${body.error.code}`
}

const UNAUTHENTICATED = '401 PLATFORM_AUTHENTICATION_FAILED'
const counts = async () => {
  const [row] = await t.sql(
    `select (select count(*)::int from service_operators) as operators,
            (select count(*)::int from service_operator_identities) as links,
            (select count(*)::int from service_operator_sessions) as sessions,
            (select count(*)::int from service_platform_audit) as audit`,
  )
  return row
}
const auditOf = async (response: Response) => {
  const requestId = response.headers.get('x-service-request-id')
  const rows = await t.sql<{ operation: string }>(
    `select operation from service_platform_audit where request_id = $1 order by audit_id`,
    [requestId],
  )
  return rows.map((row) => row.operation)
}

describe('a first login', () => {
  it('an invitation creates the operator, its grant, its link and a session', {
    tags: ['slow'],
  }, async () => {
    const response = await t.logIn({ code: await t.invite('observer'), deviceName: 'Laptop' })
    const audit = await auditOf(response)
    const made = await login(response, 201)
    expect(made.operator.operatorName).toBe('Invited')
    expect(made.session.deviceName).toBe('Laptop')
    expect(made.grants).toHaveLength(1)
    expect(made.grants[0]?.source).toBe('invitation')
    expect(audit).toEqual(['invitation.consume', 'session.create', 'identity.link'])
    const me = await t.request('GET', '/v1/auth/me', {
      headers: { authorization: `Bearer ${made.accessToken}` },
    })
    expect(me.status).toBe(200)
    const links = await t.sql('select provider_id, operator_id from service_operator_identities')
    expect(links).toEqual([{ provider_id: 'test-idp', operator_id: made.operator.operatorId }])
  })

  it('a first login without an invitation is rejected and stores nothing', async () => {
    const before = await counts()
    expect(await rejection(await t.logIn())).toBe(UNAUTHENTICATED)
    expect(await counts()).toEqual(before)
  })

  it('a first login with a wrong, malformed, expired or used code is rejected', {
    tags: ['slow'],
  }, async () => {
    const code = await t.invite()
    const other = await t.token({ sub: 'subject-2' })
    expect(await rejection(await t.logIn({ code: 'x' }))).toBe(UNAUTHENTICATED)
    expect(await rejection(await t.logIn({ code: `${code.slice(0, -3)}AAA` }))).toBe(
      UNAUTHENTICATED,
    )
    await login(await t.logIn({ code }), 201)
    expect(await rejection(await t.logIn({ code }, { token: other }))).toBe(UNAUTHENTICATED)
    const late = await t.invite()
    t.system.advance(1_800_000)
    expect(
      await rejection(await t.logIn({ code: late }, { token: await t.token({ sub: 's' }) })),
    ).toBe(UNAUTHENTICATED)
  })

  it('an invalid token keeps the code valid', async () => {
    const code = await t.invite()
    expect(await rejection(await t.logIn({ code }, { token: await t.token({ aud: 'x' }) }))).toBe(
      UNAUTHENTICATED,
    )
    await login(await t.logIn({ code }), 201)
  })

  it('one subject with sixteen codes concurrently creates one link', {
    tags: ['slow'],
  }, async () => {
    const codes = await Promise.all(Array.from({ length: 16 }, () => t.invite()))
    const token = await t.token()
    const statuses = await Promise.all(
      codes.map(async (code) => (await t.logIn({ code }, { token })).status),
    )
    expect(statuses.filter((status) => status === 201)).toHaveLength(1)
    expect(statuses.filter((status) => status === 409)).toHaveLength(15)
    expect(await counts()).toMatchObject({ operators: 2, links: 1 })
    const pending = await t.sql(
      `select 1 from service_operator_invitations where state = 'pending'`,
    )
    expect(pending).toHaveLength(15)
  })

  it('one code links exactly one of sixteen subjects', { tags: ['slow'] }, async () => {
    const code = await t.invite()
    const statuses = await Promise.all(
      Array.from({ length: 16 }, async (_, i) => {
        return (await t.logIn({ code }, { token: await t.token({ sub: `s${i}` }) })).status
      }),
    )
    expect(statuses.filter((status) => status === 201)).toHaveLength(1)
    expect(statuses.filter((status) => status === 401)).toHaveLength(15)
    expect(await counts()).toMatchObject({ operators: 2, links: 1 })
  })
})

describe('a later login', () => {
  it('requires only the token, and opens another session of the operator', async () => {
    const first = await login(await t.logIn({ code: await t.invite() }), 201)
    const response = await t.logIn({ deviceName: 'Phone' })
    expect(await auditOf(response)).toEqual(['session.create', 'identity.login'])
    const second = await login(response, 200)
    expect(second.operator).toEqual(first.operator)
    expect(second.grants).toEqual(first.grants)
    expect(second.session.sessionId).not.toBe(first.session.sessionId)
  })

  it('a later login with a valid code is a conflict, and the code stays valid', {
    tags: ['slow'],
  }, async () => {
    await login(await t.logIn({ code: await t.invite() }), 201)
    const code = await t.invite()
    expect(await rejection(await t.logIn({ code }))).toBe('409 PLATFORM_CONFLICT')
    await login(await t.logIn({ code }, { token: await t.token({ sub: 'other' }) }), 201)
    expect(await rejection(await t.logIn({ code }))).toBe(UNAUTHENTICATED)
  })

  it('a later login of a disabled operator is rejected', async () => {
    await login(await t.logIn({ code: await t.invite() }), 201)
    await t.sql('update service_operators set disabled_at_micros = 1')
    expect(await rejection(await t.logIn())).toBe(UNAUTHENTICATED)
  })

  it.each<[string, Partial<typeof PROVIDER>]>([
    ['provider ID', { providerId: 'other-idp' }],
    ['subject pepper', { subjectPepper: new Secret(encodeBase64Url(new Uint8Array(32))) }],
  ])('under another %s finds no link', { tags: ['slow'] }, async (_, given) => {
    await login(await t.logIn({ code: await t.invite() }), 201)
    const identity = t.another({
      external: { oidc: { ...PROVIDER, ...given }, providerNetwork: t.idp.network },
    })
    expect(await rejection(await t.logIn({}, { identity }))).toBe(UNAUTHENTICATED)
  })
})

describe('the external token', () => {
  it.each<[string, (token: string) => string | undefined]>([
    ['absent', () => undefined],
    ['without a scheme', (token) => token],
    ['of another scheme', (token) => `Basic ${token}`],
    ['in small letters', (token) => `bearer ${token}`],
    ['twice', (token) => `Bearer ${token}, Bearer ${token}`],
    ['behind two blanks', (token) => `Bearer  ${token}`],
    ['longer than 16 KiB', (token) => `Bearer ${token}${'A'.repeat(16 * 1024)}`],
  ])('%s is rejected before the body is read', { tags: ['slow'] }, async (_, header) => {
    const authorization = header(await t.token())
    const response = await t.request('POST', '/v1/auth/oidc', {
      body: 'no JSON',
      headers: authorization === undefined ? {} : { authorization },
    })
    expect(await rejection(response)).toBe(UNAUTHENTICATED)
  })

  it('an external token is not a session, and a session is not an external token', async () => {
    const own = await t.logIn({}, { token: t.owner.accessToken })
    expect(await rejection(own)).toBe(UNAUTHENTICATED)
    const me = await t.request('GET', '/v1/auth/me', {
      headers: { authorization: `Bearer ${await t.token()}` },
    })
    expect(await rejection(me)).toBe(UNAUTHENTICATED)
  })

  it('the token check is unavailable, with a retry, while no keys are known', {
    tags: ['slow'],
  }, async () => {
    t.idp.intercept = (_, response) => {
      response.writeHead(500).end()
      return true
    }
    const response = await t.logIn()
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await rejection(response)).toBe('503 PLATFORM_UNAVAILABLE')
  })

  it('signed with a rotated key is accepted after the pause', async () => {
    await login(await t.logIn({ code: await t.invite() }), 201)
    const { makeKey } = await import('../../../../testing/providers/identity-providers.ts')
    t.idp.key = await makeKey('key-2')
    t.idp.jwks = { keys: [t.idp.key.jwk] }
    expect(await rejection(await t.logIn())).toBe(UNAUTHENTICATED)
    t.system.advance(30_000)
    await login(await t.logIn(), 200)
  })

  it.each([
    ['an unknown field', { code: 'x', role: 'owner' }],
    ['a null code', { code: null }],
    ['an operator name', { operatorName: 'Ada' }],
    ['a list', []],
    ['a duplicate key', '{"deviceName":"a","deviceName":"b"}'],
  ])('a login with a body of %s is invalid', { tags: ['slow'] }, async (_, body) => {
    expect(await rejection(await t.logIn(body))).toBe('400 PLATFORM_REQUEST_INVALID')
  })
})

it('the log states why a login was rejected, and nothing that was presented', {
  tags: ['slow'],
}, async () => {
  const canary = 'canary-of-a-stranger'
  const part = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64url')
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const withToken = async (claims: object, header: object = {}) =>
    t.logIn({}, { token: await t.token({ ...claims }, { ...header }) })
  const external = (check: TokenCheck) => `external token: ${TOKEN_REJECTIONS[check]}`
  const rejections: readonly (readonly [string, () => Promise<Response>])[] = [
    ['no compact JWS in the authorization header', () => t.logIn({}, { token: canary })],
    [
      external('algorithm'),
      () =>
        t.logIn({}, { token: `${part({ alg: canary })}.${part({ iss: PROVIDER.issuer })}.AAAA` }),
    ],
    [external('type'), () => withToken({}, { typ: canary })],
    [external('key'), () => withToken({}, { kid: canary })],
    [external('issuer'), () => withToken({ iss: canary })],
    [external('audience'), () => withToken({ aud: canary })],
    [external('expired'), () => withToken({ exp: 7_777_777 })],
    [
      external('signature'),
      async () => t.logIn({}, { token: (await t.token()).replace(/[^.]+$/, `${'D'.repeat(85)}A`) }),
    ],
    ['the subject has no link, invitation or enrollment', () => withToken({ sub: canary })],
    ['unknown code', () => t.logIn({ code: `rk_inv_v1_${'D'.repeat(43)}` })],
    [
      'the managed enrollment token is missing or wrong',
      () =>
        t.reconcile(t.owner.operatorId, {}, { 'service-managed-enrollment': `Bearer ${canary}` }),
    ],
    [
      'no valid bearer token in the authorization header',
      () => t.request('GET', '/v1/auth/me', { headers: bearer(canary) }),
    ],
    [
      'not an access token of this server',
      () => t.request('GET', '/v1/auth/me', { headers: bearer(`rk_at_v1_${'D'.repeat(43)}`) }),
    ],
    [
      'not a refresh token of this server',
      () => t.request('POST', '/v1/auth/refresh', { body: { refreshToken: canary } }),
    ],
  ]
  for (const [reason, send] of rejections) {
    const response = await send()
    const requestId = response.headers.get('x-service-request-id')
    expect(await rejection(response), reason).toBe(UNAUTHENTICATED)
    const records = t.log.records().filter((record) => record.requestId === requestId)
    const rejected = records.filter((record) => record.event === 'request.rejected')
    expect(rejected).toMatchObject([{ level: 'info', detail: reason }])
  }
  expect(t.log.text()).not.toMatch(/canary|DDDD|7777777|7_777_777/)
})

describe('discovery', () => {
  const nativeClient = {
    authorizationEndpoint: 'https://idp.test/authorize',
    tokenEndpoint: 'https://idp.test/token',
    clientId: 'svc-cli',
    scopes: ['openid', 'profile'],
    resource: PROVIDER.audience,
  }
  const methods = async (oidc: typeof PROVIDER | null) => {
    const identity = t.another({ external: { oidc } })
    const config = await t.request('GET', '/v1/auth/config', { identity })
    const client = await t.request('GET', '/v1/auth/oidc/config', { identity })
    return [((await config.json()) as { methods: string[] }).methods, client] as const
  }

  it('discovery without a provider names invitations, and its routes are 404', async () => {
    const [names, client] = await methods(null)
    expect(names).toEqual(['invitation'])
    expect(await rejection(client)).toBe('404 PLATFORM_NOT_FOUND')
    const identity = t.another({ external: { oidc: null } })
    expect(await rejection(await t.logIn('no JSON', { identity }))).toBe('404 PLATFORM_NOT_FOUND')
  })

  it('discovery with a provider but no native client names helper tokens', async () => {
    const [names, client] = await methods(PROVIDER)
    expect(names).toEqual(['invitation', 'helper_token'])
    expect(await rejection(client)).toBe('404 PLATFORM_NOT_FOUND')
  })

  it('discovery with a native client names the browser and its public settings', async () => {
    const [names, client] = await methods({ ...PROVIDER, nativeClient })
    expect(names).toEqual(['invitation', 'browser_oidc', 'helper_token'])
    expect(await client.json()).toEqual({ version: 1, issuer: PROVIDER.issuer, ...nativeClient })
  })
})

it('no token, subject, code or pepper is in any table, log line or error', {
  tags: ['slow'],
}, async () => {
  const sub = 'canary|subject-of-a-user'
  const code = await t.invite()
  const token = await t.token({ sub, email: 'canary@example.com' })
  const first = await login(await t.logIn({ code }, { token }), 201)
  await login(await t.logIn({}, { token }), 200)
  const errors = await Promise.all([
    t.logIn({ code }, { token }),
    t.logIn({}, { token: `${token.slice(0, -4)}AAAA` }),
    t.logIn({}, { token: await t.token({ sub, aud: 'canary' }) }),
    t.logIn({ deviceName: `${sub}\u0000` }, { token }),
    t.logIn({}, { token, headers: { 'service-managed-enrollment': `Bearer ${token}` } }),
  ])
  const bodies = await Promise.all(errors.map((response) => response.text()))
  const tables = await t.sql<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  )
  let dump = ''
  for (const { name } of tables) {
    dump += JSON.stringify(await t.sql(`select row_to_json(x)::text as line from ${name} x`))
  }
  expect(dump).toContain(first.session.sessionId)
  const everything = dump + bodies.join() + t.log.text()
  const pepper = PROVIDER.subjectPepper.reveal()
  const parts = [...token.split('.'), code, pepper, first.accessToken, first.refreshToken]
  for (const secret of [...parts.map((part) => part!.slice(-40)), 'canary', '0909090909']) {
    expect(everything).not.toContain(secret)
  }
  expect(everything).not.toContain(Buffer.from(sub).toString('hex'))
  expect(everything).not.toContain(Buffer.from(sub).toString('base64url').slice(4, 20))
})
