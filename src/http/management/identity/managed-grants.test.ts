import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  AUTHORITY,
  type ExternalLogins,
  externalLogins,
  MANAGED_HEADER,
  MANAGED_TOKEN,
  PROJECT,
  PROJECT_SCOPE,
} from '../../../../testing/providers/external-logins.ts'
import { PROVIDER } from '../../../../testing/providers/identity-providers.ts'
import { CAPABILITIES, capabilitiesOfRole } from '../../../value/capabilities.ts'
import { Secret } from '../../../value/secret.ts'
import { Login } from '../../../wire/identity/auth.ts'
import { read } from '../../../wire/reading/read.ts'

const OTHER_PROJECT = 'prj_00000000000000000000000002'
const ENVIRONMENT = 'env_00000000000000000000000001'
const DEVELOPER = { scope: PROJECT_SCOPE, role: 'developer' }
const OBSERVER = { scope: { ...PROJECT_SCOPE, projectId: OTHER_PROJECT }, role: 'observer' }
const IN_ENVIRONMENT = {
  scope: { kind: 'environment', projectId: PROJECT, environmentId: ENVIRONMENT },
  role: 'operator',
}
const UNAUTHENTICATED = '401 PLATFORM_AUTHENTICATION_FAILED'
const INVALID = '400 PLATFORM_REQUEST_INVALID'
let t: ExternalLogins

beforeEach(async () => {
  t = await externalLogins()
})

afterEach(() => t.dispose())

async function code(response: Response): Promise<string> {
  const body = (await response.json()) as { error?: { code: string } }
  return `${response.status} ${body.error?.code ?? 'ok'}`
}

const enrollment = (given: object = {}) => ({
  managedEnrollment: {
    operatorName: 'Managed',
    sourceRevision: 1,
    grants: [DEVELOPER],
    ...given,
  },
})
const enroll = (given: object = {}, headers: Record<string, string> = MANAGED_HEADER) =>
  t.logIn(enrollment(given), { headers })

async function enrolled(given: object = {}): Promise<Login> {
  const response = await enroll(given)
  expect(response.status).toBe(201)
  return read(Login, await response.json(), 'PLATFORM_INTERNAL')
}

async function grantsOf(operatorId: string): Promise<string[]> {
  const rows = await t.sql<{ line: string }>(
    `select source || ' ' || coalesce(project_id, '-') || ' ' || array_to_string(capabilities, ',')
            as line
       from service_operator_grants where operator_id = $1 order by grant_id`,
    [operatorId],
  )
  return rows.map(({ line }) => line)
}

async function state(): Promise<string> {
  const parts: unknown[] = []
  const names = ['operators', 'operator_grants', 'operator_identities', 'operator_sessions']
  for (const name of [...names, 'operator_managed_revisions', 'platform_audit']) {
    parts.push(await t.sql(`select * from service_${name} order by 1, 2`))
  }
  return JSON.stringify(parts)
}

const auditOf = async (response: Response) => {
  const requestId = response.headers.get('x-service-request-id')
  const rows = await t.sql<{ operation: string }>(
    `select operation from service_platform_audit where request_id = $1 order by audit_id`,
    [requestId],
  )
  return rows.map((row) => row.operation)
}
const line = (source: string, project: string, role: 'developer' | 'observer') =>
  `${source} ${project} ${capabilitiesOfRole(role).join(',')}`

