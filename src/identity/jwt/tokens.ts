/**
 * What every signed token has to be, whoever trusts it (RFC 7515, RFC 7519, RFC 8725). jose does
 * the cryptography; the text around it is read here, strictly, because a lenient reader and a
 * strict one can disagree about one token. What the claims must say is left to each verifier.
 */
import { compactVerify } from 'jose'
import { decodeBase64Url } from '../../value/base64url.ts'
import type { SignatureAlgorithm } from '../../value/jwt-providers.ts'
import { Malformed } from '../../value/malformed.ts'
import { type JsonObject, parseStrictJson } from '../../value/strict-json.ts'
import { readObject, type VerificationKey } from './key-sets.ts'

export const TOKEN_BYTES_MAX = 16 * 1024
/** Core 1.0, section 2: a `sub` has at most 255 characters. */
export const SUBJECT_BYTES_MAX = 255
const HEADER_BYTES_MAX = 4 * 1024
const KID_LENGTH_MAX = 512
const JSON_LIMITS = { depthMax: 16, entriesMax: 256 }

export interface TokenParts {
  readonly header: JsonObject
  readonly claims: JsonObject
}

export interface KeySource {
  /** null where there is none. Throws a Fault where the keys are not known. */
  find(kid: string | null, algorithm: SignatureAlgorithm): Promise<VerificationKey | null>
}

export interface TimeRules {
  /** For `iat` and `nbf` of a clock ahead of ours. */
  readonly skewSeconds: number
  /** How long a token goes on behind its `exp`. */
  readonly graceSeconds: number
  /** From `iat` to `exp`. */
  readonly lifetimeSecondsMax: number
}

/** Header and claims of a compact JWS. Throws Malformed. */
export function readToken(token: string): TokenParts {
  if (token.length > TOKEN_BYTES_MAX) throw new Malformed('a shorter token')
  const parts = token.split('.')
  if (parts.length !== 3) throw new Malformed('a compact JWS')
  const [header, claims] = parts.map(decodeBase64Url)
  if (header!.length > HEADER_BYTES_MAX) throw new Malformed('a shorter header')
  return {
    header: readObject(parseStrictJson(header!, JSON_LIMITS)),
    claims: readObject(parseStrictJson(claims!, JSON_LIMITS)),
  }
}

/**
 * Whom the header says the signature is from. What the sender says of its own key, `jwk`, `jku`
 * and `x5c`, is not read. Throws Malformed.
 */
export function checkHeader(
  header: JsonObject,
  rules: {
    readonly algorithms: readonly SignatureAlgorithm[]
    readonly requiredType: string | null
  },
): { readonly kid: string | null; readonly algorithm: SignatureAlgorithm } {
  const algorithm = rules.algorithms.find((each) => each === header.alg)
  if (algorithm === undefined) throw new Malformed('a configured algorithm', 'header.alg')
  // No extension is understood here, and RFC 7515, 4.1.11 refuses what is not understood.
  if (header.crit !== undefined) throw new Malformed('absent', 'header.crit')
  if (header.b64 !== undefined) throw new Malformed('absent', 'header.b64')
  if (rules.requiredType !== null && header.typ !== rules.requiredType) {
    throw new Malformed('the configured type', 'header.typ')
  }
  const { kid } = header
  if (kid === undefined) return { kid: null, algorithm }
  if (typeof kid !== 'string' || kid === '' || kid.length > KID_LENGTH_MAX) {
    throw new Malformed('a key name', 'header.kid')
  }
  return { kid, algorithm }
}

/** Answers `exp`. `exp` and `iat` must be there. Throws Malformed. */
export function checkTimes(claims: JsonObject, nowSeconds: number, rules: TimeRules): number {
  const { skewSeconds, graceSeconds, lifetimeSecondsMax } = rules
  const exp = seconds(claims, 'exp')
  const iat = seconds(claims, 'iat')
  if (exp + graceSeconds <= nowSeconds) throw new Malformed('in the future', 'exp')
  if (iat > nowSeconds + skewSeconds) throw new Malformed('in the past', 'iat')
  if (exp - iat > lifetimeSecondsMax) {
    throw new Malformed(`at most ${lifetimeSecondsMax} s`, 'lifetime')
  }
  if (claims.nbf !== undefined && seconds(claims, 'nbf') > nowSeconds + skewSeconds) {
    throw new Malformed('in the past', 'nbf')
  }
  return exp
}

function seconds(claims: JsonObject, name: string): number {
  const value = claims[name]
  if (typeof value !== 'number' || value < 0) throw new Malformed('a time in seconds', name)
  return value
}

/** The subject that a claim names. Throws Malformed. */
export function checkSubject(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new Malformed('a text', 'subject')
  if (new TextEncoder().encode(value).length > SUBJECT_BYTES_MAX) {
    throw new Malformed(`at most ${SUBJECT_BYTES_MAX} bytes`, 'subject')
  }
  return value
}

/** Throws, Malformed or jose's own error, unless the key made the signature. */
export async function checkSignature(token: string, found: VerificationKey | null): Promise<void> {
  if (found === null) throw new Malformed('a published key', 'header.kid')
  await compactVerify(token, found.key, { algorithms: [found.algorithm] })
}

/** What a refusal says in the log: jose's messages name claims and keys of the stranger. */
export function refusalOf(error: unknown): string {
  return error instanceof Malformed ? error.message : 'signature'
}
