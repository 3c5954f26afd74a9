/** Login with an external identity. Without a configured provider, these routes are 404. */
import { Login } from '../../identity/auth.ts'
import { OidcConfig, OidcLoginRequest } from '../../identity/oidc.ts'
import { CHANGE_ERRORS, publicOperation } from '../operation.ts'

/** Bytes of a configuration with 64 scopes and the longest addresses that a server accepts. */
const CONFIG_BYTES_MAX = 64 * 1024

/** Errors of the grants that come with a managed enrollment. */
const MANAGED_ERRORS = [
  'PLATFORM_MANAGED_SOURCE_CONFLICT',
  'PLATFORM_MANAGED_SOURCE_STALE',
] as const

export const readOidcConfig = publicOperation({
  method: 'GET',
  path: '/v1/auth/oidc/config',
  name: 'readOidcConfig',
  summary: 'Returns the settings of the native client at the identity provider.',
  replies: { 200: OidcConfig },
  errors: ['PLATFORM_NOT_FOUND'],
  responseBytesMax: CONFIG_BYTES_MAX,
})

export const logInExternally = publicOperation({
  method: 'POST',
  path: '/v1/auth/oidc',
  name: 'logInExternally',
  summary: 'Logs in with a token of an identity provider, of people or of workloads.',
  body: { schema: OidcLoginRequest },
  replay: 'unsafe',
  replies: { 200: Login, 201: Login },
  errors: ['PLATFORM_CONFLICT', 'PLATFORM_NOT_FOUND', ...MANAGED_ERRORS, ...CHANGE_ERRORS],
  authorities: [['externalIdentity'], ['externalIdentity', 'managedSource']],
  cache: 'no-store, max-age=0',
})

export const oidcOperations = { readOidcConfig, logInExternally }
