/** Copies files and artifacts into the target, each once for all backups of a history. */
import { isFault } from '../../errors/fault.ts'
import type { BlobBody, BlobStore } from '../../storage/blobs/blobs.ts'
import type { ProductRoot } from '../../storage/root.ts'
import { hmacSha256, sha256Stream } from '../../system/digests.ts'
import type { Bytes, Sealer } from '../format/age-files.ts'
import { blobPath, type HistoryAddress } from '../format/chain.ts'
import type { BackupTarget } from '../targets/targets.ts'
import type { NamedBytes } from './base-records.ts'
import type { Throttle } from './throttle.ts'

export interface StoredBytesOptions {
  readonly target: BackupTarget
  readonly sealer: Sealer
  readonly recipients: readonly string[]
  readonly address: HistoryAddress
  /** Key of the names. */
  readonly key: Uint8Array
  readonly throttle: Throttle
  /** Called before a name is looked for in the target. */
  readonly onUse?: ((name: string) => Promise<void>) | undefined
  /** Shared by all that store bytes in the target at the same time. */
  readonly locks?: BlobLocks | undefined
  /** Stops what takes long. */
  readonly signal?: AbortSignal | undefined
}

export interface BytesToStore extends NamedBytes {
  /** Raises PRODUCT_CORRUPT if the bytes are missing. */
  open(): Promise<BlobBody>
}

/**
 * Lets one at a time store the bytes of a name: two writers would encrypt the same bytes in two
 * ways into one file, and one that fails would remove what the other one has written.
 */
export class BlobLocks {
  readonly #newest = new Map<string, Promise<unknown>>()

  /** Runs `store` when nothing else stores under the name any longer. */
  async run<T>(name: string, store: () => Promise<T>): Promise<T> {
    const before = this.#newest.get(name)
    const running = (async () => {
      await before?.catch(() => undefined)
      return store()
    })()
    this.#newest.set(name, running)
    try {
      return await running
    } finally {
      if (this.#newest.get(name) === running) this.#newest.delete(name)
    }
  }
}

/** The stored bytes are not those of their digest. */
class DamagedBytes extends Error {}

const SLICE_BYTES = 256 * 1024

export class StoredBytes {
  readonly #options: StoredBytesOptions
  readonly #locks: BlobLocks

  constructor(options: StoredBytesOptions) {
    this.#options = options
    this.#locks = options.locks ?? new BlobLocks()
  }

  #nameOf(sha256: string): string {
    // Other recipients cannot open what is there under the name for the earlier ones.
    const label = [sha256, ...[...this.#options.recipients].sort()].join('\n')
    return hmacSha256(this.#options.key, label).toString('hex')
  }

  /**
   * Returns the name under which the target has the bytes; null if they are missing or damaged,
   * which no backup can repair. Raises UNAVAILABLE.
   */
  store(bytes: BytesToStore): Promise<string | null> {
    const name = this.#nameOf(bytes.sha256)
    return this.#locks.run(name, () => this.#store(name, bytes))
  }

  async #store(name: string, bytes: BytesToStore): Promise<string | null> {
    const { target, sealer, address, onUse } = this.#options
    await onUse?.(name)
    const path = blobPath(address, name)
    // A connection that is lost may leave a part of the bytes.
    if ((await target.sizeOf(path)) === (await sealer.sealedLength(bytes.size))) return name
    try {
      await target.write(path, sealer.seal(this.#checked(bytes)))
      return name
    } catch (error) {
      if (!(error instanceof DamagedBytes) && !isFault(error, 'PRODUCT_CORRUPT')) throw error
      return null
    }
  }

  /** Yields the bytes, and throws at their end if they are not those of the digest. */
  async *#checked({ sha256, size, open }: BytesToStore): AsyncGenerator<Uint8Array> {
    const { throttle, signal } = this.#options
    signal?.throwIfAborted()
    const body = await open()
    const digest = sha256Stream()
    let length = 0
    for await (const chunk of chunksOf(body)) {
      for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
        signal?.throwIfAborted()
        const slice = chunk.subarray(at, at + SLICE_BYTES)
        await throttle.step(() => digest.update(slice))
        length += slice.length
        yield slice
      }
    }
    // Bytes that end early because the store closes are not damaged.
    signal?.throwIfAborted()
    if (length !== size || digest.digest().toString('hex') !== sha256) throw new DamagedBytes()
  }
}

/** Returns the bytes of a stored file. */
export function storedFile(blobs: Pick<BlobStore, 'open'>, content: NamedBytes): BytesToStore {
  return { ...content, open: () => blobs.open(content, { start: 0, end: content.size }) }
}

/** Returns the bytes of an artifact of a Release. */
export function storedArtifact(
  artifacts: ProductRoot['artifacts'],
  content: NamedBytes,
): BytesToStore {
  const open = async () => (await artifacts.get(`sha256:${content.sha256}`, content.size)) as Bytes
  return { ...content, open }
}

async function* chunksOf(body: BlobBody): AsyncGenerator<Uint8Array> {
  if (body instanceof Uint8Array) {
    yield body
    return
  }
  yield* (body instanceof Blob ? body.stream() : body) as AsyncIterable<Uint8Array>
}
