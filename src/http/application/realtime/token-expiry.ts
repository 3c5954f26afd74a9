/**
 * The times at the end of the functional token of a connection (contract/wire.md, Rules of Realtime
 * connections). realtime-connection.ts ends the subscriptions and the connection.
 */
import type { ExpiringPrincipal } from '../gateway.ts'

/** Milliseconds before the end of the token at which the client is notified. */
const EXPIRING_MILLIS = 60_000
/** Milliseconds for a renewal after the end of the token. */
const RENEWAL_MILLIS = 60_000

/** Events of a token. `unrenewed` means that the time for a renewal is over. */
export type ExpiryEvent = 'expiring' | 'expired' | 'unrenewed'

export class TokenExpiry {
  #isAnnounced = false
  /** Unix milliseconds at which the end of the token was noticed; null before that. */
  #expiredAt: number | null = null

  get isExpired(): boolean {
    return this.#expiredAt !== null
  }

  /** Restarts the times for a new token. */
  renew(): void {
    this.#isAnnounced = false
    this.#expiredAt = null
  }

  /** Returns each event once, except `unrenewed`, which every later call returns too. */
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
