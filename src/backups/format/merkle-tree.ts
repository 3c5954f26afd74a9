/**
 * The Merkle tree of RFC 6962: its root stands for a list of leaves in their order. A leaf is
 * added in constant time on average, and memory holds a digest for each level alone.
 */
import { sha256 } from '../../system/digests.ts'

const LEAF = Uint8Array.of(0)
const NODE = Uint8Array.of(1)

/** Returns the digest of a leaf. */
export function leafDigest(leaf: Uint8Array | string): Buffer {
  return sha256(LEAF, leaf)
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
      root = { leaves: 2 * left.leaves, digest: sha256(NODE, left.digest, root.digest) }
    }
    this.#roots.push(root)
  }

  /** Returns 64 hex characters: for no leaf, the SHA-256 of nothing. */
  root(): string {
    const digests = this.#roots.map(({ digest }) => digest)
    if (digests.length === 0) return sha256('').toString('hex')
    return digests.reduceRight((right, left) => sha256(NODE, left, right)).toString('hex')
  }
}