describe('managed enrollment', () => {
  it('creates operator, link, grants, revision and session in one transaction', {
    tags: ['slow'],
  }, async () => {
    const response = await enroll({ grants: [DEVELOPER, OBSERVER] })
    expect(await auditOf(response)).toEqual(['identity.link', 'grants.reconcile', 'session.create'])
    expect(response.status).toBe(201)
    const login = read(Login, await response.json(), 'PLATFORM_INTERNAL')
    expect(login.operator.operatorName).toBe('Managed')
    expect(login.grants).toEqual([
      {
        scope: PROJECT_SCOPE,
        capabilities: [...capabilitiesOfRole('developer')],
        source: 'managed',
      },
      {
        scope: OBSERVER.scope,
        capabilities: [...capabilitiesOfRole('observer')],
        source: 'managed',
      },
    ])
    const [source] = await t.sql('select authority from service_operator_managed_sources')
    expect(source).toEqual({ authority: AUTHORITY })
  })

  it('a repeated enrollment of one revision opens a session and changes nothing else', async () => {
    const first = await enrolled()
    const response = await enroll({ operatorName: 'Renamed' })
    expect(await auditOf(response)).toEqual(['session.create', 'identity.login'])
    expect(response.status).toBe(200)
    const again = read(Login, await response.json(), 'PLATFORM_INTERNAL')
    expect([again.operator, again.grants]).toEqual([first.operator, first.grants])
  })

  it('creates one operator for sixteen concurrent requests', { tags: ['slow'] }, async () => {
    const responses = await Promise.all(Array.from({ length: 16 }, () => enroll()))
    const statuses = responses.map((response) => response.status).sort()
    expect(statuses).toEqual([...Array(15).fill(200), 201])
    expect(await t.sql('select 1 from service_operator_identities')).toHaveLength(1)
    const audit = await t.audit()
    const count = (operation: string) => audit.filter((each) => each === operation).length
    expect(count('identity.link')).toBe(1)
    expect(count('grants.reconcile')).toBe(1)
    expect(count('identity.login')).toBe(15)
  })

  it('a greater revision replaces the grants, and the login has the new ones', async () => {
    await enrolled()
    const response = await enroll({ sourceRevision: 2, grants: [OBSERVER] })
    const login = read(Login, await response.json(), 'PLATFORM_INTERNAL')
    expect(login.grants.map((grant) => grant.scope.projectId)).toEqual([OTHER_PROJECT])
  })

  it('an enrollment that is stale or in conflict fails the whole login', async () => {
    await enrolled({ sourceRevision: 5 })
    const before = await state()
    const sent = [{ sourceRevision: 4 }, { sourceRevision: 5, grants: [] }]
    expect(await code(await enroll(sent[0]))).toBe('409 PLATFORM_MANAGED_SOURCE_STALE')
    expect(await code(await enroll(sent[1]))).toBe('409 PLATFORM_MANAGED_SOURCE_CONFLICT')
    expect(await state()).toBe(before)
  })

  it('later logins do not require an enrollment', async () => {
    await enrolled()
    expect((await t.logIn()).status).toBe(200)
    expect((await t.logIn({}, { headers: MANAGED_HEADER })).status).toBe(200)
  })

  it('an enrollment of an invited operator keeps the invited grant and adds its own', async () => {
    const invited = await t.logIn({ code: await t.invite('observer') })
    const { operator } = read(Login, await invited.json(), 'PLATFORM_INTERNAL')
    expect((await enroll()).status).toBe(200)
    expect(await grantsOf(operator.operatorId)).toEqual([
      line('invitation', '-', 'observer'),
      line('managed', PROJECT, 'developer'),
    ])
  })
})

