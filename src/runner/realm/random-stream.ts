/**
 * Randomness of one invocation: the ChaCha20 key stream (RFC 8439) of its seed. A rerun draws the
 * same numbers, and the next one cannot be predicted without the seed.
 */
export class RandomStream {
  readonly #key = new Uint32Array(16)
  readonly #block = new Uint32Array(16)
  readonly #bytes = new Uint8Array(this.#block.buffer)
  /** Index of the next unused byte of the block. */
  #next = 64

  /** `seed` is 64 hexadecimal characters. */
  constructor(seed: string) {
    // "expand 32-byte k"
    this.#key.set([0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574])
    for (let i = 0; i < 8; i++) this.#key[4 + i] = parseInt(seed.slice(i * 8, i * 8 + 8), 16)
  }

  byte(): number {
    if (this.#next === 64) this.#refill()
    return this.#bytes[this.#next++]!
  }

  /** 32 random bits as a non-negative number. */
  word(): number {
    this.#next = (this.#next + 3) & ~3
    if (this.#next >= 64) this.#refill()
    this.#next += 4
    return this.#block[this.#next / 4 - 1]!
  }

  #refill(): void {
    const key = this.#key
    const block = this.#block
    block.set(key)
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < 4; i++) quarterRound(block, i, 4 + i, 8 + i, 12 + i)
      quarterRound(block, 0, 5, 10, 15)
      quarterRound(block, 1, 6, 11, 12)
      quarterRound(block, 2, 7, 8, 13)
      quarterRound(block, 3, 4, 9, 14)
    }
    for (let i = 0; i < 16; i++) block[i]! += key[i]!
    key[12]! += 1
    this.#next = 0
  }
}

function quarterRound(block: Uint32Array, a: number, b: number, c: number, d: number): void {
  let [w, x, y, z] = [block[a]!, block[b]!, block[c]!, block[d]!]
  w = (w + x) | 0
  z ^= w
  z = (z << 16) | (z >>> 16)
  y = (y + z) | 0
  x ^= y
  x = (x << 12) | (x >>> 20)
  w = (w + x) | 0
  z ^= w
  z = (z << 8) | (z >>> 24)
  y = (y + z) | 0
  x ^= y
  x = (x << 7) | (x >>> 25)
  block[a] = w
  block[b] = x
  block[c] = y
  block[d] = z
}
