/** Bytes of stored files in memory, for environments that end with their process. */
import { Fault } from '../../errors/fault.ts'
import { sha256 } from '../../system/digests.ts'
import type { BlobStore, Content, Slice, StagedBlob } from './blobs.ts'

export class MemoryBlobs implements BlobStore {
  readonly #blobs = new Map<string, Uint8Array>()

  async stage(): Promise<StagedBlob> {
    const chunks: Uint8Array[] = []
    let bytes: Uint8Array = new Uint8Array(0)
    return {
      write: async (chunk) => {
        chunks.push(chunk.slice())
      },
      finish: async () => {
        bytes = Buffer.concat(chunks)
        return contentOf(bytes)
      },
      commit: async () => {
        this.#blobs.set(contentOf(bytes).sha256, bytes)
      },
      discard: async () => undefined,
    }
  }

  async requireSpace(): Promise<void> {
    // Memory has no floor.
  }

  async open(content: Content, { start, end }: Slice): Promise<Blob> {
    return new Blob([new Uint8Array(this.#require(content).subarray(start, end))])
  }

  async read(content: Content): Promise<Uint8Array> {
    return this.#require(content)
  }

  async *list(): AsyncGenerator<Content> {
    for (const [sha256, { length }] of [...this.#blobs]) yield { sha256, size: length }
  }

  async remove(sha256: string): Promise<void> {
    this.#blobs.delete(sha256)
  }

  async check({ sha256 }: Content) {
    return this.#blobs.has(sha256) ? 'whole' : 'missing'
  }

  async quarantine(sha256: string): Promise<void> {
    this.#blobs.delete(sha256)
  }

  async availability() {
    return 'available' as const
  }

  #require({ sha256, size }: Content): Uint8Array {
    const bytes = this.#blobs.get(sha256)
    if (bytes?.length === size) return bytes
    throw new Fault('PRODUCT_CORRUPT', { detail: `the bytes ${sha256} are missing` })
  }
}

function contentOf(bytes: Uint8Array): Content {
  return { sha256: sha256(bytes).toString('hex'), size: bytes.length }
}
