/**
 * Token buckets in this process (wire decisions, section 1, Rate limits): per credential wherever a
 * caller has one, otherwise per peer address. The listener says which peer it is.
 */
import { Fault } from '../errors/fault.ts'
import type { System } from '../system/system.ts'

export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

interface Bucket {
  /** Tokens at `atMillis`; down to -burst where use was charged after the fact. */
  tokens: number
  atMillis: number
  /** When it was last put behind all others that are forgotten before it. */
  movedAtMillis: number
}

/** Of a bucket that is used all the time: moving it costs as much as finding it. */
const MOVED_MILLIS = 1_000

/** Keys of one limiter: some 100 bytes each. */
const KEYS_MAX = 10_000

/**
 * Buckets by key. A key that was not seen for longest, to the second, is forgotten first, and is
 * full again.
 */
export class RateLimiter {
  readonly #clock: Pick<System, 'monotonicMillis'>
  readonly #limit: RateLimit
  readonly #keysMax: number
  /** In order of last use. */
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Pick<System, 'monotonicMillis'>, limit: RateLimit, keysMax = KEYS_MAX) {
    this.#clock = clock
    this.#limit = limit
    this.#keysMax = keysMax
  }

  /** Takes a token. Answers 0, or the seconds until there is one. `limit` is the key's own. */
  take(key: string, limit: RateLimit = this.#limit): number {
    const bucket = this.#bucket(key, limit)
    if (bucket.tokens < 1) return secondsUntilOne(bucket, limit)
    bucket.tokens -= 1
    return 0
  }

  /** What `take` would answer; takes nothing. */
  wait(key: string, limit: RateLimit = this.#limit): number {
    const bucket = this.#bucket(key, limit)
    return bucket.tokens < 1 ? secondsUntilOne(bucket, limit) : 0
  }

  /**
   * Takes tokens for something that has happened. Many at once can pass `wait` together, so what
   * they took beyond the last token delays the following ones, for twice the burst at most.
   */
  charge(key: string, limit: RateLimit = this.#limit, tokens = 1): void {
    const bucket = this.#bucket(key, limit)
    bucket.tokens = Math.max(bucket.tokens - tokens, -limit.burst)
  }

  /** Keys in memory. */
  get size(): number {
    return this.#buckets.size
  }

  #bucket(key: string, { perSecond, burst }: RateLimit): Bucket {
    const atMillis = this.#clock.monotonicMillis()
    const known = this.#buckets.get(key)
    const bucket = known ?? { tokens: burst, atMillis, movedAtMillis: atMillis }
    const gained = ((atMillis - bucket.atMillis) * perSecond) / 1000
    bucket.tokens = Math.min(bucket.tokens + gained, burst)
    bucket.atMillis = atMillis
    if (known === undefined) {
      this.#buckets.set(key, bucket)
      if (this.#buckets.size > this.#keysMax) this.#forgetOldest()
    } else if (atMillis - bucket.movedAtMillis > MOVED_MILLIS) {
      bucket.movedAtMillis = atMillis
      this.#buckets.delete(key)
      this.#buckets.set(key, bucket)
    }
    return bucket
  }

  #forgetOldest(): void {
    for (const key of this.#buckets.keys()) {
      this.#buckets.delete(key)
      return
    }
  }
}

function secondsUntilOne({ tokens }: Bucket, { perSecond }: RateLimit): number {
  return Math.max(1, Math.ceil((1 - tokens) / perSecond))
}

/** The limits of the management origin. */
export interface ManagementLimits {
  /** Requests to public routes, per peer address or per recognized credential. */
  readonly unauthenticated: RateLimiter
  /** Failed authentication with what this server did not issue, per peer address. */
  readonly failures: RateLimiter
  /** Failed authentication with a credential that this server issued, per credential. */
  readonly credentialFailures: RateLimiter
}

/** @limit Requests: requests without a session to the management address, from one address */
export const UNAUTHENTICATED_LIMIT: RateLimit = { perSecond: 20, burst: 60 }
/** @limit Requests: failed authentication from one address, or with one credential of a session */
export const FAILURE_LIMIT: RateLimit = { perSecond: 5, burst: 20 }

export function managementLimits(clock: Pick<System, 'monotonicMillis'>): ManagementLimits {
  return {
    unauthenticated: new RateLimiter(clock, UNAUTHENTICATED_LIMIT),
    failures: new RateLimiter(clock, FAILURE_LIMIT),
    credentialFailures: new RateLimiter(clock, FAILURE_LIMIT),
  }
}

/** The limits of the application origin. */
export interface ApplicationLimits {
  /** Calls, per credential. */
  readonly credentials: RateLimiter
  /** Failed authentication, per peer address. */
  readonly failures: RateLimiter
  /** Functional tokens of a peer that failed too often, verified all the same, per peer address. */
  readonly verifications: RateLimiter
}

/** @limit Requests: functional tokens that are verified for an address that failed too often */
export const VERIFICATION_LIMIT: RateLimit = { perSecond: 200, burst: 400 }
/** @limit Requests: calls with one Application Key, unless it has a limit of its own */
export const CREDENTIAL_LIMIT: RateLimit = { perSecond: 2_000, burst: 4_000 }

export function applicationLimits(clock: Pick<System, 'monotonicMillis'>): ApplicationLimits {
  return {
    credentials: new RateLimiter(clock, CREDENTIAL_LIMIT),
    failures: new RateLimiter(clock, FAILURE_LIMIT),
    verifications: new RateLimiter(clock, VERIFICATION_LIMIT),
  }
}

/** Of a credential with a limit of its own, in requests a second: the default's shape. */
export function credentialLimit(perSecond: number | null): RateLimit {
  return perSecond === null ? CREDENTIAL_LIMIT : { perSecond, burst: 2 * perSecond }
}

/** Throws the origin's code unless `seconds` is 0. `limit` names the limit in the log. */
export function requireNoWait(
  seconds: number,
  code: 'PLATFORM_RATE_LIMITED' | 'RATE_LIMITED' = 'PLATFORM_RATE_LIMITED',
  limit?: string,
): void {
  if (seconds > 0) throw new Fault(code, { retryAfterSeconds: seconds, detail: limit })
}

/** What the listener tells of each request beside itself. */
export interface PeerBinding {
  /** Address of the peer, as far as the listener trusts it. */
  readonly peer?: string
}

/** One name for all that the listener could not name: they share their limit. */
export function peerOf(binding: PeerBinding | undefined): string {
  return binding?.peer ?? 'unknown'
}
