/**
 * The Merkle tree of RFC 6962: its root stands for a list of leaves in their order. A leaf is
 * added in constant time on average, and memory holds a digest for each level alone.
 */
import { sha256 } from '../../system/digests.ts'

const LEAF = '\0'
const LEAF_BYTE = Uint8Array.of(0)
const DIGEST_BYTES = 32
/** A node: the byte 1 and two digests. One part for each digest costs a third of several. */
const NODE = Buffer.alloc(1 + 2 * DIGEST_BYTES, 1)

/** Returns the digest of a leaf. */
export function leafDigest(leaf: Uint8Array | string): Buffer {
  return typeof leaf === 'string' ? sha256(LEAF + leaf) : sha256(LEAF_BYTE, leaf)
}

function nodeDigest(left: Uint8Array, right: Uint8Array): Buffer {
  NODE.set(left, 1)
  NODE.set(right, 1 + DIGEST_BYTES)
  return sha256(NODE)
}

export class MerkleTree {
  /** Roots of complete subtrees, the largest first, with their numbers of leaves. */
  readonly #roots: { readonly leaves: number; readonly digest: Buffer }[] = []

  add(leaf: Uint8Array | string): void {
    this.addDigest(leafDigest(leaf))
  }

  /** Adds a leaf by its digest. */
  addDigest(digest: Buffer): void {
    let root = { leaves: 1, digest }
    for (;;) {
      const left = this.#roots.at(-1)
      if (left === undefined || left.leaves !== root.leaves) break
      this.#roots.pop()
      root = { leaves: 2 * left.leaves, digest: nodeDigest(left.digest, root.digest) }
    }
    this.#roots.push(root)
  }

  /** Returns 64 hex characters: for no leaf, the SHA-256 of nothing. */
  root(): string {
    const digests = this.#roots.map(({ digest }) => digest)
    if (digests.length === 0) return sha256('').toString('hex')
    return digests.reduceRight((right, left) => nodeDigest(left, right)).toString('hex')
  }
}
