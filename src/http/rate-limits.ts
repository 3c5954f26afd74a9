/**
 * Rate limits by token buckets (contract/wire.md, Rate limits): per credential where the caller
 * has one, otherwise per peer address, which the listener determines.
 */
import { Fault } from '../errors/fault.ts'
import type { System } from '../system/system.ts'
import { MOUNT_RATE_DEFAULT } from '../value/http/mounts.ts'
import {
  OwnBuckets,
  type RateLimit,
  SHARED_BUCKETS_BYTES,
  SharedBuckets,
  type TokenBuckets,
} from './token-buckets.ts'

/** Bound on the keys of one limiter, since a peer can use many. A key takes about 100 bytes. */
const KEYS_MAX = 10_000

/** A limit on requests by key. */
export class RateLimiter {
  readonly #limit: RateLimit
  readonly #buckets: TokenBuckets

  constructor(
    clock: Pick<System, 'monotonicMillis'>,
    limit: RateLimit,
    buckets: TokenBuckets = new OwnBuckets(clock, KEYS_MAX),
  ) {
    this.#limit = limit
    this.#buckets = buckets
  }

  /** Takes a token. Returns 0, or the seconds to wait for one. `limit` overrides the default. */
  take(key: string, limit: RateLimit = this.#limit): number {
    return secondsUntilOne(this.#buckets.take(key, limit, 1, 1), limit)
  }

  /** Returns the result that `take` would have, without taking a token. */
  wait(key: string, limit: RateLimit = this.#limit): number {
    return secondsUntilOne(this.#buckets.take(key, limit, 0, 1), limit)
  }

  /**
   * Takes tokens after the fact. Concurrent requests can pass `wait` together, so the tokens that
   * they overdraw delay later requests, by at most twice the burst.
   */
  charge(key: string, limit: RateLimit = this.#limit, tokens = 1): void {
    this.#buckets.take(key, limit, tokens, Number.NEGATIVE_INFINITY)
  }

  /** Keys in memory. */
  get size(): number {
    return this.#buckets.size
  }
}

function secondsUntilOne(tokens: number, { perSecond }: RateLimit): number {
  return tokens >= 1 ? 0 : Math.max(1, Math.ceil((1 - tokens) / perSecond))
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
  /** Requests of other services, per mount. */
  readonly mounts: RateLimiter
}

/** @limit Requests: functional tokens that are verified for an address over its failure limit */
export const VERIFICATION_LIMIT: RateLimit = { perSecond: 200, burst: 400 }
/** @limit Requests: calls with one Application Key, unless it has a limit of its own */
export const CREDENTIAL_LIMIT: RateLimit = { perSecond: 2_000, burst: 4_000 }

/** The rate of a mount, unless it has one of its own (value/http/mounts.ts). */
export const MOUNT_LIMIT: RateLimit = {
  perSecond: MOUNT_RATE_DEFAULT,
  burst: 2 * MOUNT_RATE_DEFAULT,
}

/** Bytes of the memory in which processes share the limits of the application origin. */
export const SHARED_LIMITS_BYTES = 3 * SHARED_BUCKETS_BYTES

/** `shared` is memory that all processes map; null for the limits of one process. */
export function applicationLimits(
  clock: Pick<System, 'monotonicMillis'>,
  shared: BigInt64Array | null = null,
): ApplicationLimits {
  const limiter = (limit: RateLimit, number: number) =>
    shared === null
      ? new RateLimiter(clock, limit)
      : new RateLimiter(clock, limit, new SharedBuckets(shared, number))
  return {
    credentials: limiter(CREDENTIAL_LIMIT, 0),
    failures: limiter(FAILURE_LIMIT, 1),
    verifications: limiter(VERIFICATION_LIMIT, 2),
    // One process answers all of them.
    mounts: new RateLimiter(clock, MOUNT_LIMIT),
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
