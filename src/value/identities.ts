/**
 * Functional identities: the callers of Functions, as functional tokens name them
 * (contract/application.md, Functional identities).
 */

/** Values of a Function's `auth`: the identity that a caller must present. */
export const AUTH_MODES = ['none', 'optional', 'guest', 'user', 'service'] as const
export type AuthMode = (typeof AUTH_MODES)[number]

export type FunctionalIdentity = GuestIdentity | ProvidedIdentity

/** Anonymous caller, named by a Function of this Environment; no provider verified a person. */
export interface GuestIdentity {
  readonly kind: 'guest'
  /** `gst_` and a ULID. */
  readonly subject: string
  /** The Environment's ID. */
  readonly issuer: string
}

/** A user or service whose token a JWT provider signed. */
export interface ProvidedIdentity {
  readonly kind: 'user' | 'service'
  readonly subject: string
  readonly issuer: string
  /** Empty where the provider's mapping names no claim for roles. */
  readonly roles: readonly string[]
  readonly email?: string
}

/** Returns the stable key of a caller. Other claims of its token do not change it. Never log it. */
export function principalOf({ kind, issuer, subject }: FunctionalIdentity): string {
  return JSON.stringify([kind, issuer, subject])
}

/** An identified caller, in the forms that calls use. */
export interface Principal {
  readonly kind: FunctionalIdentity['kind']
  /** Result of principalOf: equal for all tokens of one caller. */
  readonly key: string
  /** JSON text of the FunctionalIdentity. */
  readonly identityText: string
}

/**
 * Returns the identity that a Function of this mode sees. `none` discards it, and a mode that names
 * a kind accepts only that kind. `missing` and `denied` are reasons to reject the call.
 */
export function admit(mode: AuthMode, caller: Principal | null): Principal | null | Rejected {
  if (mode === 'none') return null
  if (mode === 'optional') return caller
  if (caller === null) return 'missing'
  return caller.kind === mode ? caller : 'denied'
}

export type Rejected = 'missing' | 'denied'

/** @limit Identity and keys: lifetime of a guest */
export const GUEST_SECONDS_MAX = 86_400
