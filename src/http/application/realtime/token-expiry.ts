/**
 * The end of the functional token of a connection (contract/wire.md, Rules of Realtime
 * connections).
 */
import type { ExpiringPrincipal } from '../gateway.ts'

/** Milliseconds before the end of the token at which the client is told. */
const EXPIRING_MILLIS = 60_000
/** Milliseconds for a renewal after the end of the token. */
const RENEWAL_MILLIS = 60_000

/** `unrenewed`: the time for a renewal is over. */
export type ExpiryEvent = 'expiring' | 'expired' | 'unrenewed'

export class TokenExpiry {
  #isAnnounced = false
  /** Unix milliseconds at which the end was noticed; null before it. */
  #expiredAt: number | null = null

  get isExpired(): boolean {
    return this.#expiredAt !== null
  }

  /** Starts again for another token. */
  renew(): void {
    this.#isAnnounced = false
    this.#expiredAt = null
  }

  /** Returns an event once each time it happens, and `unrenewed` from then on. */
  check(principal: ExpiringPrincipal | null, nowMillis: number): ExpiryEvent | null {
    if (principal === null) return null
    if (this.#expiredAt !== null) {
      return nowMillis - this.#expiredAt > RENEWAL_MILLIS ? 'unrenewed' : null
    }
    const left = principal.expiresAtMillis - nowMillis
    if (left <= 0) {
      this.#expiredAt = nowMillis
      return 'expired'
    }
    if (left > EXPIRING_MILLIS || this.#isAnnounced) return null
    this.#isAnnounced = true
    return 'expiring'
  }
}
