/**
 * Values that depend on a key and on an original, and that tell nothing of the original to a reader
 * without the key. One key belongs to one copy and is never stored.
 */
import { assert } from '../../errors/assert.ts'
import { hmac } from '../../system/digests.ts'
import { type Permutation, permutationOf } from './permutations.ts'

const BLOCK_BYTES = 32
/** Permutations that are kept, of at most 16 KiB each. */
const PERMUTATIONS_MAX = 256

export class KeyedValues {
  readonly #key: Uint8Array
  readonly #permutations = new Map<string, Permutation>()

  /** `key` has 32 random bytes. */
  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** Returns 32 bytes for the content, which is one of a kind of values. */
  digest(kind: string, content: Uint8Array | string): Buffer {
    return hmac('sha256', this.#key, `${kind}\0`, content)
  }

  /** Returns this number of bytes for the content. */
  bytes(kind: string, content: Uint8Array | string, length: number): Uint8Array {
    const seed = this.digest(kind, content)
    const bytes = new Uint8Array(length)
    for (let at = 0; at < length; at += BLOCK_BYTES) {
      bytes.set(hmac('sha256', seed, String(at)).subarray(0, length - at), at)
    }
    return bytes
  }

  /**
   * Returns another position for a position of 0 to `size` - 1 (permutations.ts). `size` is 2 or
   * more.
   */
  permute(kind: string, position: bigint, size: bigint): bigint {
    assert(size >= 2n && position >= 0n && position < size, 'a position is within the size')
    const which = `${kind}:${size}`
    let permutation = this.#permutations.get(which)
    if (permutation === undefined) {
      if (this.#permutations.size >= PERMUTATIONS_MAX) this.#permutations.clear()
      permutation = permutationOf(this.digest('permutation', which), size)
      this.#permutations.set(which, permutation)
    }
    return permutation(position)
  }
}
