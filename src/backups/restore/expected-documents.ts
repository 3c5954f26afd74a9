/**
 * The digest that the documents must have after all changes: the base in its order, merged with the
 * documents that changed after it.
 */
import { assert } from '../../errors/assert.ts'
import type { ChangedLeaf } from '../../storage/restores/backup-contents.ts'
import { MerkleTree } from '../format/merkle-tree.ts'

export class ExpectedDocuments {
  readonly #tree = new MerkleTree()
  readonly #changed: Iterator<ChangedLeaf>
  #next: ChangedLeaf | null
  #count = 0

  /** The changed documents are in the order of the bytes of their IDs. */
  constructor(changed: Iterable<ChangedLeaf>) {
    this.#changed = changed[Symbol.iterator]()
    this.#next = this.#advance()
  }

  /** Adds the next document of the base. */
  add(id: Uint8Array, digest: Buffer): void {
    let order = this.#compare(id)
    for (; order < 0; order = this.#compare(id)) this.#addChanged()
    if (order === 0) this.#addChanged()
    else this.#addDigest(digest)
  }

  /** Returns the number of documents and the root of their Merkle tree. */
  finish(): { readonly documents: number; readonly merkle: string } {
    while (this.#next !== null) this.#addChanged()
    return { documents: this.#count, merkle: this.#tree.root() }
  }

  /** Compares the next changed document with an ID: greater than 0 where there is none. */
  #compare(id: Uint8Array): number {
    return this.#next === null ? 1 : Buffer.compare(this.#next.id, id)
  }

  #addChanged(): void {
    assert(this.#next !== null, 'a changed document is left')
    const { digest } = this.#next
    if (digest !== null) this.#addDigest(Buffer.from(digest))
    this.#next = this.#advance()
  }

  #addDigest(digest: Buffer): void {
    this.#tree.addDigest(digest)
    this.#count += 1
  }

  #advance(): ChangedLeaf | null {
    const { done, value } = this.#changed.next()
    return done === true ? null : value
  }
}
