/** Random numbers that depend only on a seed and a position in the workload. */

export class SeededRandom {
  #state: number

  constructor(seed: number, position: number) {
    this.#state = mix(mix(seed >>> 0) ^ position)
  }

  /** Returns an integer from 0 to `bound` - 1. */
  below(bound: number): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0
    return Math.floor((mix(this.#state) / 2 ** 32) * bound)
  }

  chance(share: number): boolean {
    return this.below(1_000_000) < share * 1_000_000
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!
  }
}

/** The finalizer of MurmurHash3. */
function mix(state: number): number {
  let hash = state >>> 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
