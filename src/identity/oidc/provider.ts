/** Settings of the external identity provider, and the limits of trust in it. */
import type { Secret } from '../../value/secret.ts'

export interface OidcProvider {
  /** Namespace of its subjects. */
  readonly providerId: string
  readonly issuer: string
  readonly discoveryUrl: string
  readonly audience: string
  /** Origins that discovery and `jwks_uri` may have. */
  readonly allowedOrigins: readonly string[]
  readonly discriminatorClaim: string
  readonly discriminatorValue: string
  readonly algorithm: OidcAlgorithm
  /** Required value of the header `typ`; null accepts any. */
  readonly requiredType: string | null
  /** base64url of 32 bytes. */
  readonly subjectPepper: Secret
  readonly nativeClient: NativeClient | null
  readonly allowLoopbackHttp: boolean
  /** True if its subjects are jobs of a platform, whose sessions are not refreshed. */
  readonly isWorkload: boolean
  /** Exact values of claims besides the discriminator; empty for a provider of people. */
  readonly requiredClaims: Readonly<Record<string, string>>
}

export type OidcAlgorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA'

/** Public settings of the command line's browser login. */
export interface NativeClient {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly resource: string | null
}

/**
 * Bounds of the verifier (contract/wire.md, Bounds of the OIDC verifier); those of keys and texts
 * are in ../jwt.
 */
export const TOKEN_LIFETIME_SECONDS_MAX = 86_400
export const CLOCK_SKEW_SECONDS = 60
