/** Login with an external identity. Without a configured provider, these routes are 404. */
import { Fault } from '../../../errors/fault.ts'
import { logInExternally } from '../../../identity/oidc/logins.ts'
import { Login } from '../../../wire/identity/auth.ts'
import { ENROLLMENT_HEADER, OidcConfig, OidcLoginRequest } from '../../../wire/identity/oidc.ts'
import { CHANGE_ERRORS, publicRoute, type Route } from '../route.ts'
import type { AuthApp } from './auth.ts'
import { loginBody } from './fields.ts'

/** Errors of the grants that come with a managed enrollment. */
const MANAGED_ERRORS = [
  'PLATFORM_MANAGED_SOURCE_CONFLICT',
  'PLATFORM_MANAGED_SOURCE_STALE',
] as const
const AUTHORIZATION_BYTES_MAX = 16 * 1024
/** A compact JWS. It contains no comma, so two joined headers do not match. */
const EXTERNAL_TOKEN = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/

export const oidcRoutes: readonly Route<AuthApp>[] = [
  publicRoute({
    method: 'GET',
    path: '/v1/auth/oidc/config',
    name: 'readOidcConfig',
    summary: 'Returns the settings of the native client at the identity provider.',
    replies: { 200: OidcConfig },
    errors: ['PLATFORM_NOT_FOUND'],
    handle({ app }) {
      const provider = app.identity.oidc?.provider
      const client = provider?.nativeClient
      if (provider === undefined || client == null) throw new Fault('PLATFORM_NOT_FOUND')
      const { authorizationEndpoint, tokenEndpoint, clientId, resource } = client
      const body: OidcConfig = {
        version: 1,
        issuer: provider.issuer,
        authorizationEndpoint,
        tokenEndpoint,
        clientId,
        scopes: [...client.scopes],
        resource,
      }
      return { status: 200, body }
    },
  }),

  publicRoute({
    method: 'POST',
    path: '/v1/auth/oidc',
    name: 'logInExternally',
    summary: 'Logs in with a token of an identity provider, of people or of workloads.',
    body: { schema: OidcLoginRequest },
    replies: { 200: Login, 201: Login },
    errors: ['PLATFORM_CONFLICT', 'PLATFORM_NOT_FOUND', ...MANAGED_ERRORS, ...CHANGE_ERRORS],
    authorities: [['externalIdentity'], ['externalIdentity', 'managedSource']],
    cache: 'no-store, max-age=0',
    admit({ app, request }) {
      if (app.identity.verifiers.length === 0) throw new Fault('PLATFORM_NOT_FOUND')
      externalToken(request)
    },
    async handle({ app, body, request, requestId }) {
      const { code = null, deviceName = null, managedEnrollment } = body
      const { login, linked } = await logInExternally(app.identity, {
        token: externalToken(request),
        code,
        deviceName,
        managedHeader: request.headers.get(ENROLLMENT_HEADER),
        managedEnrollment:
          managedEnrollment === undefined
            ? null
            : { ...managedEnrollment, sourceRevision: BigInt(managedEnrollment.sourceRevision) },
        requestId,
      })
      return { status: linked ? 201 : 200, body: loginBody(login) }
    },
  }),
]

function externalToken(request: Request): string {
  const header = request.headers.get('authorization') ?? ''
  const token = header.length > AUTHORIZATION_BYTES_MAX ? null : EXTERNAL_TOKEN.exec(header)
  if (token === null) {
    throw new Fault('PLATFORM_AUTHENTICATION_FAILED', {
      detail: 'no compact JWS in the authorization header',
    })
  }
  return token[1]!
}
