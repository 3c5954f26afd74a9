/**
 * Limits failed authentication on the management origin. A credential that this server issued is
 * recognized by its MAC without a look-up, and only its own failures limit it, so that other
 * clients behind the same address cannot lock out a valid session. A credential that this server
 * did not issue is rejected without a look-up, and the failure counts against the peer address.
 */
import { Fault } from '../errors/fault.ts'
import { type ManagementLimits, type RateLimiter, requireNoWait } from './rate-limits.ts'

/**
 * The authentication of one request. Methods throw PLATFORM_RATE_LIMITED, except `failed`, which
 * returns it.
 */
export class AuthenticationAttempt {
  readonly #limits: ManagementLimits | null
  readonly #peer: string
  /** Bucket that was checked before the look-up. It is charged if the credential is invalid. */
  #admitted: { readonly limiter: RateLimiter; readonly key: string } | null = null

  /** Creates the attempt. Null `limits` disable the limits. */
  constructor(limits: ManagementLimits | null, peer: string) {
    this.#limits = limits
    this.#peer = peer
  }

  /** Admits a request to a public route whose credential can only be checked by a look-up. */
  asPeer(): void {
    if (this.#limits === null) return
    requireNoWait(this.#limits.unauthenticated.take(this.#peer))
    this.#admit(this.#limits.failures, this.#peer)
  }

  /** Admits a request to a public route by its credential; null if this server did not issue it. */
  asCaller(credential: string | null): void {
    if (this.#limits === null) return
    requireNoWait(this.#limits.unauthenticated.take(credential ?? this.#peer))
    this.asSession(credential)
  }

  /** Admits the look-up of a recognized credential. Null causes no look-up and fails later. */
  asSession(credential: string | null): void {
    if (this.#limits === null || credential === null) return
    this.#admit(this.#limits.credentialFailures, credential)
  }

  /** Charges the failure to its bucket. Returns the failure to respond with. */
  failed(fault: Fault): Fault {
    if (this.#limits === null || fault.kind !== 'unauthenticated') return fault
    if (this.#admitted !== null) {
      const { limiter, key } = this.#admitted
      limiter.charge(key)
      return fault
    }
    const retryAfterSeconds = this.#limits.failures.take(this.#peer)
    if (retryAfterSeconds === 0) return fault
    return new Fault('PLATFORM_RATE_LIMITED', { retryAfterSeconds, detail: fault.detail })
  }

  #admit(limiter: RateLimiter, key: string): void {
    requireNoWait(limiter.wait(key))
    this.#admitted = { limiter, key }
  }
}
