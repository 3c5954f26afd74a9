/**
 * The pace of one migration: the size of its batches, the pauses between them, and what follows one
 * that failed (a retry, half of the documents, or the end of the migration).
 */

/** Documents of a batch while applications call, which it blocks for a few milliseconds. */
export const BATCH_BESIDE_CALLS = 100
/** Pause after a batch beside calls, as a multiple of its duration, and at least. */
const PAUSE_FACTOR = 0.5
const PAUSE_MILLIS_MIN = 1
/** Pauses between attempts of a batch that failed for no fault of its own. */
const RETRY_MILLIS = { first: 200, most: 10_000 }
/** Timeouts in a row of a batch of one document after which the document is the cause. */
const TIMEOUTS_MAX = 5

/** Codes of failures that say nothing about the batch: a later run of it may succeed. */
const TRANSIENT: ReadonlySet<string> = new Set([
  'BUSY',
  'UNAVAILABLE',
  'WRITE_CONFLICT',
  'RESULT_UNCERTAIN',
  'PRODUCT_UNAVAILABLE',
])

/** A batch is repeated after a pause or with fewer documents, or its first document is reported. */
export type Reaction =
  | { readonly kind: 'retry'; readonly afterMillis: number }
  | { readonly kind: 'halved' }
  | { readonly kind: 'blocked' }

export class BatchSize {
  readonly #most: number
  #size: number
  #failures = 0
  #timeouts = 0

  /** `most` is what the migration declares. */
  constructor(most: number) {
    this.#most = most
    this.#size = most
  }

  /** Documents of the next batch. */
  next(hasCalls: boolean): number {
    return hasCalls ? Math.min(this.#size, BATCH_BESIDE_CALLS) : this.#size
  }

  /** Notes a batch that was stored. Returns the pause before the next one, 0 for none. */
  succeeded(hasCalls: boolean, durationMillis: number): number {
    this.#failures = 0
    this.#timeouts = 0
    this.#size = Math.min(this.#most, this.#size * 2)
    return hasCalls ? Math.max(PAUSE_MILLIS_MIN, durationMillis * PAUSE_FACTOR) : 0
  }

  /** Decides what follows a batch of `documents` that failed. `code` is null for no Fault. */
  failed(code: string | null, documents: number): Reaction {
    if (code === null || TRANSIENT.has(code)) return this.#retry()
    if (documents > 1) {
      this.#size = Math.ceil(documents / 2)
      return { kind: 'halved' }
    }
    this.#timeouts += 1
    // A slow store looks the same as code that never ends.
    if (code === 'DEADLINE_EXCEEDED' && this.#timeouts < TIMEOUTS_MAX) return this.#retry()
    return { kind: 'blocked' }
  }

  #retry(): Reaction {
    const afterMillis = Math.min(RETRY_MILLIS.first * 2 ** this.#failures, RETRY_MILLIS.most)
    this.#failures += 1
    return { kind: 'retry', afterMillis }
  }
}
