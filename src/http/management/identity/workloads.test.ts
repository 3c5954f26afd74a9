/** Login of workloads: tokens of five platforms' shapes, from issuers that publish their keys. */
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import {
  type ExternalLogins,
  externalLogins,
} from '../../../../build/testing/providers/external-logins.ts'
import { PROVIDER } from '../../../../build/testing/providers/identity-providers.ts'
import {
  PLATFORMS,
  type Platform,
  SHAPES,
  type WorkloadIssuers,
  workloadIssuers,
} from '../../../../build/testing/providers/workload-issuers.ts'
import { TOKEN_REJECTIONS, type TokenCheck } from '../../../identity/jwt/rejections.ts'
import { decodeBase64Url, encodeBase64Url } from '../../../value/base64url.ts'
import { Login } from '../../../wire/auth.ts'
import { read } from '../../../wire/reading/read.ts'

let issuers: WorkloadIssuers
let t: ExternalLogins

beforeEach(async () => {
  issuers = await workloadIssuers()
  t = await externalLogins({ oidc: PROVIDER, workloads: issuers.providers, network: 'real' })
})

afterEach(async () => {
  await t.dispose()
  await issuers.close()
})

const UNAUTHENTICATED = '401 PLATFORM_AUTHENTICATION_FAILED'
const GITHUB = { providerId: 'github', subject: SHAPES.github.claims.sub }
const INSTALLATION = { kind: 'installation', projectId: null, environmentId: null }
const REQUEST = { operatorName: 'deployer', role: 'developer', scope: INSTALLATION }

const token: (...given: readonly [Platform, object?, object?]) => Promise<string> = (
  platform,
  claims = {},
  header = {},
) => issuers.token(platform, t.system.nowMillis(), { ...claims }, { ...header })

const logIn = async (platform: Platform, claims: object = {}) =>
  t.logIn({}, { token: await token(platform, claims) })

async function login(response: Response, status: number): Promise<Login> {
  expect(response.status).toBe(status)
  return read(Login, await response.json(), 'PLATFORM_INTERNAL')
}

async function refusal(response: Response): Promise<string> {
  const body = (await response.json()) as { error: { code: string } }
  return `${response.status} ${body.error.code}`
}

const asOwner = (key?: string) => ({
  authorization: `Bearer ${t.owner.accessToken}`,
  ...(key !== undefined && { 'idempotency-key': key }),
})

const issue = (workload: object, change: object = {}, key?: string) =>
  t.request('POST', '/v1/access/invitations', {
    body: { ...REQUEST, workload, ...change },
    headers: asOwner(key),
  })

async function invite(workload: object = GITHUB, change: object = {}): Promise<string> {
  const response = await issue(workload, change)
  expect(response.status).toBe(201)
  return ((await response.json()) as { invitationId: string }).invitationId
}

const audit = () =>
  t.sql<{ operation: string; outcome: string; subject: string; session_id: string | null }>(
    `select operation, outcome, subject, session_id, actor_operator_id as actor
       from service_platform_audit order by at_micros, audit_id`,
  )

/** Every row that a login could add or change. */
async function stored(): Promise<unknown> {
  const names = ['operators', 'operator_grants', 'operator_identities', 'operator_sessions']
  const tables = [...names, 'operator_invitations', 'operator_token_uses', 'platform_audit']
  const rows = []
  for (const table of tables) rows.push(await t.sql(`select * from service_${table} order by 1`))
  return rows
}

describe.each(PLATFORMS)('a workload of %s', (platform) => {
  it('logs in by its invitation once, and without one afterwards', async () => {
    const before = await stored()
    expect(await refusal(await logIn(platform))).toBe(UNAUTHENTICATED)
    expect(await stored()).toEqual(before)
    await invite({ providerId: platform, subject: SHAPES[platform].claims.sub })
    const first = await login(await logIn(platform), 201)
    expect(first.refreshToken).toBeNull()
    expect(first.session.refreshExpiresAtMicros).toBe(first.session.accessExpiresAtMicros)
    expect(first.operator.operatorName).toBe('deployer')
    expect(first.grants.map(({ source }) => source)).toEqual(['invitation'])
    const me = await t.request('GET', '/v1/auth/me', {
      headers: { authorization: `Bearer ${first.accessToken}` },
    })
    expect(me.status).toBe(200)
    const again = await login(await logIn(platform), 200)
    expect(again.operator).toEqual(first.operator)
    expect(again.session.sessionId).not.toBe(first.session.sessionId)
    expect((await audit()).slice(4)).toEqual([
      expect.objectContaining({ operation: 'invitation.consume' }),
      expect.objectContaining({ operation: 'session.create', subject: first.session.sessionId }),
      expect.objectContaining({ operation: 'identity.link', subject: platform }),
      expect.objectContaining({ operation: 'session.create', subject: again.session.sessionId }),
      expect.objectContaining({ operation: 'identity.login', subject: platform }),
    ])
  })
})

