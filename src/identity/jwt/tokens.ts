/**
 * Checks that apply to every signed token (RFC 7515, RFC 7519, RFC 8725). jose does the
 * cryptography. The text around it is parsed here, strictly, because a lenient parser and a strict
 * one can disagree about one token. Each verifier checks the claims that it needs.
 */
import { compactVerify } from 'jose'
import { decodeBase64Url } from '../../value/base64url.ts'
import type { SignatureAlgorithm } from '../../value/jwt-providers.ts'
import { type JsonObject, parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { readObject, type VerificationKey } from './key-sets.ts'
import {
  CLAIMS_DEPTH_MAX,
  SUBJECT_CHARACTERS_MAX,
  TOKEN_BYTES_MAX,
  type TokenCheck,
  TokenRejection,
} from './rejections.ts'

/** The header is parsed before the signature is verified, so any caller may send one. */
const HEADER_BYTES_MAX = 4 * 1024
const KID_LENGTH_MAX = 512
/** The length of the token bounds its entries: claims that are not read may have thousands. */
const JSON_LIMITS = { depthMax: CLAIMS_DEPTH_MAX, entriesMax: TOKEN_BYTES_MAX }

export interface TokenParts {
  readonly header: JsonObject
  readonly claims: JsonObject
}

export interface KeySource {
  /** Returns null for an unknown key. Throws a Fault where the keys are not known. */
  find(kid: string | null, algorithm: SignatureAlgorithm): Promise<VerificationKey | null>
}

export interface TimeRules {
  /** Tolerance for `iat` and `nbf` from a clock ahead of this one. */
  readonly skewSeconds: number
  /** Time after `exp` for which a token is still accepted. */
  readonly graceSeconds: number
  /** Bound of the time from `iat` to `exp`. */
  readonly lifetimeSecondsMax: number
}

/** Splits a compact JWS into header and claims. Throws TokenRejection. */
export function readToken(token: string): TokenParts {
  if (token.length > TOKEN_BYTES_MAX) throw new TokenRejection('length')
  const parts = token.split('.')
  if (parts.length !== 3) throw new TokenRejection('form')
  const [header, claims] = rejecting('form', () => parts.map(decodeBase64Url))
  if (header!.length > HEADER_BYTES_MAX) throw new TokenRejection('headerLength')
  return {
    header: rejecting('header', () => readObject(parseStrictJson(header!, JSON_LIMITS))),
    claims: rejecting('claims', () => readObject(parseStrictJson(claims!, JSON_LIMITS))),
  }
}

/** Replaces errors of the parser: their paths contain names chosen by the sender. */
function rejecting<T>(check: TokenCheck, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof ValidationError) throw new TokenRejection(check)
    throw error
  }
}

/**
 * Returns the key name and the algorithm of the header. Keys that the sender supplies in `jwk`,
 * `jku` and `x5c` are ignored. Throws TokenRejection.
 */
export function checkHeader(
  header: JsonObject,
  rules: {
    readonly algorithms: readonly SignatureAlgorithm[]
    readonly requiredType: string | null
  },
): { readonly kid: string | null; readonly algorithm: SignatureAlgorithm } {
  const algorithm = rules.algorithms.find((each) => each === header.alg)
  if (algorithm === undefined) throw new TokenRejection('algorithm')
  // No extension is supported, and RFC 7515, 4.1.11 rejects unsupported critical ones.
  if (header.crit !== undefined) throw new TokenRejection('critical')
  if (header.b64 !== undefined) throw new TokenRejection('unencoded')
  if (rules.requiredType !== null && header.typ !== rules.requiredType) {
    throw new TokenRejection('type')
  }
  const { kid } = header
  if (kid === undefined) return { kid: null, algorithm }
  if (typeof kid !== 'string' || kid === '' || kid.length > KID_LENGTH_MAX) {
    throw new TokenRejection('keyName')
  }
  return { kid, algorithm }
}

/** Returns `exp`. `exp` and `iat` are required. Throws TokenRejection. */
export function checkTimes(claims: JsonObject, nowSeconds: number, rules: TimeRules): number {
  const { skewSeconds, graceSeconds, lifetimeSecondsMax } = rules
  const exp = seconds(claims.exp, 'expiryForm')
  const iat = seconds(claims.iat, 'issuedAtForm')
  if (exp + graceSeconds <= nowSeconds) throw new TokenRejection('expired')
  if (iat > nowSeconds + skewSeconds) throw new TokenRejection('issuedInFuture')
  if (exp - iat > lifetimeSecondsMax) throw new TokenRejection('lifetime')
  if (claims.nbf !== undefined && seconds(claims.nbf, 'notBeforeForm') > nowSeconds + skewSeconds) {
    throw new TokenRejection('notBefore')
  }
  return exp
}

function seconds(value: unknown, check: TokenCheck): number {
  if (typeof value !== 'number' || value < 0) throw new TokenRejection(check)
  return value
}

/** Returns a subject claim. Throws TokenRejection. */
export function checkSubject(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new TokenRejection('subject')
  if (charactersOf(value) > SUBJECT_CHARACTERS_MAX) throw new TokenRejection('subjectLength')
  return value
}

/** Counts code points; a character beyond the basic plane is two units of a string. */
function charactersOf(text: string): number {
  return [...text].length
}

/** Throws TokenRejection unless the key made the signature. */
export async function checkSignature(token: string, found: VerificationKey | null): Promise<void> {
  if (found === null) throw new TokenRejection('key')
  try {
    await compactVerify(token, found.key, { algorithms: [found.algorithm] })
  } catch {
    // Messages of the library contain claims and keys chosen by the sender.
    throw new TokenRejection('signature')
  }
}
