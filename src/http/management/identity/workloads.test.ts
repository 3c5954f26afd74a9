/**
 * Login of workloads: tokens of five platforms' shapes, from issuers that publish their keys.
 *
 * @module-tag slow
 */
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { PLATFORMS, type Platform, SHAPES } from '../../../../testing/providers/workload-issuers.ts'
import {
  GITHUB,
  readLogin,
  readRejection,
  UNAUTHENTICATED,
  type WorkloadLogins,
  workloadLogins,
} from '../../../../testing/providers/workload-logins.ts'
import { TOKEN_REJECTIONS, type TokenCheck } from '../../../identity/jwt/rejections.ts'
import { decodeBase64Url, encodeBase64Url } from '../../../value/base64url.ts'

let w: WorkloadLogins

beforeEach(async () => {
  w = await workloadLogins()
})

afterEach(() => w.dispose())

const audit = () =>
  w.t.sql<{ operation: string; outcome: string; subject: string; session_id: string | null }>(
    `select operation, outcome, subject, session_id, actor_operator_id as actor
       from service_platform_audit order by at_micros, audit_id`,
  )

describe.each(PLATFORMS)('a workload of %s', (platform) => {
  it('logs in by its invitation once, and without one afterwards', async () => {
    const before = await w.stored()
    expect(await readRejection(await w.logIn(platform))).toBe(UNAUTHENTICATED)
    expect(await w.stored()).toEqual(before)
    const rejected = { operation: 'identity.login', outcome: 'denied', subject: platform }
    expect((await audit()).at(-1)).toMatchObject({ ...rejected, actor: null })
    await w.invite({ providerId: platform, subject: SHAPES[platform].claims.sub })
    const first = await readLogin(await w.logIn(platform), 201)
    expect(first.refreshToken).toBeNull()
    expect(first.session.refreshExpiresAtMicros).toBe(first.session.accessExpiresAtMicros)
    expect(first.operator.operatorName).toBe('deployer')
    expect(first.grants.map(({ source }) => source)).toEqual(['invitation'])
    const me = await w.t.request('GET', '/v1/auth/me', {
      headers: { authorization: `Bearer ${first.accessToken}` },
    })
    expect(me.status).toBe(200)
    const again = await readLogin(await w.logIn(platform), 200)
    expect(again.operator).toEqual(first.operator)
    expect(again.session.sessionId).not.toBe(first.session.sessionId)
    expect((await audit()).slice(5)).toEqual([
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
    ['of another repository', 'requiredClaim', () => w.token('github', { repository: 'evil/app' })],
    ['of another branch', 'requiredClaim', () => w.token('github', { ref: 'refs/heads/evil' })],
    [
      'of another deployment environment',
      'requiredClaim',
      () => w.token('github', { environment: 'preview' }),
    ],
    [
      'without a deployment environment',
      'requiredClaim',
      () => w.token('github', { environment: undefined }),
    ],
    [
      'of another owner',
      'discriminator',
      () => w.token('github', { repository_owner_id: '66', repository_owner: 'acme' }),
    ],
    ['for another audience', 'audience', () => w.token('github', { aud: 'https://other.example' })],
    [
      'for several audiences',
      'audience',
      () => w.token('kubernetes', { aud: ['https://manage.example.com', 'https://other.example'] }),
    ],
    [
      'that has expired',
      'expired',
      () => w.issuers.token('github', w.t.system.nowMillis() - 300_000),
    ],
    [
      'that lives for more than a day',
      'lifetime',
      () => w.token('github', { exp: Math.floor(w.t.system.nowMillis() / 1000) + 86_401 }),
    ],
    [
      'of another issuer with the same subject',
      null,
      () => w.token('gitlab', { sub: GITHUB.subject }),
    ],
    [
      'of another issuer that names this one',
      'key',
      () => w.token('gitlab', { ...SHAPES.github.claims, iss: SHAPES.github.issuer }),
    ],
    [
      'of another issuer that names this one and its key',
      'signature',
      () =>
        w.token(
          'gitlab',
          { ...SHAPES.github.claims, iss: SHAPES.github.issuer },
          { kid: 'github-key-0' },
        ),
    ],
    ['of an unknown issuer', 'issuer', () => w.token('github', { iss: 'https://evil.example' })],
    ['without an issuer', 'issuer', () => w.token('github', { iss: undefined })],
    ['of another subject', null, () => w.token('github', { sub: `${GITHUB.subject}2` })],
  ]
  it('a token is rejected for its reason, audited, and consumes nothing', async () => {
    await w.invite()
    const before = await w.stored()
    const recordsBefore = (await audit()).length
    for (const [name, check, sign] of rows) {
      const response = await w.t.logIn({}, { token: await sign() })
      expect(await readRejection(response), name).toBe(UNAUTHENTICATED)
      const requestId = response.headers.get('x-service-request-id')
      const logged = w.t.log.records().filter((record) => record.requestId === requestId)
      const detail =
        check === null
          ? 'the subject has no link, invitation or enrollment'
          : `external token: ${TOKEN_REJECTIONS[check]}`
      const rejected = logged.filter(({ event }) => event === 'request.rejected')
      expect(rejected, name).toMatchObject([{ detail }])
    }
    expect(await w.stored()).toEqual(before)
    const records = (await audit()).slice(recordsBefore)
    expect(records).toHaveLength(Math.min(rows.length, 10))
    for (const record of records) {
      expect(record).toMatchObject({ operation: 'identity.login', outcome: 'denied', actor: null })
    }
    await readLogin(await w.logIn('github'), 201)
  })

  it('a rejected token is audited 10 times a minute at most, without its contents', async () => {
    const denied = async () => (await audit()).filter(({ outcome }) => outcome === 'denied')
    const foreign = () => w.token('github', { iss: 'https://evil.example', sub: 'canary' })
    const wrong = () => w.token('github', { aud: 'canary' })
    for (const token of [foreign, wrong, ...Array(11).fill(wrong)]) {
      expect(await readRejection(await w.t.logIn({}, { token: await token() }))).toBe(
        UNAUTHENTICATED,
      )
    }
    const subjects = (await denied()).map(({ subject }) => subject)
    expect(subjects).toEqual([null, ...Array(9).fill('github')])
    w.t.system.advance(60_000)
    expect(await readRejection(await w.t.logIn({}, { token: await wrong() }))).toBe(UNAUTHENTICATED)
    expect(await denied()).toHaveLength(11)
    expect(JSON.stringify(await audit())).not.toContain('canary')
  })
})

describe('a token that opened a session', () => {
  it('opens no other one, and its first replay is in the audit', async () => {
    await w.invite()
    const used = await w.token('github')
    const first = await readLogin(await w.t.logIn({}, { token: used }), 201)
    for (let i = 0; i < 3; i++) {
      expect(await readRejection(await w.t.logIn({}, { token: used }))).toBe(UNAUTHENTICATED)
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
    await readLogin(await w.logIn('github'), 200)
    expect(w.t.log.text()).toContain(TOKEN_REJECTIONS.replayed)
  })

  it('opens no other one with a signature of another form', async () => {
    await w.invite({ providerId: 'other', subject: SHAPES.other.claims.sub })
    const used = await w.token('other')
    await readLogin(await w.t.logIn({}, { token: used }), 201)
    const other = withOtherSignature(used)
    expect(other).not.toBe(used)
    expect(await readRejection(await w.t.logIn({}, { token: other }))).toBe(UNAUTHENTICATED)
    expect(w.t.log.text()).not.toContain(TOKEN_REJECTIONS.signature)
    expect(w.t.log.text()).toContain(TOKEN_REJECTIONS.replayed)
  })

  it('opens one session, however often it is presented at once', async () => {
    await w.invite()
    const used = await w.token('github')
    const servers = [w.t.identity, w.t.another({ external: { workloads: w.issuers.providers } })]
    const statuses = await Promise.all(
      Array.from({ length: 16 }, async (_, i) => {
        return (await w.t.logIn({}, { token: used, identity: servers[i % 2]! })).status
      }),
    )
    expect(statuses.toSorted()).toEqual([201, ...Array(15).fill(401)])
    expect(await w.t.sql('select 1 from service_operator_token_uses')).toHaveLength(1)
  })

  it('a used token is forgotten only after its end', async () => {
    await w.invite()
    const used = await w.token('github')
    await readLogin(await w.t.logIn({}, { token: used }), 201)
    w.t.system.advance(299_000)
    expect(await readRejection(await w.t.logIn({}, { token: used }))).toBe(UNAUTHENTICATED)
    expect(w.t.log.text()).toContain(TOKEN_REJECTIONS.replayed)
    await readLogin(await w.logIn('github'), 200)
    expect(await w.t.sql('select 1 from service_operator_token_uses')).toHaveLength(2)
    w.t.system.advance(420_000)
    await readLogin(await w.logIn('github'), 200)
    expect(await w.t.sql('select 1 from service_operator_token_uses')).toHaveLength(1)
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

test('a rejected login of a disabled operator does not use its token up', async () => {
  await w.invite()
  await readLogin(await w.logIn('github'), 201)
  await w.t.sql(
    `update service_operators set disabled_at_micros = 1 where operator_name = 'deployer'`,
  )
  const presented = await w.token('github')
  expect(await readRejection(await w.t.logIn({}, { token: presented }))).toBe(UNAUTHENTICATED)
  await w.t.sql(`update service_operators set disabled_at_micros = null`)
  await readLogin(await w.t.logIn({}, { token: presented }), 200)
})

test('a session of a workload ends with its access token', async () => {
  await w.invite()
  const { accessToken, session } = await readLogin(await w.logIn('github'), 201)
  const headers = { authorization: `Bearer ${accessToken}` }
  w.t.system.advance(599_000)
  const listed = await w.t.request('GET', '/v1/auth/sessions', { headers })
  expect(await listed.json()).toMatchObject({ sessions: [{ sessionId: session.sessionId }] })
  w.t.system.advance(1_000)
  expect((await w.t.request('GET', '/v1/auth/me', { headers })).status).toBe(401)
  const again = await readLogin(await w.logIn('github'), 200)
  const now = await w.t.request('GET', '/v1/auth/sessions', {
    headers: { authorization: `Bearer ${again.accessToken}` },
  })
  expect(await now.json()).toMatchObject({ sessions: [{ sessionId: again.session.sessionId }] })
})

test('workloads log in a week later, with the new keys of their platforms', async () => {
  const operators = new Map<Platform, string>()
  for (const platform of PLATFORMS) {
    await w.invite({ providerId: platform, subject: SHAPES[platform].claims.sub })
    operators.set(platform, (await readLogin(await w.logIn(platform), 201)).operator.operatorId)
  }
  w.t.system.advance(7 * 86_400_000)
  await w.issuers.rotate()
  for (const platform of PLATFORMS) {
    const { operator } = await readLogin(await w.logIn(platform), 200)
    expect(operator.operatorId).toBe(operators.get(platform))
  }
})

test('workload providers alone make helper tokens a way to log in', async () => {
  const identity = w.t.another({ external: { workloads: w.issuers.providers } })
  const config = await w.t.request('GET', '/v1/auth/config', { identity })
  expect(await config.json()).toMatchObject({ methods: ['invitation', 'helper_token'] })
  const client = await w.t.request('GET', '/v1/auth/oidc/config', { identity })
  expect(await readRejection(client)).toBe('404 PLATFORM_NOT_FOUND')
})

test('no subject and no token of a workload is in any table, log line or answer', async () => {
  const subject = 'repo:canary/secret-project:environment:production'
  const issued = await w.issue({ ...GITHUB, subject })
  const answers = [await issued.text()]
  const tokens = [
    await w.token('github', { sub: subject }),
    await w.token('github', { sub: subject }),
  ]
  for (const presented of [...tokens, tokens[0]!]) {
    answers.push(await (await w.t.logIn({}, { token: presented })).text())
  }
  const tables = await w.t.sql<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  )
  let dump = ''
  for (const { name } of tables) {
    dump += JSON.stringify(await w.t.sql(`select row_to_json(x)::text as line from ${name} x`))
  }
  expect(dump).toContain('"provider_id\\":\\"github')
  const everything = dump + answers.join() + w.t.log.text()
  expect(everything).not.toMatch(/canary|secret-project/)
  expect(everything).not.toContain(Buffer.from(subject).toString('hex'))
  for (const presented of tokens) expect(everything).not.toContain(presented.slice(-40))
})
