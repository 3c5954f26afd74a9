/** Token buckets by key: those of one process, and those that several processes share. */
import { sha256 } from '../system/digests.ts'
import { sharedMicros } from '../system/memory/shared-memory.ts'
import type { System } from '../system/system.ts'

export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

export interface TokenBuckets {
  /**
   * Takes `count` tokens, down to minus the burst, if the bucket of the key has at least `least`.
   * Returns the tokens that it had before.
   */
  take(key: string, limit: RateLimit, count: number, least: number): number
  /** Keys in memory. */
  readonly size: number
}

/** Returns the tokens after a time. A new bucket is full. */
function refilled(tokens: number, millis: number, { perSecond, burst }: RateLimit): number {
  return Math.min(tokens + (Math.max(0, millis) * perSecond) / 1000, burst)
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

/**
 * The buckets of one process. The least recently used key, to the second, is evicted first; its
 * next bucket is full.
 */
export class OwnBuckets implements TokenBuckets {
  readonly #clock: Pick<System, 'monotonicMillis'>
  readonly #keysMax: number
  /** Buckets in the order of their last use. */
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Pick<System, 'monotonicMillis'>, keysMax: number) {
    this.#clock = clock
    this.#keysMax = keysMax
  }

  take(key: string, limit: RateLimit, count: number, least: number): number {
    const bucket = this.#bucket(key, limit)
    const before = bucket.tokens
    if (before >= least) bucket.tokens = Math.max(before - count, -limit.burst)
    return before
  }

  get size(): number {
    return this.#buckets.size
  }

  #bucket(key: string, limit: RateLimit): Bucket {
    const atMillis = this.#clock.monotonicMillis()
    const known = this.#buckets.get(key)
    const bucket = known ?? { tokens: limit.burst, atMillis, movedAtMillis: atMillis }
    bucket.tokens = refilled(bucket.tokens, atMillis - bucket.atMillis, limit)
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

/** Buckets of one limit in shared memory, each a hash of the key and a state. */
const SHARED_BUCKETS = 16_384
export const SHARED_BUCKETS_BYTES = SHARED_BUCKETS * 2 * BigInt64Array.BYTES_PER_ELEMENT
/** Buckets in which a key can be. The one that was used least recently is replaced. */
const PROBES = 16
/** Tokens are stored in this fraction, which is one request in four days at the least rate. */
const TOKEN_PARTS = 256
const STATE_MILLIS = 2n ** 32n

/**
 * Buckets in memory that several processes map. A bucket changes by compare and exchange, so that a
 * process that is killed leaves it as it was before or after.
 */
export class SharedBuckets implements TokenBuckets {
  readonly #memory: BigInt64Array
  readonly #first: number
  readonly #slots = new Map<string, { readonly at: number; readonly digest: bigint }>()

  /** The buckets with this number, from 0, in the memory. */
  constructor(memory: BigInt64Array, number: number) {
    this.#memory = memory
    this.#first = number * SHARED_BUCKETS * 2
  }

  take(key: string, limit: RateLimit, count: number, least: number): number {
    const now = wallMillis()
    const state = this.#slotOf(key) + 1
    for (;;) {
      const stored = Atomics.load(this.#memory, state)
      const tokens = tokensIn(stored, now, limit)
      if (tokens < least || count === 0) return tokens
      const next = stateOf(Math.max(tokens - count, -limit.burst), now)
      if (Atomics.compareExchange(this.#memory, state, stored, next) === stored) return tokens
    }
  }

  get size(): number {
    let size = 0
    for (let i = 0; i < SHARED_BUCKETS; i++) {
      if (this.#memory[this.#first + i * 2] !== 0n) size += 1
    }
    return size
  }

  /** Returns the position of the bucket, whose state is beside it. */
  #slotOf(key: string): number {
    const known = this.#slots.get(key)
    if (known !== undefined && this.#memory[known.at] === known.digest) return known.at
    const digest = sha256(key).readBigInt64BE() | 1n
    const at = this.#claim(digest)
    if (this.#slots.size >= SHARED_BUCKETS) this.#slots.clear()
    this.#slots.set(key, { at, digest })
    return at
  }

  #claim(digest: bigint): number {
    const start = Number(BigInt.asUintN(32, digest >> 1n)) % SHARED_BUCKETS
    let oldest = -1
    let oldestAge = -1
    const now = wallMillis()
    for (let i = 0; i < PROBES; i++) {
      const at = this.#first + ((start + i) % SHARED_BUCKETS) * 2
      const found = Atomics.compareExchange(this.#memory, at, 0n, digest)
      if (found === 0n || found === digest) return at
      const age = ageOf(Atomics.load(this.#memory, at + 1), now)
      if (age > oldestAge) [oldest, oldestAge] = [at, age]
    }
    Atomics.store(this.#memory, oldest + 1, 0n)
    Atomics.store(this.#memory, oldest, digest)
    return oldest
  }
}

function wallMillis(): number {
  return Math.floor(sharedMicros() / 1000)
}

/** A state has tokens in its upper half and milliseconds in its lower half; 0 is a full bucket. */
function stateOf(tokens: number, now: number): bigint {
  const millis = BigInt(now) % STATE_MILLIS
  return (BigInt(Math.round(tokens * TOKEN_PARTS)) << 32n) | (millis === 0n ? 1n : millis)
}

function tokensIn(state: bigint, now: number, limit: RateLimit): number {
  if (state === 0n) return limit.burst
  return refilled(Number(state >> 32n) / TOKEN_PARTS, ageOf(state, now), limit)
}

/** Milliseconds since the state was stored; 0 for one that a faster clock has stored. */
function ageOf(state: bigint, now: number): number {
  const age = Number(BigInt.asUintN(32, BigInt(now) - BigInt.asUintN(32, state)))
  return age > 2 ** 31 ? 0 : age
}
