/**
 * The digest of a set of documents. It does not depend on their order, so that documents that were
 * imported can be compared with those of a file in one pass over each.
 */
import { sha256 } from '../../../system/digests.ts'
import { encodeTagged } from '../../../value/tagged.ts'
import type { ValueObject } from '../../../value/values.ts'

const MODULUS = 2n ** 256n

export class DocumentsDigest {
  #sum = 0n
  #count = 0

  /** Adds a document: SHA-256 of its ID and the canonical text of its fields, modulo 2^256. */
  add(id: string, fields: ValueObject): void {
    const digest = sha256(`${id}\n`, encodeTagged(fields)).toString('hex')
    this.#sum = (this.#sum + BigInt(`0x${digest}`)) % MODULUS
    this.#count += 1
  }

  get count(): number {
    return this.#count
  }

  /** 64 lowercase hex characters. */
  get hex(): string {
    return this.#sum.toString(16).padStart(64, '0')
  }
}
