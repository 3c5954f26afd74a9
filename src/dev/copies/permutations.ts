/**
 * Secret permutations of the positions 0 to `size` - 1: Feistel networks over the next power of 4,
 * whose results beyond the size are permuted again.
 */
import { sha256 } from '../../system/digests.ts'

/** Returns the position that another one becomes. */
export type Permutation = (position: bigint) => bigint

const ROUNDS = 8
/** Bits of half a position up to which the rounds are tables. */
const TABLE_BITS = 10
const PART_BYTES = 8

/**
 * Returns the permutation of a key of 32 bytes. No position becomes itself. `size` is 2 or more;
 * beyond 2^20 two positions may have one result, with a probability of less than 2^-40.
 */
export function permutationOf(key: Uint8Array, size: bigint): Permutation {
  const bits = Math.max((size - 1n).toString(2).length, 2)
  const half = Math.ceil(bits / 2)
  return half <= TABLE_BITS ? smallPermutation(key, Number(size), half) : large(key, size, half)
}

/** Goes one step along a cycle of all positions in a secret order. */
function smallPermutation(key: Uint8Array, size: number, half: number): Permutation {
  const mask = 2 ** half - 1
  const tables = Array.from({ length: ROUNDS }, (_, round) => tableOf(key, round, half))
  const step = 1 + (sha256(key, 'step').readUInt32BE(0) % (size - 1))
  const forward = (position: number) => {
    let [left, right] = [position >> half, position & mask]
    for (const table of tables) [left, right] = [right, left ^ table[right]!]
    return (left << half) | right
  }
  const backward = (position: number) => {
    let [left, right] = [position >> half, position & mask]
    for (const table of tables.toReversed()) [left, right] = [right ^ table[left]!, left]
    return (left << half) | right
  }
  return (position) => {
    let at = Number(position)
    do at = forward(at)
    while (at >= size)
    at = (at + step) % size
    do at = backward(at)
    while (at >= size)
    return BigInt(at)
  }
}

function tableOf(key: Uint8Array, round: number, half: number): Uint16Array {
  const mask = 2 ** half - 1
  const table = new Uint16Array(mask + 1)
  for (let i = 0; i <= mask; i += 16) {
    const random = sha256(key, `table:${round}:${i}`)
    for (let j = 0; j < 16 && i + j <= mask; j++) table[i + j] = random.readUInt16BE(2 * j) & mask
  }
  return table
}

function large(key: Uint8Array, size: bigint, half: number): Permutation {
  const bits = BigInt(half)
  const mask = (1n << bits) - 1n
  const input = Buffer.concat([key, Buffer.alloc(1 + PART_BYTES)])
  const forward = (position: bigint) => {
    let [left, right] = [position >> bits, position & mask]
    for (let round = 0; round < ROUNDS; round++) {
      input[key.length] = round
      input.writeBigUInt64BE(right, key.length + 1)
      const mixed = sha256(input).readBigUInt64BE(0) & mask
      ;[left, right] = [right, left ^ mixed]
    }
    return (left << bits) | right
  }
  return (position) => {
    let at = position
    do at = forward(at)
    while (at >= size)
    return at === position ? (position + 1n) % size : at
  }
}
