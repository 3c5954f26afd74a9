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

const HEX: string[] = []
for (let i = 0; i < 256; i++) HEX.push((i < 16 ? '0' : '') + i.toString(16))
const INTEGER_ARRAYS = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  BigInt64Array,
  BigUint64Array,
]

/** Creates `Math.random` and `crypto`; `currentStream` returns the stream of the running call. */
export function createRandom(currentStream: () => RandomStream) {
  function getRandomValues<T extends ArrayBufferView>(view: T): T {
    if (!INTEGER_ARRAYS.some((kind) => view instanceof kind)) {
      throw new TypeError('crypto.getRandomValues: give it an integer array, such as a Uint8Array')
    }
    if (view.byteLength > 65_536) {
      throw new RangeError('crypto.getRandomValues: at most 65536 bytes at once')
    }
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
    const stream = currentStream()
    for (let i = 0; i < bytes.length; i++) bytes[i] = stream.byte()
    return view
  }

  function randomUUID(): string {
    const bytes = getRandomValues(new Uint8Array(16))
    bytes[6] = (bytes[6]! & 0x0f) | 0x40
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
    let text = ''
    for (let i = 0; i < 16; i++) {
      text += (i === 4 || i === 6 || i === 8 || i === 10 ? '-' : '') + HEX[bytes[i]!]!
    }
    return text
  }

  return {
    random(): number {
      const stream = currentStream()
      // 53 bits, the precision of a double.
      return ((stream.word() >>> 5) * 67_108_864 + (stream.word() >>> 6)) / 9_007_199_254_740_992
    },
    crypto: Object.freeze({ getRandomValues, randomUUID }),
  }
}