describe('a token that does not fit', () => {
  const rows: readonly (readonly [string, TokenCheck | null, () => Promise<string>])[] = [
    ['of another repository', 'requiredClaim', () => token('github', { repository: 'evil/app' })],
    ['of another branch', 'requiredClaim', () => token('github', { ref: 'refs/heads/evil' })],
    [
      'of another deployment environment',
      'requiredClaim',
      () => token('github', { environment: 'preview' }),
    ],
    [
      'without a deployment environment',
      'requiredClaim',
      () => token('github', { environment: undefined }),
    ],
    [
      'of another owner',
      'discriminator',
      () => token('github', { repository_owner_id: '66', repository_owner: 'acme' }),
    ],
    ['for another audience', 'audience', () => token('github', { aud: 'https://other.example' })],
    [
      'for several audiences',
      'audience',
      () => token('kubernetes', { aud: ['https://manage.example.com', 'https://other.example'] }),
    ],
    ['that has expired', 'expired', () => issuers.token('github', t.system.nowMillis() - 300_000)],
    [
      'that lives for more than a day',
      'lifetime',
      () => token('github', { exp: Math.floor(t.system.nowMillis() / 1000) + 86_401 }),
    ],
    [
      'of another issuer with the same subject',
      null,
      () => token('gitlab', { sub: GITHUB.subject }),
    ],
    [
      'of another issuer that names this one',
      'key',
      () => token('gitlab', { ...SHAPES.github.claims, iss: SHAPES.github.issuer }),
    ],
    [
      'of another issuer that names this one and its key',
      'signature',
      () =>
        token(
          'gitlab',
          { ...SHAPES.github.claims, iss: SHAPES.github.issuer },
          { kid: 'github-key-0' },
        ),
    ],
    ['of an unknown issuer', 'issuer', () => token('github', { iss: 'https://evil.example' })],
    ['without an issuer', 'issuer', () => token('github', { iss: undefined })],
    ['of another subject', null, () => token('github', { sub: `${GITHUB.subject}2` })],
  ]
  it('is rejected for its reason, and consumes nothing', async () => {
    await invite()
    const before = await stored()
    for (const [name, check, sign] of rows) {
      const response = await t.logIn({}, { token: await sign() })
      expect(await refusal(response), name).toBe(UNAUTHENTICATED)
      const requestId = response.headers.get('x-service-request-id')
      const logged = t.log.records().filter((record) => record.requestId === requestId)
      const detail =
        check === null
          ? 'a subject without link, invitation and enrollment'
          : `external token: ${TOKEN_REJECTIONS[check]}`
      const refused = logged.filter(({ event }) => event === 'http.refused')
      expect(refused, name).toMatchObject([{ detail }])
    }
    expect(await stored()).toEqual(before)
    await login(await logIn('github'), 201)
  })
})

describe('a token that opened a session', () => {
  it('opens no other one, and its first replay is in the audit', async () => {
    await invite()
    const used = await token('github')
    const first = await login(await t.logIn({}, { token: used }), 201)
    for (let i = 0; i < 3; i++) {
      expect(await refusal(await t.logIn({}, { token: used }))).toBe(UNAUTHENTICATED)
    }
    expect((await audit()).filter(({ outcome }) => outcome === 'denied')).toEqual([
      {
        operation: 'identity.login',
        outcome: 'denied',
        subject: 'github',
        session_id: first.session.sessionId,
        actor: null,
      },
    ])
    await login(await logIn('github'), 200)
    expect(t.log.text()).toContain(TOKEN_REJECTIONS.replayed)
  })

  it('opens no other one with a signature of another form', async () => {
    await invite({ providerId: 'other', subject: SHAPES.other.claims.sub })
    const used = await token('other')
    await login(await t.logIn({}, { token: used }), 201)
    const other = withOtherSignature(used)
    expect(other).not.toBe(used)
    expect(await refusal(await t.logIn({}, { token: other }))).toBe(UNAUTHENTICATED)
    expect(t.log.text()).not.toContain(TOKEN_REJECTIONS.signature)
    expect(t.log.text()).toContain(TOKEN_REJECTIONS.replayed)
  })

  it('opens one session, however often it is presented at once', async () => {
    await invite()
    const used = await token('github')
    const servers = [t.identity, t.another({ external: { workloads: issuers.providers } })]
    const statuses = await Promise.all(
      Array.from({ length: 16 }, async (_, i) => {
        return (await t.logIn({}, { token: used, identity: servers[i % 2]! })).status
      }),
    )
    expect(statuses.toSorted()).toEqual([201, ...Array(15).fill(401)])
    expect(await t.sql('select 1 from service_operator_token_uses')).toHaveLength(1)
  })

  it('is forgotten only after its end', async () => {
    await invite()
    const used = await token('github')
    await login(await t.logIn({}, { token: used }), 201)
    t.system.advance(299_000)
    expect(await refusal(await t.logIn({}, { token: used }))).toBe(UNAUTHENTICATED)
    expect(t.log.text()).toContain(TOKEN_REJECTIONS.replayed)
    await login(await logIn('github'), 200)
    expect(await t.sql('select 1 from service_operator_token_uses')).toHaveLength(2)
    t.system.advance(420_000)
    await login(await logIn('github'), 200)
    expect(await t.sql('select 1 from service_operator_token_uses')).toHaveLength(1)
  })
})

