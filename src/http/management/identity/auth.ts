/** Login discovery, code exchange, token rotation, and the identity of the caller. */
import { exchange } from '../../../identity/exchange.ts'
import type { Identity } from '../../../identity/identity.ts'
import { refresh } from '../../../identity/sessions.ts'
import type { AuthConfig, Self } from '../../../wire/identity/auth.ts'
import { authOperations, readSelf } from '../../../wire/operations/identity/auth.ts'
import { bind, type Route } from '../route.ts'
import { grantField, loginBody, operatorField, sessionField } from './fields.ts'

export interface AuthApp {
  readonly identity: Identity
  /** Canonical public Management origin; null if none is configured. */
  readonly managementOrigin: string | null
}

/** The identity of the caller, which needs nothing but its session. */
export const selfRoutes: readonly Route<unknown>[] = bind(
  { readSelf },
  {
    readSelf({ actor }) {
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
  },
)

const { readSelf: _, ...loginOperations } = authOperations

const loginRoutes: readonly Route<AuthApp>[] = bind(loginOperations, {
  readAuthConfig({ app }) {
    const { managementOrigin } = app
    const body: AuthConfig = { version: 1, methods: methods(app.identity), managementOrigin }
    return { status: 200, body }
  },

  async exchangeCode({ app, body, requestId }) {
    const { code, deviceName = null, operatorName = null } = body
    const login = await exchange(app.identity, { code, deviceName, operatorName, requestId })
    return { status: 201, body: loginBody(login) }
  },

  refreshSession: {
    recognize: ({ app, body }) =>
      app.identity.credentials.recognizeRefreshToken(body.refreshToken)?.sessionId ?? null,
    async handle({ app, body, requestId }) {
      const login = await refresh(app.identity, { refreshToken: body.refreshToken, requestId })
      return { status: 200, body: loginBody(login) }
    },
  },
})

export const authRoutes: readonly Route<AuthApp>[] = [
  ...loginRoutes,
  ...(selfRoutes as readonly Route<AuthApp>[]),
]

function methods({ oidc, verifiers }: Identity): AuthConfig['methods'] {
  if (verifiers.length === 0) return ['invitation']
  const client = oidc?.provider.nativeClient ?? null
  const browser = client === null ? [] : (['browser_oidc'] as const)
  return ['invitation', ...browser, 'helper_token']
}
