/**
 * Remembers which Functions lost conflicts on which documents lately. A call of such a Function
 * locks the document before its first attempt, which would probably be lost too.
 */
import type { System } from '../../system/system.ts'

/** Pairs of a Function and a key that are remembered; the oldest ones are dropped. */
const PAIRS_MAX = 1_024
/** Time after a conflict during which calls of the Function lock the key first. */
const REMEMBERED_MILLIS = 1_000

export class ContentionHistory {
  readonly #system: Pick<System, 'monotonicMillis'>
  /** The ends of the pairs in monotonic milliseconds, oldest first. */
  readonly #ends = new Map<string, number>()

  constructor(system: Pick<System, 'monotonicMillis'>) {
    this.#system = system
  }

  /** Returns whether nothing is remembered: then no call has to ask for its keys. */
  get isEmpty(): boolean {
    if (this.#ends.size > 0) this.#dropEnded()
    return this.#ends.size === 0
  }

  /** Records that a call of the Function lost a conflict on the keys. */
  add(name: string, keys: readonly string[]): void {
    const end = this.#system.monotonicMillis() + REMEMBERED_MILLIS
    for (const key of keys) {
      const pair = pairOf(name, key)
      // Inserted again, so that the order stays that of the ends.
      this.#ends.delete(pair)
      this.#ends.set(pair, end)
    }
    for (const pair of this.#ends.keys()) {
      if (this.#ends.size <= PAIRS_MAX) break
      this.#ends.delete(pair)
    }
  }

  /** Returns whether a call of the Function lost a conflict on the key lately. */
  has(name: string, key: string): boolean {
    const end = this.#ends.get(pairOf(name, key))
    return end !== undefined && this.#system.monotonicMillis() < end
  }

  #dropEnded(): void {
    const now = this.#system.monotonicMillis()
    for (const [pair, end] of this.#ends) {
      if (now < end) break
      this.#ends.delete(pair)
    }
  }
}

function pairOf(name: string, key: string): string {
  return `${name}\n${key}`
}
