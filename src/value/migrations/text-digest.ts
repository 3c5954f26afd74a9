/** SHA-256 of a text in plain JavaScript, for the realm of a runner, which has no digests. */

const ROUNDS = 64
const INITIAL = firstPrimes(8).map((prime) => fractionBits(Math.sqrt(prime)))
const CONSTANTS = firstPrimes(ROUNDS).map((prime) => fractionBits(Math.cbrt(prime)))

/** The bits of a first byte, by the number of bytes that follow it. */
const UTF8_MARKS = [0, 0xc0, 0xe0, 0xf0]

/** Returns the SHA-256 of the text in UTF-8, as 64 lowercase hexadecimal characters. */
export function textDigest(text: string): string {
  const bytes = utf8(text)
  const length = bytes.length
  const padded = new Uint8Array((Math.floor((length + 8) / 64) + 1) * 64)
  padded.set(bytes)
  padded[length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor((length * 8) / 2 ** 32))
  view.setUint32(padded.length - 4, (length * 8) % 2 ** 32)
  const hash = [...INITIAL]
  for (let at = 0; at < padded.length; at += 64) addBlock(hash, view, at)
  return hash.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function addBlock(hash: number[], view: DataView, at: number): void {
  const words = new Int32Array(ROUNDS)
  for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i)
  for (let i = 16; i < ROUNDS; i++) {
    const [early, late] = [words[i - 15]!, words[i - 2]!]
    const mixed = rotated(early, 7) ^ rotated(early, 18) ^ (early >>> 3)
    words[i] =
      words[i - 16]! +
      mixed +
      words[i - 7]! +
      (rotated(late, 17) ^ rotated(late, 19) ^ (late >>> 10))
  }
  let [a, b, c, d, e, f, g, h] = hash as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  for (let i = 0; i < ROUNDS; i++) {
    const chosen = (e & f) ^ (~e & g)
    const first =
      h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + chosen + CONSTANTS[i]! + words[i]!
    const majority = (a & b) ^ (a & c) ^ (b & c)
    const second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + majority
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0]
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) hash[i] = (hash[i]! + word) | 0
}

function rotated(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}

/** Returns the first 32 bits of the fraction. */
function fractionBits(value: number): number {
  return ((value % 1) * 2 ** 32) | 0
}

function firstPrimes(count: number): number[] {
  const primes: number[] = []
  for (let n = 2; primes.length < count; n++) {
    if (primes.every((prime) => n % prime !== 0)) primes.push(n)
  }
  return primes
}

/** Encodes the text; a lone surrogate becomes the replacement character. */
function utf8(text: string): Uint8Array {
  const bytes: number[] = []
  for (const character of text.toWellFormed()) {
    const point = character.codePointAt(0)!
    const trailing = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3
    bytes.push(UTF8_MARKS[trailing]! | (point >> (6 * trailing)))
    for (let i = trailing - 1; i >= 0; i--) bytes.push(0x80 | ((point >> (6 * i)) & 0x3f))
  }
  return Uint8Array.from(bytes)
}
