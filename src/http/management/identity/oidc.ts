/** Login with an external identity. Without a configured provider, these routes are 404. */
import { Fault } from '../../../errors/fault.ts'
import { logInExternally } from '../../../identity/oidc/logins.ts'
import { ENROLLMENT_HEADER, type OidcConfig } from '../../../wire/identity/oidc.ts'
import { oidcOperations } from '../../../wire/operations/identity/oidc.ts'
import { bind, type Route } from '../route.ts'
import type { AuthApp } from './auth.ts'
import { loginBody } from './fields.ts'

/** Bytes of the Authorization header (contract/management.md, Limits). */
const AUTHORIZATION_BYTES_MAX = 16 * 1024
/** A compact JWS. It contains no comma, so two joined headers do not match. */
const EXTERNAL_TOKEN = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/

export const oidcRoutes: readonly Route<AuthApp>[] = bind(oidcOperations, {
  readOidcConfig({ app }) {
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

  logInExternally: {
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
  },
})

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
