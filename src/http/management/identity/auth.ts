/** Login discovery, code exchange, token rotation, and the identity of the caller. */
import { exchange } from '../../../identity/exchange.ts'
import type { Identity } from '../../../identity/identity.ts'
import { refresh } from '../../../identity/sessions.ts'
import { AuthConfig, ExchangeRequest, Login, RefreshRequest, Self } from '../../../wire/auth.ts'
import { CHANGE_ERRORS, operatorRoute, publicRoute, type Route } from '../route.ts'
import { grantField, loginBody, operatorField, sessionField } from './fields.ts'

export interface AuthApp {
  readonly identity: Identity
  /** Canonical public Management origin; null where none is configured. */
  readonly managementOrigin: string | null
}

const SECRETS = 'no-store, max-age=0'

export const authRoutes: readonly Route<AuthApp>[] = [
  publicRoute({
    method: 'GET',
    path: '/v1/auth/config',
    name: 'readAuthConfig',
    summary: 'Returns the login methods of this server.',
    replies: { 200: AuthConfig },
    handle({ app }) {
      const { managementOrigin } = app
      const body: AuthConfig = { version: 1, methods: methods(app.identity), managementOrigin }
      return { status: 200, body }
    },
  }),

  publicRoute({
    method: 'POST',
    path: '/v1/auth/exchange',
    name: 'exchangeCode',
    summary: 'Logs in with a single-use code.',
    body: { schema: ExchangeRequest },
    replies: { 201: Login },
    errors: ['PLATFORM_AUTHENTICATION_FAILED', ...CHANGE_ERRORS],
    cache: SECRETS,
    async handle({ app, body, requestId }) {
      const { code, deviceName = null, operatorName = null } = body
      const login = await exchange(app.identity, { code, deviceName, operatorName, requestId })
      return { status: 201, body: loginBody(login) }
    },
  }),

  publicRoute({
    method: 'POST',
    path: '/v1/auth/refresh',
    name: 'refreshSession',
    summary: 'Exchanges a refresh token for new tokens. Each refresh token works once.',
    body: { schema: RefreshRequest },
    replies: { 200: Login },
    errors: ['PLATFORM_AUTHENTICATION_FAILED', ...CHANGE_ERRORS],
    cache: SECRETS,
    recognize: ({ app, body }) =>
      app.identity.credentials.recognizeRefreshToken(body.refreshToken)?.sessionId ?? null,
    async handle({ app, body, requestId }) {
      const login = await refresh(app.identity, { refreshToken: body.refreshToken, requestId })
      return { status: 200, body: loginBody(login) }
    },
  }),

  operatorRoute({
    method: 'GET',
    path: '/v1/auth/me',
    name: 'readSelf',
    summary: 'Returns the calling operator with its session and grants.',
    replies: { 200: Self },
    handle({ actor }) {
      const { operator, session, grants } = actor
      const body: Self = {
        version: 1,
        operator: operatorField(operator),
        session: sessionField(session, actor.sessionId),
        grants: grants.map(grantField),
        authorizationRevision: String(operator.authorizationRevision),
      }
      return { status: 200, body }
    },
  }),
]

function methods({ oidc, verifiers }: Identity): AuthConfig['methods'] {
  if (verifiers.length === 0) return ['invitation']
  const client = oidc?.provider.nativeClient ?? null
  const browser = client === null ? [] : (['browser_oidc'] as const)
  return ['invitation', ...browser, 'helper_token']
}
