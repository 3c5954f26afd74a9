/**
 * Verifies an external token: signature, issuer, audience, validity period, and the claim that
 * marks tokens for operators (Document 1, Verifier rules).
 */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type { JsonObject } from '../../value/strict-json.ts'
import { TokenRejection } from '../jwt/rejections.ts'
import {
  checkHeader,
  checkSignature,
  checkSubject,
  checkTimes,
  type KeySource,
  readToken,
} from '../jwt/tokens.ts'
import { CLOCK_SKEW_SECONDS, type OidcProvider, TOKEN_LIFETIME_SECONDS_MAX } from './provider.ts'

/** The skew allows for a provider clock ahead of this one. It does not extend the expiry. */
const TIME_RULES = {
  skewSeconds: CLOCK_SKEW_SECONDS,
  graceSeconds: 0,
  lifetimeSecondsMax: TOKEN_LIFETIME_SECONDS_MAX,
}

export interface TokenVerifier {
  readonly provider: OidcProvider
  /** Throws PLATFORM_UNAVAILABLE. */
  readonly keys: KeySource
  readonly system: Pick<System, 'nowMillis'>
}

/**
 * Returns `sub`. Throws PLATFORM_AUTHENTICATION_FAILED, and PLATFORM_UNAVAILABLE where the keys of
 * the provider are not known. Keys are fetched only after all other checks pass, so that forged
 * text rarely causes a fetch.
 */
export async function verifyToken(verifier: TokenVerifier, token: string): Promise<string> {
  const { provider, keys, system } = verifier
  try {
    const { header, claims } = readToken(token)
    const { requiredType } = provider
    const signer = checkHeader(header, { algorithms: [provider.algorithm], requiredType })
    const subject = checkClaims(claims, provider, system.nowMillis() / 1000)
    await checkSignature(token, await keys.find(signer.kid, signer.algorithm))
    return subject
  } catch (error) {
    if (!(error instanceof TokenRejection)) throw error
    const detail = `external token: ${error.message}`
    throw new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail })
  }
}

/** Checks the claims and returns `sub`. */
function checkClaims(claims: JsonObject, provider: OidcProvider, nowSeconds: number): string {
  if (claims.iss !== provider.issuer) throw new TokenRejection('issuer')
  // Any of several audiences could replay the token.
  const { aud } = claims
  const audience = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
  if (audience !== provider.audience) throw new TokenRejection('audience')
  checkTimes(claims, nowSeconds, TIME_RULES)
  if (claims[provider.discriminatorClaim] !== provider.discriminatorValue) {
    throw new TokenRejection('discriminator')
  }
  return checkSubject(claims.sub)
}