/** ECDSA accepts (r, n - s) where it accepts (r, s): another text with the same claims. */
function withOtherSignature(signed: string): string {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const [header, claims, signature] = signed.split('.')
  const bytes = decodeBase64Url(signature!)
  const s = order - BigInt(`0x${Buffer.from(bytes.subarray(32)).toString('hex')}`)
  const other = Buffer.concat([
    bytes.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, '0'), 'hex'),
  ])
  return `${header}.${claims}.${encodeBase64Url(other)}`
}

describe('an invitation of a workload', () => {
  it('has no code, neither at first nor in its replay', async () => {
    const key = t.system.ids.make('opn')
    const [first, replay] = [await issue(GITHUB, {}, key), await issue(GITHUB, {}, key)]
    expect([first.status, replay.status]).toEqual([201, 200])
    const issued = (await first.json()) as object
    expect(issued).toMatchObject({ secretShownOnce: false, replayed: false })
    expect(issued).toMatchObject({ workload: { providerId: 'github' } })
    expect(issued).not.toHaveProperty('code')
    expect(await replay.json()).toEqual({ ...issued, replayed: true })
    const path = `/v1/access/invitation-operations/${key}`
    const looked = await t.request('GET', path, { headers: asOwner() })
    expect(await looked.json()).toEqual({ ...issued, replayed: true, state: 'pending' })
  })

  it('cannot be replayed with another workload, or with none', async () => {
    const key = t.system.ids.make('opn')
    await issue(GITHUB, {}, key)
    const others = [
      { ...GITHUB, subject: 'repo:acme/other:environment:production' },
      { ...GITHUB, providerId: 'gitlab' },
      undefined,
    ]
    for (const workload of others) {
      const response = await issue(GITHUB, { workload }, key)
      expect(await refusal(response)).toBe('409 PLATFORM_INVITATION_OPERATION_REUSED')
    }
  })

  it('is invalid where no login could consume it', async () => {
    const before = await stored()
    const rows: readonly (readonly [string, object])[] = [
      ['an unknown provider', { ...GITHUB, providerId: 'jenkins' }],
      ['the provider of people', { ...GITHUB, providerId: PROVIDER.providerId }],
      ['an empty subject', { ...GITHUB, subject: '' }],
      ['a subject that no token may have', { ...GITHUB, subject: 'x'.repeat(256) }],
      ['a subject with a line end', { ...GITHUB, subject: 'repo:acme/app\n' }],
      ['no subject', { providerId: 'github' }],
      ['an unknown field', { ...GITHUB, issuer: 'https://evil.example' }],
    ]
    for (const [name, workload] of rows) {
      expect(await refusal(await issue(workload)), name).toBe('400 PLATFORM_REQUEST_INVALID')
    }
    expect(await stored()).toEqual(before)
  })

  it('takes what its creator may delegate, like any other', async () => {
    await invite(GITHUB, { role: 'observer' })
    const observer = await login(await logIn('github'), 201)
    const response = await t.request('POST', '/v1/access/invitations', {
      body: { ...REQUEST, workload: { ...GITHUB, subject: 'another' } },
      headers: { authorization: `Bearer ${observer.accessToken}` },
    })
    expect(await refusal(response)).toBe('403 PLATFORM_ACCESS_DENIED')
  })

  it('works for 30 minutes', async () => {
    const late = { ...GITHUB, subject: 'repo:acme/late:environment:production' }
    await invite()
    await invite(late)
    t.system.advance(1_799_000)
    await login(await logIn('github'), 201)
    t.system.advance(1_000)
    const before = await stored()
    expect(await refusal(await logIn('github', { sub: late.subject }))).toBe(UNAUTHENTICATED)
    expect(await stored()).toEqual(before)
  })

  it('that was revoked is worth nothing', async () => {
    const path = `/v1/access/invitations/${await invite()}`
    expect((await t.request('DELETE', path, { headers: asOwner() })).status).toBe(204)
    expect(await refusal(await logIn('github'))).toBe(UNAUTHENTICATED)
  })

  it('is the newest one where there are several', async () => {
    await invite(GITHUB, { role: 'owner', operatorName: 'by mistake' })
    const path = `/v1/access/invitations/${await invite(GITHUB, { role: 'owner' })}`
    expect((await t.request('DELETE', path, { headers: asOwner() })).status).toBe(204)
    await invite(GITHUB, { role: 'observer', operatorName: 'corrected' })
    const first = await login(await logIn('github'), 201)
    expect(first.operator.operatorName).toBe('corrected')
    expect((await login(await logIn('github'), 200)).operator).toEqual(first.operator)
  })

  it('of a workload that is linked is a conflict', async () => {
    await invite()
    await login(await logIn('github'), 201)
    const before = await stored()
    expect(await refusal(await issue(GITHUB))).toBe('409 PLATFORM_CONFLICT')
    expect(await stored()).toEqual(before)
    await invite({ ...GITHUB, subject: 'another' })
  })

  it('links one operator, however many jobs log in first at once', async () => {
    await invite()
    await invite()
    const statuses = await Promise.all(
      Array.from({ length: 16 }, async () => (await logIn('github')).status),
    )
    expect(statuses.toSorted()).toEqual([...Array(15).fill(200), 201])
    expect(await t.sql('select 1 from service_operators')).toHaveLength(2)
  })
})

