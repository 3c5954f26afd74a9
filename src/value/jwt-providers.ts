/**
 * The JWT providers that an Environment trusts to identify its callers, from the descriptor that
 * SERVICE_PRODUCT_AUTH_CONFIG names (contract/wire.md, Product auth descriptor).
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
  /** Name for operators, shown by `check` and in the log. */
  readonly name: string
  /** Kind of caller that its tokens identify. */
  readonly kind: 'user' | 'service'
  /** Exact value of `iss`, unique among the providers. */
  readonly issuer: string
  /** Value that `aud` equals or contains. */
  readonly audience: string
  readonly algorithms: readonly SignatureAlgorithm[]
  /** URL of the key set, or its text. */
  readonly keys: { readonly uri: string } | { readonly document: string }
  /** Exact header `typ`; null accepts any. */
  readonly requiredType: string | null
  readonly claims: ClaimMapping
  /** Tolerance for `exp`, `nbf` and `iat`. */
  readonly clockToleranceSeconds: number
  /** Longest time from `iat` to `exp`. */
  readonly maximumLifetimeSeconds: number
}

/** Paths of claims, as keys from the outermost object inwards; null if none is configured. */
export interface ClaimMapping {
  readonly subject: ClaimPath
  readonly roles: ClaimPath | null
  readonly email: ClaimPath | null
}

export type ClaimPath = readonly string[]
