/** Computes the checksum of a multipart upload while its parts are joined. */
import {
  type ChecksumAlgorithm,
  type ChecksumStream,
  checksumStream,
} from '../../system/checksums.ts'

export interface JoinedChecksumOptions {
  readonly algorithm: ChecksumAlgorithm
  /** True for the checksum of the checksums of the parts, false for that of all bytes. */
  readonly isComposite: boolean
}

export class JoinedChecksum {
  readonly algorithm: ChecksumAlgorithm
  readonly #isComposite: boolean
  readonly #whole: ChecksumStream
  #part: ChecksumStream | null = null
  #parts = 0

  constructor({ algorithm, isComposite }: JoinedChecksumOptions) {
    this.algorithm = algorithm
    this.#isComposite = isComposite
    this.#whole = checksumStream(algorithm)
  }

  update(bytes: Uint8Array): void {
    if (!this.#isComposite) this.#whole.update(bytes)
    else {
      this.#part ??= checksumStream(this.algorithm)
      this.#part.update(bytes)
    }
  }

  /** Ends a part, which may be empty. */
  endPart(): void {
    this.#parts += 1
    if (!this.#isComposite) return
    this.#whole.update((this.#part ?? checksumStream(this.algorithm)).digest())
    this.#part = null
  }

  /** Returns the base64 of the checksum, with the number of parts if it is composite. */
  finish(): string {
    const text = this.#whole.digest().toBase64()
    return this.#isComposite ? `${text}-${this.#parts}` : text
  }
}
