/**
 * A store whose bytes may still be elsewhere. Bytes that it lacks are fetched when they are first
 * read, and stored under their address.
 */
import { isFault } from '../../errors/fault.ts'
import type {
  BlobAvailability,
  BlobBody,
  BlobCondition,
  BlobStore,
  Content,
  Slice,
  StagedBlob,
} from './blobs.ts'

/** The place that bytes are fetched from. */
export interface BlobOrigin {
  has(content: Content): boolean
  /**
   * Yields the bytes, and raises after the last of them where they are not those of the address.
   * Raises PRODUCT_CORRUPT and UNAVAILABLE.
   */
  read(content: Content): AsyncIterable<Uint8Array>
}

export class OnDemandBlobs implements BlobStore {
  readonly #blobs: BlobStore
  readonly #origin: BlobOrigin
  readonly #fetches = new Map<string, Promise<void>>()

  constructor(blobs: BlobStore, origin: BlobOrigin) {
    this.#blobs = blobs
    this.#origin = origin
  }

  stage(bytesExpected: number): Promise<StagedBlob> {
    return this.#blobs.stage(bytesExpected)
  }

  requireSpace(): Promise<void> {
    return this.#blobs.requireSpace()
  }

  open(content: Content, slice: Slice): Promise<BlobBody> {
    return this.#whole(content, () => this.#blobs.open(content, slice))
  }

  read(content: Content): Promise<Uint8Array> {
    return this.#whole(content, () => this.#blobs.read(content))
  }

  list(): AsyncIterable<Content> {
    return this.#blobs.list()
  }

  remove(sha256: string): Promise<void> {
    return this.#blobs.remove(sha256)
  }

  /** Bytes that were not fetched yet are whole: they are checked when they are. */
  async check(
    content: Content,
    options: Parameters<BlobStore['check']>[1],
  ): Promise<BlobCondition> {
    const condition = await this.#blobs.check(content, options)
    return condition === 'missing' && this.#origin.has(content) ? 'whole' : condition
  }

  quarantine(sha256: string): Promise<void> {
    return this.#blobs.quarantine(sha256)
  }

  availability(): Promise<BlobAvailability> {
    return this.#blobs.availability()
  }

  async #whole<T>(content: Content, read: () => Promise<T>): Promise<T> {
    try {
      return await read()
    } catch (error) {
      if (!isFault(error, 'PRODUCT_CORRUPT') || !this.#origin.has(content)) throw error
    }
    await this.#fetch(content)
    return read()
  }

  /** Readers of the same bytes wait for one fetch. */
  #fetch(content: Content): Promise<void> {
    const { sha256 } = content
    const pending = this.#fetches.get(sha256)
    if (pending !== undefined) return pending
    const fetched = this.#store(content).finally(() => this.#fetches.delete(sha256))
    this.#fetches.set(sha256, fetched)
    return fetched
  }

  async #store(content: Content): Promise<void> {
    const staged = await this.#blobs.stage(content.size)
    try {
      for await (const bytes of this.#origin.read(content)) await staged.write(bytes)
      await staged.finish()
      await staged.commit()
    } finally {
      await staged.discard()
    }
  }
}
