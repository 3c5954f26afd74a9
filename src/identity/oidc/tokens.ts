/**
 * Verifies an external token: signature, issuer, audience, validity period, and the claim that
 * marks tokens for operators (contract/management.md, Verification of OIDC tokens).
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

export interface VerifiedToken {
  /** `sub`. */
  readonly subject: string
  /** `exp`, rounded up to seconds. */
  readonly expiresAtMicros: bigint
}

/**
 * Returns the verifier of the provider whose issuer the token names, before anything in it is
 * verified. Throws PLATFORM_AUTHENTICATION_FAILED where no provider has this issuer.
 */
export function chooseVerifier(verifiers: readonly TokenVerifier[], token: string): TokenVerifier {
  try {
    const { iss } = readToken(token).claims
    const verifier = verifiers.find(({ provider }) => provider.issuer === iss)
    if (verifier === undefined) throw new TokenRejection('issuer')
    return verifier
  } catch (error) {
    throw toFault(error)
  }
}

/**
 * Verifies the signature and the claims. Throws PLATFORM_AUTHENTICATION_FAILED, and
 * PLATFORM_UNAVAILABLE where the provider's keys are not known. Keys are requested only after
 * all checks without a key, so that an arbitrary text cannot make the server fetch them.
 */
export async function verifyToken(verifier: TokenVerifier, token: string): Promise<VerifiedToken> {
  const { provider, keys, system } = verifier
  try {
    const { header, claims } = readToken(token)
    const { requiredType } = provider
    const signer = checkHeader(header, { algorithms: [provider.algorithm], requiredType })
    const verified = checkClaims(claims, provider, system.nowMillis() / 1000)
    await checkSignature(token, await keys.find(signer.kid, signer.algorithm))
    return verified
  } catch (error) {
    throw toFault(error)
  }
}

function toFault(error: unknown): unknown {
  if (!(error instanceof TokenRejection)) return error
  const detail = `external token: ${error.message}`
  return new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail })
}

function checkClaims(
  claims: JsonObject,
  provider: OidcProvider,
  nowSeconds: number,
): VerifiedToken {
  if (claims.iss !== provider.issuer) throw new TokenRejection('issuer')
  // Any of several audiences could replay the token.
  const { aud } = claims
  const only = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
  if (only !== provider.audience) throw new TokenRejection('audience')
  const exp = checkTimes(claims, nowSeconds, TIME_RULES)
  if (claims[provider.discriminatorClaim] !== provider.discriminatorValue) {
    throw new TokenRejection('discriminator')
  }
  for (const [name, value] of Object.entries(provider.requiredClaims)) {
    if (claims[name] !== value) throw new TokenRejection('requiredClaim')
  }
  const expiresAtMicros = BigInt(Math.ceil(exp)) * 1_000_000n
  return { subject: checkSubject(claims.sub), expiresAtMicros }
}