describe('reconciliation', () => {
  const put = async (operatorId: string, sourceRevision: unknown, grants: unknown) => {
    const response = await t.reconcile(operatorId, { sourceRevision, grants })
    return response.status === 200 ? response.json() : code(response)
  }

  it('replaces only the grants of the source', async () => {
    const { operatorId } = t.owner
    expect(await put(operatorId, 1, [DEVELOPER])).toEqual({
      version: 1,
      applied: true,
      replayed: false,
      sourceRevision: '1',
      authorizationRevision: '2',
    })
    const bootstrap = `bootstrap - ${CAPABILITIES.join(',')}`
    expect(await grantsOf(operatorId)).toEqual([bootstrap, line('managed', PROJECT, 'developer')])
    await put(operatorId, 2, [OBSERVER])
    expect(await grantsOf(operatorId)).toEqual([
      bootstrap,
      line('managed', OTHER_PROJECT, 'observer'),
    ])
    expect(await put(operatorId, 3, [])).toMatchObject({ authorizationRevision: '4' })
    expect(await grantsOf(operatorId)).toEqual([bootstrap])
  })

  it('keeps the grants of another source', async () => {
    const { operator } = await enrolled()
    const enrollmentToken = new Secret(MANAGED_TOKEN)
    const identity = t.another({
      external: {
        oidc: PROVIDER,
        managedSource: { enrollmentToken, authority: 'https://other.example.com' },
      },
    })
    const path = `/v1/auth/managed/operators/${operator.operatorId}/grants`
    const body = { sourceRevision: 1, grants: [OBSERVER] }
    const response = await t.request('PUT', path, { body, headers: MANAGED_HEADER, identity })
    expect(response.status).toBe(200)
    expect(await grantsOf(operator.operatorId)).toEqual([
      line('managed', PROJECT, 'developer'),
      line('managed', OTHER_PROJECT, 'observer'),
    ])
  })

  it('takes effect on the next request of an open session', async () => {
    const login = await enrolled()
    const me = async () => {
      const headers = { authorization: `Bearer ${login.accessToken}` }
      const response = await t.request('GET', '/v1/auth/me', { headers })
      return response.json()
    }
    expect(await me()).toMatchObject({ authorizationRevision: '2', grants: [{}] })
    await put(login.operator.operatorId, 2, [])
    expect(await me()).toMatchObject({ authorizationRevision: '3', grants: [] })
  })

  it('an equal revision is replayed for the same grants in any order', async () => {
    const { operatorId } = t.owner
    await put(operatorId, '7', [DEVELOPER, OBSERVER, IN_ENVIRONMENT])
    const before = await state()
    for (const grants of [
      [DEVELOPER, OBSERVER, IN_ENVIRONMENT],
      [IN_ENVIRONMENT, OBSERVER, DEVELOPER],
      [OBSERVER, DEVELOPER, OBSERVER, IN_ENVIRONMENT, DEVELOPER],
    ]) {
      expect(await put(operatorId, 7, grants)).toEqual({
        version: 1,
        applied: false,
        replayed: true,
        sourceRevision: '7',
        authorizationRevision: '2',
      })
    }
    expect(await state()).toBe(before)
  })

  it('an equal revision with other grants is a conflict, and a lower one is stale', {
    tags: ['slow'],
  }, async () => {
    const { operatorId } = t.owner
    await put(operatorId, 7, [DEVELOPER])
    const before = await state()
    for (const grants of [
      [],
      [OBSERVER],
      [DEVELOPER, OBSERVER],
      [{ ...DEVELOPER, role: 'observer' }],
      [DEVELOPER, { ...DEVELOPER, role: 'observer' }],
    ]) {
      expect(await put(operatorId, 7, grants)).toBe('409 PLATFORM_MANAGED_SOURCE_CONFLICT')
      expect(await put(operatorId, 6, grants)).toBe('409 PLATFORM_MANAGED_SOURCE_STALE')
    }
    expect(await put(operatorId, 6, [DEVELOPER])).toBe('409 PLATFORM_MANAGED_SOURCE_STALE')
    expect(await state()).toBe(before)
  })

  it('keeps revisions over 2^53 exactly', async () => {
    const { operatorId } = t.owner
    const revisions = [
      '9007199254740991',
      '9007199254740992',
      '9007199254740993',
      '18446744073709551614',
      '18446744073709551615',
    ]
    for (const [i, revision] of revisions.entries()) {
      expect(await put(operatorId, revision, [DEVELOPER])).toMatchObject({
        applied: true,
        sourceRevision: revision,
        authorizationRevision: String(i + 2),
      })
    }
    const stale = '409 PLATFORM_MANAGED_SOURCE_STALE'
    expect(await put(operatorId, '18446744073709551614', [DEVELOPER])).toBe(stale)
    expect(await put(operatorId, '18446744073709551615', [])).toBe(
      '409 PLATFORM_MANAGED_SOURCE_CONFLICT',
    )
  })

  it('merges the roles of one scope', async () => {
    await put(t.owner.operatorId, 1, [DEVELOPER, { ...DEVELOPER, role: 'observer' }])
    const both = [...capabilitiesOfRole('developer'), ...capabilitiesOfRole('observer')]
    const joined = [...new Set(both)].sort().join(',')
    expect((await grantsOf(t.owner.operatorId))[1]).toBe(`managed ${PROJECT} ${joined}`)
  })

  it('sixteen concurrent revisions end with the greatest', { tags: ['slow'] }, async () => {
    const { operatorId } = t.owner
    const outcomes = await Promise.all(
      Array.from({ length: 16 }, (_, i) =>
        put(operatorId, i + 1, i === 15 ? [OBSERVER] : [DEVELOPER]),
      ),
    )
    const stale = outcomes.filter((each) => each === '409 PLATFORM_MANAGED_SOURCE_STALE').length
    const applied = outcomes.filter((each) => typeof each === 'object').length
    expect(stale + applied).toBe(16)
    expect((await grantsOf(operatorId))[1]).toBe(line('managed', OTHER_PROJECT, 'observer'))
    const audit = (await t.audit()).filter((each) => each === 'grants.reconcile')
    expect(audit).toHaveLength(applied)
  })

  it('adopts the legacy grants of a linked operator, once', async () => {
    const invited = await t.logIn({ code: await t.invite('observer') })
    const { operator } = read(Login, await invited.json(), 'PLATFORM_INTERNAL')
    await t.sql(`update service_operator_grants set source = 'legacy'`)
    const first = await t.reconcile(operator.operatorId, {
      sourceRevision: 1,
      grants: [DEVELOPER],
    })
    expect(await auditOf(first)).toEqual(['grants.adopt_legacy', 'grants.reconcile'])
    expect(await grantsOf(operator.operatorId)).toEqual([line('managed', PROJECT, 'developer')])
    expect(await grantsOf(t.owner.operatorId)).toEqual([`legacy - ${CAPABILITIES.join(',')}`])
    const second = await t.reconcile(operator.operatorId, { sourceRevision: 2, grants: [] })
    expect(await auditOf(second)).toEqual(['grants.reconcile'])
  })

  it('keeps the legacy grants of an operator who is not linked', async () => {
    await t.sql(`update service_operator_grants set source = 'legacy'`)
    const response = await t.reconcile(t.owner.operatorId, {
      sourceRevision: 1,
      grants: [DEVELOPER],
    })
    expect(await auditOf(response)).toEqual(['grants.reconcile'])
    expect((await grantsOf(t.owner.operatorId))[0]).toMatch(/^legacy/)
  })

  it('a replayed reconciliation adopts nothing', { tags: ['slow'] }, async () => {
    const { operator } = await enrolled()
    await t.sql(
      `insert into service_operator_grants
         (operator_id, scope_kind, capabilities, source, created_at_micros)
       values ($1, 'installation', array['logs:read'], 'legacy', 1)`,
      [operator.operatorId],
    )
    const response = await t.reconcile(operator.operatorId, {
      sourceRevision: 1,
      grants: [DEVELOPER],
    })
    expect(await response.json()).toMatchObject({ replayed: true })
    expect(await grantsOf(operator.operatorId)).toContain('legacy - logs:read')
  })

  it('an unknown operator is 404, and one of another form is 400', { tags: ['slow'] }, async () => {
    const body = { sourceRevision: 1, grants: [] }
    const unknown = await t.reconcile(t.system.ids.make('opr'), body)
    expect(await code(unknown)).toBe('404 PLATFORM_NOT_FOUND')
    expect(await code(await t.reconcile('opr_1', body))).toBe(INVALID)
    expect(await t.sql('select 1 from service_operator_managed_sources')).toEqual([])
  })

  it.each<[string, () => Record<string, string>]>([
    ['no header', () => ({})],
    ['an operator session alone', () => ({ authorization: `Bearer ${t.owner.accessToken}` })],
    [
      'an operator session in the managed header',
      () => ({ 'service-managed-enrollment': `Bearer ${t.owner.accessToken}` }),
    ],
    [
      'an operator session beside the token',
      () => ({ ...MANAGED_HEADER, authorization: `Bearer ${t.owner.accessToken}` }),
    ],
    ['any other Authorization beside it', () => ({ ...MANAGED_HEADER, authorization: '' })],
    ['the token in Authorization', () => ({ authorization: `Bearer ${MANAGED_TOKEN}` })],
    ['another token', () => ({ 'service-managed-enrollment': `Bearer ${'x'.repeat(41)}` })],
  ])(
    'a reconciliation with %s is rejected before the body is read',
    { tags: ['slow'] },
    async (_, headers) => {
      const before = await state()
      const response = await t.reconcile(t.owner.operatorId, 'no JSON', headers())
      expect(await code(response)).toBe(UNAUTHENTICATED)
      expect(await state()).toBe(before)
    },
  )

  it.each([
    ['zero', { sourceRevision: 0, grants: [] }],
    ['no grants', { sourceRevision: 1 }],
    ['an unknown field', { sourceRevision: 1, grants: [], operatorName: 'x' }],
    ['an installation', { sourceRevision: 1, grants: [{ scope: null, role: 'owner' }] }],
    ['129 grants', { sourceRevision: 1, grants: Array(129).fill({ scope: {}, role: 'owner' }) }],
  ])('a reconciliation with a body of %s is invalid', { tags: ['slow'] }, async (_, body) => {
    expect(await code(await t.reconcile(t.owner.operatorId, body))).toBe(INVALID)
  })
})

it('the managed token is in no table, log line or error', async () => {
  const { operator } = await enrolled()
  await t.reconcile(operator.operatorId, { sourceRevision: 2, grants: [] })
  const wrong = `Bearer ${MANAGED_TOKEN}-wrong`
  const rejected = await t.reconcile(
    operator.operatorId,
    {},
    { 'service-managed-enrollment': wrong },
  )
  const everything = (await state()) + t.log.text() + (await rejected.text())
  expect(everything).not.toContain(MANAGED_TOKEN.slice(0, 20))
})
