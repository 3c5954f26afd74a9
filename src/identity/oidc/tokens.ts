/**
 * Verifies an external token: who signed it, for whom, for how long, and that it is meant for
 * operators (Document 1, Verifier rules; RFC 8725). jose does the cryptography; the text around it
 * is read here, strictly, because a lenient reader and a strict one can disagree about one token.
 */
import { compactVerify } from 'jose'
import { Fault, isFault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import { decodeBase64Url } from '../../value/base64url.ts'
import { Malformed } from '../../value/malformed.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { readObject, type VerificationKey } from './key-sets.ts'
import {
  CLOCK_SKEW_SECONDS,
  type OidcProvider,
  SUBJECT_BYTES_MAX,
  TOKEN_BYTES_MAX,
  TOKEN_LIFETIME_SECONDS_MAX,
} from './provider.ts'

const HEADER_BYTES_MAX = 4 * 1024
const KID_LENGTH_MAX = 512
const JSON_LIMITS = { depthMax: 16, entriesMax: 256 }

type Fields = { readonly [key: string]: Json }

export interface KeySource {
  /** Throws PLATFORM_UNAVAILABLE. */
  find(kid: string | null): Promise<VerificationKey | null>
}

export interface TokenVerifier {
  readonly provider: OidcProvider
  readonly keys: KeySource
  readonly system: Pick<System, 'nowMillis'>
}

/**
 * Answers `sub`. Throws PLATFORM_AUTHENTICATION_FAILED, and PLATFORM_UNAVAILABLE where the
 * provider's keys are not known. Keys are asked for only after everything that needs none fits, so
 * that a stranger's text cannot make us fetch.
 */
export async function verifyToken(verifier: TokenVerifier, token: string): Promise<string> {
  const { provider, keys, system } = verifier
  try {
    if (token.length > TOKEN_BYTES_MAX) throw new Malformed('a shorter token')
    const [header, claims] = readToken(token)
    const kid = checkHeader(header, provider)
    const subject = checkClaims(claims, provider, system.nowMillis() / 1000)
    const found = await keys.find(kid)
    if (found === null) throw new Malformed('a published key', 'header.kid')
    await compactVerify(token, found.key, { algorithms: [provider.algorithm] })
    return subject
  } catch (error) {
    if (isFault(error)) throw error
    // jose's messages name claims and keys of the stranger; the rule alone is enough.
    const detail = error instanceof Malformed ? error.message : 'signature'
    throw new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail: `external token: ${detail}` })
  }
}

/** Header and claims of a compact JWS. */
function readToken(token: string): readonly [header: Fields, claims: Fields] {
  const parts = token.split('.')
  if (parts.length !== 3) throw new Malformed('a compact JWS')
  const [header, claims] = parts.map(decodeBase64Url)
  if (header!.length > HEADER_BYTES_MAX) throw new Malformed('a shorter header')
  return [
    readObject(parseStrictJson(header!, JSON_LIMITS)),
    readObject(parseStrictJson(claims!, JSON_LIMITS)),
  ]
}

/** Answers `kid`. What the sender says of its own key, `jwk`, `jku` and `x5c`, is not read. */
function checkHeader(header: Fields, { algorithm, requiredType }: OidcProvider): string | null {
  if (header.alg !== algorithm) throw new Malformed('the configured algorithm', 'header.alg')
  // No extension is understood here, and RFC 7515, 4.1.11 refuses what is not understood.
  if (header.crit !== undefined) throw new Malformed('absent', 'header.crit')
  if (header.b64 !== undefined) throw new Malformed('absent', 'header.b64')
  if (requiredType !== null && header.typ !== requiredType) {
    throw new Malformed('the configured type', 'header.typ')
  }
  const { kid } = header
  if (kid === undefined) return null
  if (typeof kid !== 'string' || kid === '' || kid.length > KID_LENGTH_MAX) {
    throw new Malformed('a key name', 'header.kid')
  }
  return kid
}

/** Answers `sub`. */
function checkClaims(claims: Fields, provider: OidcProvider, nowSeconds: number): string {
  if (claims.iss !== provider.issuer) throw new Malformed('the configured issuer', 'iss')
  // A token for several audiences can be replayed by any of them.
  const { aud } = claims
  const only = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
  if (only !== provider.audience) throw new Malformed('the configured audience', 'aud')
  checkTimes(claims, nowSeconds)
  if (claims[provider.discriminatorClaim] !== provider.discriminatorValue) {
    throw new Malformed('the configured value', 'the discriminator claim')
  }
  const { sub } = claims
  if (typeof sub !== 'string' || sub === '') throw new Malformed('a text', 'sub')
  if (new TextEncoder().encode(sub).length > SUBJECT_BYTES_MAX) {
    throw new Malformed(`at most ${SUBJECT_BYTES_MAX} bytes`, 'sub')
  }
  return sub
}

/** The skew is for tokens from a clock ahead of ours; a token past its end is past its end. */
function checkTimes(claims: Fields, nowSeconds: number): void {
  const exp = seconds(claims, 'exp')
  const iat = seconds(claims, 'iat')
  if (exp <= nowSeconds) throw new Malformed('in the future', 'exp')
  if (iat > nowSeconds + CLOCK_SKEW_SECONDS) throw new Malformed('in the past', 'iat')
  if (exp - iat > TOKEN_LIFETIME_SECONDS_MAX) throw new Malformed('at most 24 hours', 'lifetime')
  if (claims.nbf !== undefined && seconds(claims, 'nbf') > nowSeconds + CLOCK_SKEW_SECONDS) {
    throw new Malformed('in the past', 'nbf')
  }
}

function seconds(claims: Fields, name: string): number {
  const value = claims[name]
  if (typeof value !== 'number' || value < 0) throw new Malformed('a time in seconds', name)
  return value
}
