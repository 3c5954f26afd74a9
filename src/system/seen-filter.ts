/**
 * Tells what came before, so that only that is kept: most texts come once and would push out what
 * comes again. It holds a hash in a place for each, no text, which costs the collector nothing.
 */

/**
 * Places that a text may have, newest first. With one alone, two texts that share it and come in
 * turns would never have come before.
 */
const WAYS = 4

export class SeenFilter {
  readonly #hashes: Int32Array

  /** `places` is a power of two, at least 4. About as many others make a text forgotten. */
  constructor(places: number) {
    this.#hashes = new Int32Array(places)
  }

  /**
   * Whether it came before, in this version of what it names, and is not forgotten. It may be
   * wrong, less than once in 2^30 times, for a text that never came: whoever calls only keeps more
   * than it should.
   */
  hasSeen(text: string | Uint8Array, version = 0): boolean {
    const hashes = this.#hashes
    // Signed: half of the unsigned ones are doubles to the engine, which would compile this again
    // and again.
    const hash = Bun.hash.xxHash32(text, version >>> 0) | 0
    const first = Math.imul(hash, WAYS) & (hashes.length - 1)
    for (let way = 0; way < WAYS; way++) if (hashes[first + way] === hash) return true
    for (let way = WAYS - 1; way > 0; way--) hashes[first + way] = hashes[first + way - 1]!
    hashes[first] = hash
    return false
  }
}
