import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type ExternalLogins,
  externalLogins,
  MANAGED_HEADER,
  MANAGED_TOKEN,
  PROJECT_SCOPE,
} from '../../../../testing/providers/external-logins.ts'
import { PROVIDER } from '../../../../testing/providers/identity-providers.ts'

const ENVIRONMENT = 'env_00000000000000000000000001'
const DEVELOPER = { scope: PROJECT_SCOPE, role: 'developer' }
const UNAUTHENTICATED = '401 PLATFORM_AUTHENTICATION_FAILED'
const INVALID = '400 PLATFORM_REQUEST_INVALID'
let t: ExternalLogins

// No test changes the database, so all share one.
beforeAll(async () => {
  t = await externalLogins()
})

afterAll(() => t.dispose())

async function code(response: Response): Promise<string> {
  const body = (await response.json()) as { error?: { code: string } }
  return `${response.status} ${body.error?.code ?? 'ok'}`
}

const enrollment = (given: object = {}) => ({
  managedEnrollment: { operatorName: 'Managed', sourceRevision: 1, grants: [DEVELOPER], ...given },
})
const enroll = (given: object = {}, headers: Record<string, string> = MANAGED_HEADER) =>
  t.logIn(enrollment(given), { headers })

describe('rejected managed enrollments', () => {
  const cases: readonly (readonly [string, () => Promise<Response>, string])[] = [
    ['enrollment without the header', () => enroll({}, {}), UNAUTHENTICATED],
    [
      'enrollment with another token',
      () =>
        enroll({}, { ...MANAGED_HEADER, 'service-managed-enrollment': `Bearer ${'x'.repeat(40)}` }),
      UNAUTHENTICATED,
    ],
    [
      'a token that begins like the right one',
      () => enroll({}, { 'service-managed-enrollment': `Bearer ${MANAGED_TOKEN.slice(0, -1)}` }),
      UNAUTHENTICATED,
    ],
    [
      'a token that goes on behind the right one',
      () => enroll({}, { 'service-managed-enrollment': `Bearer ${MANAGED_TOKEN}x` }),
      UNAUTHENTICATED,
    ],
    [
      'the token twice',
      () =>
        enroll(
          {},
          { 'service-managed-enrollment': `Bearer ${MANAGED_TOKEN}, Bearer ${MANAGED_TOKEN}` },
        ),
      UNAUTHENTICATED,
    ],
    [
      'the token without a scheme',
      () => enroll({}, { 'service-managed-enrollment': MANAGED_TOKEN }),
      UNAUTHENTICATED,
    ],
    [
      'a wrong header on a plain login',
      () => t.logIn({}, { headers: { 'service-managed-enrollment': 'Bearer x' } }),
      UNAUTHENTICATED,
    ],
    [
      'the header without enrollment for a subject that is not linked',
      () => t.logIn({}, { headers: MANAGED_HEADER }),
      UNAUTHENTICATED,
    ],
    [
      'invitation and enrollment together',
      async () => t.logIn({ ...enrollment(), code: await t.invite() }, { headers: MANAGED_HEADER }),
      INVALID,
    ],
    [
      'invitation and header together',
      async () => t.logIn({ code: await t.invite() }, { headers: MANAGED_HEADER }),
      INVALID,
    ],
    [
      'invitation and enrollment together without the header',
      async () => t.logIn({ ...enrollment(), code: await t.invite() }),
      UNAUTHENTICATED,
    ],
    [
      'enrollment with a bad external token',
      async () =>
        t.logIn(enrollment(), {
          headers: MANAGED_HEADER,
          token: await t.token({ exp: 1 }),
        }),
      UNAUTHENTICATED,
    ],
    [
      'enrollment with a session of this server in place of the external token',
      () => t.logIn(enrollment(), { headers: MANAGED_HEADER, token: t.owner.accessToken }),
      UNAUTHENTICATED,
    ],
    ['no name', () => enroll({ operatorName: undefined }), INVALID],
    ['no revision', () => enroll({ sourceRevision: undefined }), INVALID],
    ['no grants', () => enroll({ grants: undefined }), INVALID],
    ...(
      [
        0,
        '0',
        -1,
        1.5,
        '01',
        '',
        'x',
        '1e3',
        ' 1',
        '18446744073709551616',
        true,
        null,
        [1],
      ] as unknown[]
    ).map(
      (sourceRevision) =>
        [
          `revision ${JSON.stringify(sourceRevision)}`,
          () => enroll({ sourceRevision }),
          INVALID,
        ] as const,
    ),
    [
      'a JSON number over 2^53',
      () =>
        t.logIn(
          JSON.stringify(enrollment()).replace(
            '"sourceRevision":1',
            '"sourceRevision":9007199254740993',
          ),
          { headers: MANAGED_HEADER },
        ),
      INVALID,
    ],
    [
      'a grant at the installation',
      () =>
        enroll({
          grants: [
            {
              scope: { kind: 'installation', projectId: null, environmentId: null },
              role: 'observer',
            },
          ],
        }),
      INVALID,
    ],
    [
      'a grant of a mixed scope',
      () =>
        enroll({
          grants: [{ scope: { ...PROJECT_SCOPE, environmentId: ENVIRONMENT }, role: 'owner' }],
        }),
      INVALID,
    ],
    [
      'a grant of an unknown role',
      () => enroll({ grants: [{ ...DEVELOPER, role: 'root' }] }),
      INVALID,
    ],
    [
      'a grant with capabilities',
      () => enroll({ grants: [{ ...DEVELOPER, capabilities: ['logs:read'] }] }),
      INVALID,
    ],
  ]

  it.each(cases)('a login is rejected and changes nothing: %s', async (_, send, expected) => {
    const invitations = async () =>
      t.sql(`select state from service_operator_invitations where state = 'consumed'`)
    const operators = await t.sql('select 1 from service_operators')
    const consumed = await invitations()
    expect(await code(await send())).toBe(expected)
    expect(await t.sql('select 1 from service_operators')).toEqual(operators)
    expect(await t.sql('select 1 from service_operator_identities')).toEqual([])
    expect(await t.sql('select 1 from service_operator_managed_revisions')).toEqual([])
    expect(await invitations()).toEqual(consumed)
  })

  it('all requests without a configured managed source', async () => {
    const identity = t.another({
      external: { oidc: PROVIDER, providerNetwork: t.idp.network },
    })
    const headers = MANAGED_HEADER
    expect(await code(await t.logIn(enrollment(), { headers, identity }))).toBe(UNAUTHENTICATED)
    expect(await code(await t.logIn({}, { headers, identity }))).toBe(UNAUTHENTICATED)
    const path = `/v1/auth/managed/operators/${t.owner.operatorId}/grants`
    const put = await t.request('PUT', path, { body: 'no JSON', headers, identity })
    expect(await code(put)).toBe('404 PLATFORM_NOT_FOUND')
  })
})
