/**
 * Whom an Environment trusts to say who its callers are: the JWT providers of the descriptor that
 * SERVICE_PRODUCT_AUTH_CONFIG names (wire decisions, section 4).
 */

/** Asymmetric algorithms only: with a shared secret, a verifier could also sign. */
export const SIGNATURE_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number]

export interface JwtProvider {
  /** For operators: `check` and the log show it. */
  readonly name: string
  /** Kind of caller that its tokens identify. */
  readonly kind: 'user' | 'service'
  /** Equal to `iss`, character for character; no two providers have the same. */
  readonly issuer: string
  /** `aud` is it, or contains it. */
  readonly audience: string
  readonly algorithms: readonly SignatureAlgorithm[]
  /** Where its keys are published, or the text of its key set. */
  readonly keys: { readonly uri: string } | { readonly document: string }
  /** Exact header `typ`; null accepts any. */
  readonly requiredType: string | null
  readonly claims: ClaimMapping
  /** For `exp`, `nbf` and `iat`. */
  readonly clockToleranceSeconds: number
  /** From `iat` to `exp`. */
  readonly maximumLifetimeSeconds: number
}

/** The claim that says it, each as keys from the outermost object inwards; null where none does. */
export interface ClaimMapping {
  readonly subject: ClaimPath
  readonly roles: ClaimPath | null
  readonly email: ClaimPath | null
}

export type ClaimPath = readonly string[]
