/** The management origin over a real database, with issuers of workload tokens. */
import { expect } from 'vitest'
import { Login } from '../../src/wire/identity/auth.ts'
import { read } from '../../src/wire/reading/read.ts'
import { type ExternalLogins, externalLogins } from './external-logins.ts'
import { PROVIDER } from './identity-providers.ts'
import { type Platform, SHAPES, type WorkloadIssuers, workloadIssuers } from './workload-issuers.ts'

export const UNAUTHENTICATED = '401 PLATFORM_AUTHENTICATION_FAILED'
/** The workload that tests invite unless they say otherwise. */
export const GITHUB = { providerId: 'github', subject: SHAPES.github.claims.sub }
export const WORKLOAD_INVITATION = {
  operatorName: 'deployer',
  role: 'developer',
  scope: { kind: 'installation', projectId: null, environmentId: null },
}

export interface WorkloadLogins {
  readonly t: ExternalLogins
  readonly issuers: WorkloadIssuers
  /** A token as the platform issues it now, with other claims and header parameters. */
  token(platform: Platform, claims?: object, header?: object): Promise<string>
  /** POST /v1/auth/oidc with a new token of the platform. */
  logIn(platform: Platform, claims?: object): Promise<Response>
  /** POST /v1/access/invitations as the owner. */
  issue(workload: object | undefined, change?: object, key?: string): Promise<Response>
  /** Issues an invitation and returns its ID. */
  invite(workload?: object, change?: object): Promise<string>
  /** Headers of the owner's requests. */
  asOwner(key?: string): Record<string, string>
  /** Every row that a login could add or change. */
  stored(): Promise<unknown>
  dispose(): Promise<void>
}

export async function workloadLogins(): Promise<WorkloadLogins> {
  const issuers = await workloadIssuers()
  const workloads = issuers.providers
  const t = await externalLogins({ oidc: PROVIDER, workloads, network: 'real' })
  const token: WorkloadLogins['token'] = (platform, claims = {}, header = {}) =>
    issuers.token(platform, t.system.nowMillis(), { ...claims }, { ...header })
  const asOwner: WorkloadLogins['asOwner'] = (key) => ({
    authorization: `Bearer ${t.owner.accessToken}`,
    ...(key !== undefined && { 'idempotency-key': key }),
  })
  const issue: WorkloadLogins['issue'] = (workload, change = {}, key) =>
    t.request('POST', '/v1/access/invitations', {
      body: { ...WORKLOAD_INVITATION, workload, ...change },
      headers: asOwner(key),
    })
  return {
    t,
    issuers,
    token,
    logIn: async (platform, claims = {}) => t.logIn({}, { token: await token(platform, claims) }),
    issue,
    invite: async (workload = GITHUB, change = {}) => {
      const response = await issue(workload, change)
      expect(response.status).toBe(201)
      return ((await response.json()) as { invitationId: string }).invitationId
    },
    asOwner,
    stored: () => storedRows(t),
    dispose: async () => {
      await t.dispose()
      await issuers.close()
    },
  }
}

async function storedRows(t: ExternalLogins): Promise<unknown> {
  const names = ['operators', 'operator_grants', 'operator_identities', 'operator_sessions']
  const tables = [...names, 'operator_invitations', 'operator_token_uses']
  const rows = []
  for (const table of tables) rows.push(await t.sql(`select * from service_${table} order by 1`))
  return rows
}

export async function readLogin(response: Response, status: number): Promise<Login> {
  expect(response.status).toBe(status)
  return read(Login, await response.json(), 'PLATFORM_INTERNAL')
}

/** Status and code of a rejected request. */
export async function readRejection(response: Response): Promise<string> {
  const body = (await response.json()) as { error: { code: string } }
  return `${response.status} ${body.error.code}`
}
