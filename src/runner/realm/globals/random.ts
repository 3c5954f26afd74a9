/** `Math.random` and `crypto`, which draw from the stream of the running call. */
import type { RandomStream } from '../random-stream.ts'

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
