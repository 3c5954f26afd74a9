/**
 * The authorization request of a public native client: code flow with PKCE S256 (RFC 7636), state,
 * loopback redirect (RFC 8252) and resource (RFC 8707). The endpoints come from the server that the
 * operator chose, not from discovery.
 */
import {
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  generateRandomState,
} from 'oauth4webapi'
import { Fault } from '../../errors/fault.ts'
import { digestEquals, sha256 } from '../../system/digests.ts'
import { Secret } from '../../value/secret.ts'
import type { OidcConfig } from '../../wire/oidc.ts'

/** RFC 6749, section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
const LOOPBACK = /^http:\/\/127\.0\.0\.1(?::[0-9]{1,5})?\//

export interface Authorization {
  /** Address to open in the browser. */
  readonly url: string
  readonly redirectUri: string
  readonly verifier: Secret
}

export function newState(): Secret {
  return new Secret(generateRandomState())
}

/** Compares in constant time, so that guesses learn nothing from the time of a rejection. */
export function stateEquals(expected: Secret, given: string): boolean {
  return digestEquals(sha256(expected.reveal()), sha256(given))
}

export async function newAuthorization(
  config: OidcConfig,
  { state, redirectUri }: { readonly state: Secret; readonly redirectUri: string },
): Promise<Authorization> {
  const verifier = generateRandomCodeVerifier()
  const url = new URL(config.authorizationEndpoint)
  const parameters: Readonly<Record<string, string>> = {
    response_type: 'code',
    client_id: config.clientId,
    redirect_uri: redirectUri,
    scope: config.scopes.join(' '),
    state: state.reveal(),
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(config.resource === null ? {} : { resource: config.resource }),
  }
  // The query of the endpoint is kept (RFC 6749, 3.1) but cannot override these parameters.
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return { url: url.href, redirectUri, verifier: new Secret(verifier) }
}

/**
 * Checks the addresses of the configuration. Plain HTTP is accepted for the loopback address only,
 * and only if the server itself is one. Throws CLIENT_RESPONSE_INVALID.
 */
export function requireSafeConfig(config: OidcConfig, authenticationOrigin: string): void {
  const loopback = LOOPBACK.test(`${authenticationOrigin}/`)
  const isEndpoint = (text: string): boolean => isWebUrl(text, loopback)
  const rules: readonly (readonly [boolean, string])[] = [
    [isWebUrl(config.issuer, false) && !config.issuer.includes('?'), 'issuer'],
    [isEndpoint(config.authorizationEndpoint), 'authorization endpoint'],
    [isEndpoint(config.tokenEndpoint), 'token endpoint'],
    [config.resource === null || isEndpoint(config.resource), 'resource'],
    [config.clientId !== '', 'client ID'],
    [config.scopes.length > 0 && config.scopes.every((scope) => SCOPE.test(scope)), 'scopes'],
  ]
  const broken = rules.find(([holds]) => !holds)
  if (broken === undefined) return
  throw new Fault('CLIENT_RESPONSE_INVALID', {
    detail: `The ${broken[1]} of the browser login cannot be used.`,
  })
}

function isWebUrl(text: string, loopback: boolean): boolean {
  if (!URL.canParse(text) || text.includes('#')) return false
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (loopback && LOOPBACK.test(url.href))
}
