/** The management origin on a real database, with an identity provider and a managed source. */
import { readFileSync } from 'node:fs'
import { type AuthApp, authRoutes } from '../../src/http/management/identity/auth.ts'
import { invitationOperationRoutes } from '../../src/http/management/identity/invitation-operations.ts'
import { invitationRoutes } from '../../src/http/management/identity/invitations.ts'
import { managedGrantRoutes } from '../../src/http/management/identity/managed-grants.ts'
import { oidcRoutes } from '../../src/http/management/identity/oidc.ts'
import { sessionRoutes } from '../../src/http/management/identity/sessions.ts'
import { exchange } from '../../src/identity/exchange.ts'
import type { Identity } from '../../src/identity/identity.ts'
import { issueInvitation } from '../../src/identity/invitations.ts'
import type { OidcProvider } from '../../src/identity/oidc/provider.ts'
import type { Role } from '../../src/value/capabilities.ts'
import type { Id, ProjectId } from '../../src/value/ids.ts'
import { INSTALLATION, type Scope } from '../../src/value/scope.ts'
import { Secret } from '../../src/value/secret.ts'
import { type TestIdentity, testIdentity } from '../identity.ts'
import { testManagement } from '../openapi/checked-origins.ts'
import { PROVIDER, type TestProvider, testProvider } from './identity-providers.ts'

export const MANAGED_TOKEN = 'managed-enrollment-token-of-enough-length'
export const MANAGED_HEADER = { 'service-managed-enrollment': `Bearer ${MANAGED_TOKEN}` }
export const AUTHORITY = 'https://control.example.com'
export const PROJECT = 'prj_00000000000000000000000001' as ProjectId
export const PROJECT_SCOPE: Scope = { kind: 'project', projectId: PROJECT, environmentId: null }

export interface ExternalLogins extends TestIdentity {
  readonly idp: TestProvider
  /** The owner of the installation, who logged in with the first-owner code. */
  readonly owner: { readonly operatorId: Id<'opr'>; readonly accessToken: string }
  token(claims?: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>
  /** Creates an invitation and returns its code. */
  invite(role?: Role, scope?: Scope): Promise<string>
  request(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string>; identity?: Identity },
  ): Promise<Response>
  /** Sends POST /v1/auth/oidc; by default with a valid token. */
  logIn(body?: unknown, options?: LogInOptions): Promise<Response>
  /** Sends PUT of grants; by default with the managed token. */
  reconcile(operatorId: string, body: unknown, headers?: Record<string, string>): Promise<Response>
}

export interface LogInOptions {
  readonly token?: string
  readonly headers?: Record<string, string>
  readonly identity?: Identity
}

export async function externalLogins(
  given: {
    oidc?: OidcProvider | null
    workloads?: readonly OidcProvider[]
    managed?: boolean
    network?: 'real'
  } = {},
): Promise<ExternalLogins> {
  const idp = await testProvider()
  const enrollmentToken = new Secret(MANAGED_TOKEN)
  const fixture = await testIdentity({
    external: {
      oidc: given.oidc === undefined ? PROVIDER : given.oidc,
      workloads: given.workloads ?? [],
      managedSource: given.managed === false ? null : { enrollmentToken, authority: AUTHORITY },
      ...(given.network !== 'real' && { providerNetwork: idp.network }),
    },
  })
  await fixture.identity.startup()
  const code = readFileSync(fixture.codePath, 'utf8').trimEnd()
  const plain = { deviceName: null, operatorName: null, requestId: null }
  const first = await exchange(fixture.identity, { code, ...plain })
  const accessToken = first.accessToken.reveal()
  const request: ExternalLogins['request'] = async (method, path, options = {}) => {
    const { body, headers, identity = fixture.identity } = options
    const content = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await hono(fixture, identity).request(path, {
      method,
      headers: { ...content, ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return response
  }
  const token: ExternalLogins['token'] = (claims, header) =>
    idp.sign(idp.claims(fixture.system.nowMillis(), claims), header)
  return {
    ...fixture,
    idp,
    owner: { operatorId: first.operator.operatorId, accessToken },
    token,
    invite: async (role = 'developer', scope = INSTALLATION) => {
      const actor = await fixture.identity.authenticate(accessToken)
      const input = { operatorName: 'Invited', role, scope, operationId: null, requestId: null }
      return (await issueInvitation(fixture.identity, actor, input)).code!.reveal()
    },
    request,
    logIn: async (body = {}, options = {}) => {
      const { token: presented = await token(), headers = {}, identity } = options
      return request('POST', '/v1/auth/oidc', {
        body,
        headers: { authorization: `Bearer ${presented}`, ...headers },
        ...(identity !== undefined && { identity }),
      })
    },
    reconcile: (operatorId, body, headers = MANAGED_HEADER) =>
      request('PUT', `/v1/auth/managed/operators/${operatorId}/grants`, { body, headers }),
    dispose: async () => {
      await fixture.dispose()
      await idp.close()
    },
  }
}

function hono({ system, log }: TestIdentity, identity: Identity) {
  return testManagement<AuthApp>({
    app: {
      identity,
      sessions: identity,
      environment: null,
      managementOrigin: null,
    },
    system,
    log: log.log,
    routes: [
      ...authRoutes,
      ...oidcRoutes,
      ...managedGrantRoutes,
      ...sessionRoutes,
      ...invitationRoutes,
      ...invitationOperationRoutes,
    ],
  })
}
