/**
 * A filter that recognizes texts seen before, so that caches only take those: most texts are seen
 * once and would push out others. It stores hashes in a table of numbers and no text, which costs
 * the garbage collector nothing.
 */

/**
 * Slots of a set, newest first. With one slot, two texts that share it and alternate would never be
 * recognized.
 */
const WAYS = 4

export class SeenFilter {
  readonly #hashes: Int32Array

  /** `slots` is a power of two, at least 4. A text is forgotten after about as many others. */
  constructor(slots: number) {
    this.#hashes = new Int32Array(slots)
  }

  /**
   * Adds the text in this version, and returns whether it was present before. False positives are
   * rarer than one in 2^30: then the caller caches more than it should.
   */
  hasSeen(text: string | Uint8Array, version = 0): boolean {
    const hashes = this.#hashes
    // Signed: the engine represents half of the unsigned hashes as doubles, and would deoptimize
    // this function again and again.
    const hash = Bun.hash.xxHash32(text, version >>> 0) | 0
    const first = Math.imul(hash, WAYS) & (hashes.length - 1)
    for (let way = 0; way < WAYS; way++) if (hashes[first + way] === hash) return true
    for (let way = WAYS - 1; way > 0; way--) hashes[first + way] = hashes[first + way - 1]!
    hashes[first] = hash
    return false
  }
}
