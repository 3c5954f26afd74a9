/** Who calls a Function, beside which application: what a functional token says (Document 2). */

/** What a Function's `auth` asks of its caller. */
export const AUTH_MODES = ['none', 'optional', 'guest', 'user', 'service'] as const
export type AuthMode = (typeof AUTH_MODES)[number]

export type FunctionalIdentity = GuestIdentity | ProvidedIdentity

/** Somebody whom a Function of this Environment gave a name: nobody knows who it is. */
export interface GuestIdentity {
  readonly kind: 'guest'
  /** `gst_` and a ULID. */
  readonly subject: string
  /** The Environment's ID. */
  readonly issuer: string
}

/** Whom a JWT provider vouches for. */
export interface ProvidedIdentity {
  readonly kind: 'user' | 'service'
  readonly subject: string
  readonly issuer: string
  /** Empty where the provider's mapping names no claim. */
  readonly roles: readonly string[]
  readonly email?: string
}

/** The same text for the same caller, whatever else the token says; never for a log. */
export function principalOf({ kind, issuer, subject }: FunctionalIdentity): string {
  return JSON.stringify([kind, issuer, subject])
}

/** A caller who was identified, in the forms that calls need. */
export interface Principal {
  readonly kind: FunctionalIdentity['kind']
  /** principalOf the identity: the same for every token of one caller. */
  readonly key: string
  /** JSON text of the FunctionalIdentity. */
  readonly identityText: string
}

/**
 * Whom a Function of this mode sees: what is presented to `none` is discarded, and a mode that
 * names a kind takes that kind alone. `missing` and `denied` are why it cannot be called.
 */
export function admit(mode: AuthMode, caller: Principal | null): Principal | null | Refused {
  if (mode === 'none') return null
  if (mode === 'optional') return caller
  if (caller === null) return 'missing'
  return caller.kind === mode ? caller : 'denied'
}

export type Refused = 'missing' | 'denied'

/** @limit Identity and keys: lifetime of a guest */
export const GUEST_SECONDS_MAX = 86_400