test('a workload whose operator is disabled cannot log in, and its token is not used up', async () => {
  await invite()
  await login(await logIn('github'), 201)
  await t.sql(
    `update service_operators set disabled_at_micros = 1 where operator_name = 'deployer'`,
  )
  const presented = await token('github')
  expect(await refusal(await t.logIn({}, { token: presented }))).toBe(UNAUTHENTICATED)
  await t.sql(`update service_operators set disabled_at_micros = null`)
  await login(await t.logIn({}, { token: presented }), 200)
})

test('a session of a workload ends with its access token', async () => {
  await invite()
  const { accessToken, session } = await login(await logIn('github'), 201)
  const headers = { authorization: `Bearer ${accessToken}` }
  t.system.advance(599_000)
  const listed = await t.request('GET', '/v1/auth/sessions', { headers })
  expect(await listed.json()).toMatchObject({ sessions: [{ sessionId: session.sessionId }] })
  t.system.advance(1_000)
  expect((await t.request('GET', '/v1/auth/me', { headers })).status).toBe(401)
  const again = await login(await logIn('github'), 200)
  const now = await t.request('GET', '/v1/auth/sessions', {
    headers: { authorization: `Bearer ${again.accessToken}` },
  })
  expect(await now.json()).toMatchObject({ sessions: [{ sessionId: again.session.sessionId }] })
})

test('workloads log in a week later, with the new keys of their platforms', async () => {
  const operators = new Map<Platform, string>()
  for (const platform of PLATFORMS) {
    await invite({ providerId: platform, subject: SHAPES[platform].claims.sub })
    operators.set(platform, (await login(await logIn(platform), 201)).operator.operatorId)
  }
  t.system.advance(7 * 86_400_000)
  await issuers.rotate()
  for (const platform of PLATFORMS) {
    const { operator } = await login(await logIn(platform), 200)
    expect(operator.operatorId).toBe(operators.get(platform))
  }
})

test('workload providers alone make helper tokens a way to log in', async () => {
  const identity = t.another({ external: { workloads: issuers.providers } })
  const config = await t.request('GET', '/v1/auth/config', { identity })
  expect(await config.json()).toMatchObject({ methods: ['invitation', 'helper_token'] })
  const client = await t.request('GET', '/v1/auth/oidc/config', { identity })
  expect(await refusal(client)).toBe('404 PLATFORM_NOT_FOUND')
})

test('no subject and no token of a workload is in any table, log line or answer', async () => {
  const subject = 'repo:canary/secret-project:environment:production'
  const issued = await issue({ ...GITHUB, subject })
  const answers = [await issued.text()]
  const tokens = [await token('github', { sub: subject }), await token('github', { sub: subject })]
  for (const presented of [...tokens, tokens[0]!]) {
    answers.push(await (await t.logIn({}, { token: presented })).text())
  }
  const tables = await t.sql<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  )
  let dump = ''
  for (const { name } of tables) {
    dump += JSON.stringify(await t.sql(`select row_to_json(x)::text as line from ${name} x`))
  }
  expect(dump).toContain('"provider_id\\":\\"github')
  const everything = dump + answers.join() + t.log.text()
  expect(everything).not.toMatch(/canary|secret-project/)
  expect(everything).not.toContain(Buffer.from(subject).toString('hex'))
  for (const presented of tokens) expect(everything).not.toContain(presented.slice(-40))
})
