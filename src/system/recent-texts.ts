/**
 * Tells what came before, so that only that is kept: most texts come once and would push out what
 * comes again. It holds a hash in a place for each, no text, which costs the collector nothing.
 */
export class RecentTexts {
  readonly #hashes: Uint32Array

  /** `places` is a power of two. One text in as many others takes the place of this one. */
  constructor(places: number) {
    this.#hashes = new Uint32Array(places)
  }

  /**
   * Whether it came before, since something else took its place. Wrong once in 2^32 times the
   * share of places that are taken; whoever calls only keeps more than it should.
   */
  sawBefore(text: string | Uint8Array): boolean {
    const hash = Bun.hash.xxHash32(text)
    const place = hash & (this.#hashes.length - 1)
    if (this.#hashes[place] === hash) return true
    this.#hashes[place] = hash
    return false
  }
}
