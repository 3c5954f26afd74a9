/**
 * Randomness of one invocation: the ChaCha20 key stream (RFC 8439) of its seed, so that a rerun
 * draws the same numbers while nobody without the seed can tell the next one.
 */

export interface RandomStream {
  /** 32 random bits. */
  word(): number
  byte(): number
}

/** `seed` is 64 hex characters. */
export function makeRandomStream(seed: string): RandomStream {
  const key = new Uint32Array(16)
  // "expand 32-byte k"
  key.set([0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574])
  for (let i = 0; i < 8; i++) key[4 + i] = parseInt(seed.slice(i * 8, i * 8 + 8), 16)
  const block = new Uint32Array(16)
  const bytes = new Uint8Array(block.buffer)
  let at = 64

  function quarter(a: number, b: number, c: number, d: number): void {
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

  function refill(): void {
    block.set(key)
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < 4; i++) quarter(i, 4 + i, 8 + i, 12 + i)
      quarter(0, 5, 10, 15)
      quarter(1, 6, 11, 12)
      quarter(2, 7, 8, 13)
      quarter(3, 4, 9, 14)
    }
    for (let i = 0; i < 16; i++) block[i]! += key[i]!
    key[12]! += 1
    at = 0
  }

  function byte(): number {
    if (at === 64) refill()
    return bytes[at++]!
  }

  return {
    byte,
    word() {
      at = (at + 3) & ~3
      if (at >= 64) refill()
      at += 4
      return block[at / 4 - 1]!
    },
  }
}

/** `Math.random` and `crypto`; `stream` answers the one of the invocation that runs. */
export function makeRandom(stream: () => RandomStream) {
  const hex: string[] = []
  for (let i = 0; i < 256; i++) hex.push((i < 16 ? '0' : '') + i.toString(16))
  const integers = [
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

  function getRandomValues<T extends ArrayBufferView>(view: T): T {
    if (!integers.some((kind) => view instanceof kind)) {
      throw new TypeError('crypto.getRandomValues: give it an integer array, such as a Uint8Array')
    }
    if (view.byteLength > 65_536) {
      throw new RangeError('crypto.getRandomValues: at most 65536 bytes at once')
    }
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
    const { byte } = stream()
    for (let i = 0; i < bytes.length; i++) bytes[i] = byte()
    return view
  }

  function randomUUID(): string {
    const bytes = getRandomValues(new Uint8Array(16))
    bytes[6] = (bytes[6]! & 0x0f) | 0x40
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
    let text = ''
    for (let i = 0; i < 16; i++) {
      text += (i === 4 || i === 6 || i === 8 || i === 10 ? '-' : '') + hex[bytes[i]!]!
    }
    return text
  }

  return {
    random(): number {
      const { word } = stream()
      // 53 bits, as a double has.
      return ((word() >>> 5) * 67_108_864 + (word() >>> 6)) / 9_007_199_254_740_992
    },
    crypto: Object.freeze({ getRandomValues, randomUUID }),
  }
}
