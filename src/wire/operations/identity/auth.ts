/** Login discovery, code exchange, token rotation, and the identity of the caller. */
import { AuthConfig, ExchangeRequest, Login, RefreshRequest, Self } from '../../identity/auth.ts'
import { CHANGE_ERRORS, operatorOperation, publicOperation } from '../operation.ts'

const SECRETS = 'no-store, max-age=0'

export const readAuthConfig = publicOperation({
  method: 'GET',
  path: '/v1/auth/config',
  name: 'readAuthConfig',
  summary: 'Returns the login methods of this server.',
  replies: { 200: AuthConfig },
})

export const exchangeCode = publicOperation({
  method: 'POST',
  path: '/v1/auth/exchange',
  name: 'exchangeCode',
  summary: 'Logs in with a single-use code.',
  body: { schema: ExchangeRequest },
  replay: 'unsafe',
  replies: { 201: Login },
  errors: ['PLATFORM_AUTHENTICATION_FAILED', ...CHANGE_ERRORS],
  cache: SECRETS,
})

export const refreshSession = publicOperation({
  method: 'POST',
  path: '/v1/auth/refresh',
  name: 'refreshSession',
  summary: 'Exchanges a refresh token for new tokens. Each refresh token works once.',
  body: { schema: RefreshRequest },
  replay: 'unsafe',
  replies: { 200: Login },
  errors: ['PLATFORM_AUTHENTICATION_FAILED', ...CHANGE_ERRORS],
  cache: SECRETS,
})

export const readSelf = operatorOperation({
  method: 'GET',
  path: '/v1/auth/me',
  name: 'readSelf',
  summary: 'Returns the calling operator with its session and grants.',
  replies: { 200: Self },
})

export const authOperations = { readAuthConfig, exchangeCode, refreshSession, readSelf }
