/**
 * Token buckets in this process (contract/wire.md, Rate limits): per credential where the caller
 * has one, otherwise per peer address, which the listener determines.
 */
import { Fault } from '../errors/fault.ts'
import type { System } from '../system/system.ts'

export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

interface Bucket {
  /** Tokens at `atMillis`; down to -burst where requests were charged afterwards. */
  tokens: number
  atMillis: number
  /** Time of the last move to the end of the eviction order. */
  movedAtMillis: number
}

/**
 * Least time between two moves of a bucket to the end of the eviction order. A move costs as much
 * as a look-up, so a move at each request would double the cost of the limit.
 */
const MOVED_MILLIS = 1_000

/** Bound on the keys of one limiter, since a peer can use many. A key takes about 100 bytes. */
const KEYS_MAX = 10_000

/**
 * Buckets by key. The least recently used key, to the second, is evicted first; its next bucket is
 * full.
 */
export class RateLimiter {
  readonly #clock: Pick<System, 'monotonicMillis'>
  readonly #limit: RateLimit
  readonly #keysMax: number
  /** Buckets in the order of their last use. */
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Pick<System, 'monotonicMillis'>, limit: RateLimit, keysMax = KEYS_MAX) {
    this.#clock = clock
    this.#limit = limit
    this.#keysMax = keysMax
  }

  /** Takes a token. Returns 0, or the seconds to wait for one. `limit` overrides the default. */
  take(key: string, limit: RateLimit = this.#limit): number {
    const bucket = this.#bucket(key, limit)
    if (bucket.tokens < 1) return secondsUntilOne(bucket, limit)
    bucket.tokens -= 1
    return 0
  }

  /** Returns the result that `take` would have, without taking a token. */
  wait(key: string, limit: RateLimit = this.#limit): number {
    const bucket = this.#bucket(key, limit)
    return bucket.tokens < 1 ? secondsUntilOne(bucket, limit) : 0
  }

  /**
   * Takes tokens after the fact. Concurrent requests can pass `wait` together, so the tokens that
   * they overdraw delay later requests, by at most twice the burst.
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
      if (this.#buckets.size > this.#keysMax) this.#evictOldest()
    } else if (atMillis - bucket.movedAtMillis > MOVED_MILLIS) {
      bucket.movedAtMillis = atMillis
      this.#buckets.delete(key)
      this.#buckets.set(key, bucket)
    }
    return bucket
  }

  #evictOldest(): void {
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
  /** Failed authentication with a credential that this server did not issue, per peer address. */
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
  /** Verifications of tokens of a peer over its failure limit, per peer address. */
  readonly verifications: RateLimiter
}

/** @limit Requests: functional tokens that are verified for an address over its failure limit */
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

/** Limit of a credential, in requests a second. Its burst is in proportion to the default's. */
export function credentialLimit(perSecond: number | null): RateLimit {
  return perSecond === null ? CREDENTIAL_LIMIT : { perSecond, burst: 2 * perSecond }
}

/** Throws `code` unless `seconds` is 0. `limit` names the limit in the log. */
export function requireNoWait(
  seconds: number,
  code: 'PLATFORM_RATE_LIMITED' | 'RATE_LIMITED' = 'PLATFORM_RATE_LIMITED',
  limit?: string,
): void {
  if (seconds > 0) throw new Fault(code, { retryAfterSeconds: seconds, detail: limit })
}

/** Facts that the listener knows about the connection of a request. */
export interface PeerBinding {
  /** Address of the peer, as far as the listener trusts it. */
  readonly peer?: string
}

/** Returns the peer address. Peers without a known address share one limit. */
export function peerOf(binding: PeerBinding | undefined): string {
  return binding?.peer ?? 'unknown'
}
