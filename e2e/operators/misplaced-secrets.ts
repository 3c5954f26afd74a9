/** Wrong fields, arguments and settings that contain a secret by mistake. */
import { argv } from '../argv.ts'
import type { Call, Environment } from '../harness.ts'

export type MisplacedInRequest = readonly [method: string, path: string, call?: Call]

/** `known` has valid credentials, so that requests pass authentication. */
export function misplacedInRequests(
  secret: string,
  known: { readonly token: string; readonly key: string },
): MisplacedInRequest[] {
  const { token, key } = known
  return [
    ['GET', `/v1/${secret}`],
    ['DELETE', `/v1/auth/sessions/${secret}`, { token }],
    ['GET', `/v1/access/audit?${secret}=${secret}`, { token }],
    ['GET', '/v1/auth/me', { headers: { authorization: `Basic ${secret}` } }],
    ['GET', '/v1/auth/me', { headers: { authorization: `Bearer ${secret} ${secret}` } }],
    ['POST', '/v1/auth/exchange', { body: { code: `${secret}!`, [secret]: secret } }],
    ['POST', '/v1/auth/exchange', { body: `{"code":${secret}` }],
    ['POST', '/v1/auth/refresh', { body: { refreshToken: `${secret}x` } }],
    ['POST', '/v1/query', { headers: { 'x-service-key': `${secret}x` }, body: { [secret]: 1 } }],
    ['POST', '/v1/query', { headers: { 'x-service-key': key }, body: { [secret]: secret } }],
    ['POST', '/v1/query', { headers: { 'content-type': secret }, body: secret }],
    ['POST', '/v1/query', { headers: { origin: `https://${secret}` }, body: secret }],
  ]
}

/** Returns arguments of svc, each of which it must reject. */
export function misplacedInArguments(
  secret: string,
  origin: string,
  remote: readonly string[],
): string[][] {
  return [
    argv`login --url ${origin} ${secret}`,
    argv`login --url ${origin} --code=${secret}`,
    argv`login --url ${origin}/${secret} --code-env CODE`,
    argv`login --url ${origin} --code-env ${secret}`,
    argv`login --url ${origin} --oidc-token-env ${secret}`,
    argv`call channels.list ${remote} --key-env ${secret} --url ${origin}`,
    ['invitations', 'revoke', secret],
    ['sessions', 'revoke', secret],
    argv`credentials list ${remote} --client ${secret}`,
    [secret],
  ]
}

interface Configured {
  readonly good: Environment
  readonly pepper: string
  readonly database: URL
}

/** Returns modes of the server with settings that it must reject, each with a secret in one. */
export function unusableEnvironments(configured: Configured): [string, Environment][] {
  const { good, pepper, database } = configured
  const { SERVICE_IDENTITY_DATABASE_URL_FILE: _, ...noDatabase } = good
  const { SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: __, ...noPepper } = good
  const addresses = ['1', 'x', '99999'].map(
    (port) => `postgres://someone:${database.password}@127.0.0.1:${port}/nothing`,
  )
  const urls = [...addresses, database.href.replace(database.username, 'nobody')]
  return [
    ['check', { ...good, SERVICE_IDENTITY_DATABASE_URL: database.href }],
    ['check', { ...noPepper, SERVICE_PLATFORM_IDENTITY_PEPPER: `${pepper}x` }],
    ['check', { ...good, SERVICE_MANAGEMENT_LISTEN: pepper }],
    ...urls.map((url): [string, Environment] => [
      'migrate',
      { ...noDatabase, SERVICE_IDENTITY_DATABASE_URL: url },
    ]),
  ]
}
