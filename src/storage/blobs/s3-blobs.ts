/**
 * Bytes of stored files in an S3-compatible store, under `<Environment>/sha256/<digest>`. Bytes are
 * staged on the disk of the Product root first: their address is their digest, which is known only
 * at their end, and an upload that breaks off leaves nothing in the store.
 */
import { Fault } from '../../errors/fault.ts'
import type {
  BlobAvailability,
  BlobBody,
  BlobCondition,
  BlobStore,
  Content,
  Slice,
  StagedBlob,
} from './blobs.ts'
import { sha256InSlices } from './content-digests.ts'
import { exactly } from './exact-streams.ts'
import { isMissing, type S3Address, S3Objects } from './s3-objects.ts'
import { type StagedFile, Staging } from './staged-files.ts'

export interface S3BlobsOptions {
  readonly address: S3Address
  /** Environments may share a bucket: each has its own prefix. */
  readonly environmentId: string
  /** Directory of bytes that are being uploaded. */
  readonly stagingDirectory: string
  readonly freeFloorBytes: number
  /** Milliseconds for a request without a body. Tests shorten it. */
  readonly requestMillis?: number
}

/** Less than the second after which health probes time out. */
const PROBE_MILLIS = 800
/** Slices up to this size are read at once. */
const SMALL_BYTES = 64 * 1024
/** Keys of one page, the most that S3 lists. */
const LIST_MAX = 1_000
const DIGEST = /^[0-9a-f]{64}$/

export class S3Blobs implements BlobStore {
  readonly #objects: S3Objects
  readonly #prefix: string
  readonly #staging: Staging

  private constructor(options: S3BlobsOptions) {
    const { address, environmentId, stagingDirectory, freeFloorBytes } = options
    this.#objects = new S3Objects(address, options.requestMillis)
    this.#prefix = `${environmentId}/`
    this.#staging = new Staging({ directory: stagingDirectory, freeFloorBytes })
  }

  /** Only the owner of the root may call it. Sends nothing to the store. Raises UNAVAILABLE. */
  static async open(options: S3BlobsOptions): Promise<S3Blobs> {
    const blobs = new S3Blobs(options)
    await blobs.#staging.open()
    return blobs
  }

  /** Opens the store in a process that does not own the root, for reads alone. */
  static follow(
    options: Pick<S3BlobsOptions, 'address' | 'environmentId' | 'stagingDirectory'>,
  ): Pick<BlobStore, 'open'> {
    return new S3Blobs({ ...options, freeFloorBytes: 0 })
  }

  stage(bytesExpected: number): Promise<StagedBlob> {
    return this.#staging.stage(bytesExpected, (file) => this.#commit(file))
  }

  requireSpace(): Promise<void> {
    return this.#staging.requireSpace(0)
  }

  async #commit(file: StagedFile): Promise<void> {
    const { sha256, size } = file.finish()
    const key = this.#keyOf(sha256)
    await file.close()
    if ((await this.#objects.sizeOf(key)) === size) return
    await this.#objects.putFile(key, file.path, size)
  }

  /**
   * Reads the first bytes, so that a failure of the store is reported before the response starts,
   * and all of a short slice, which leaves the connection to further requests.
   */
  async open(content: Content, { start, end }: Slice): Promise<BlobBody> {
    if (start === end) return new Blob([])
    const stream = this.#objects.client.file(this.#keyOf(content.sha256)).slice(start, end).stream()
    const reader = (stream as ReadableStream<Uint8Array>).getReader()
    const read = () => this.#objects.request(this.#objects.requestMillis, () => reader.read())
    try {
      const bytes = await exactly({ read, cancel: () => reader.cancel() }, end - start)
      return end - start <= SMALL_BYTES ? await new Response(bytes).bytes() : bytes
    } catch (error) {
      throw isMissing(error) ? missing(content.sha256) : error
    }
  }

  async read({ sha256, size }: Content): Promise<Uint8Array> {
    const file = this.#objects.client.file(this.#keyOf(sha256))
    const millis = this.#objects.millisFor(size)
    let bytes: Uint8Array
    try {
      bytes = await this.#objects.request(millis, () => file.bytes())
    } catch (error) {
      throw isMissing(error) ? missing(sha256) : error
    }
    if (bytes.length === size && (await sha256InSlices(bytes)) === sha256) return bytes
    throw new Fault('PRODUCT_CORRUPT', { detail: `stored file ${sha256} is altered` })
  }

  async *list(): AsyncGenerator<Content> {
    const prefix = `${this.#prefix}sha256/`
    let continuationToken: string | undefined
    do {
      const input = { prefix, maxKeys: LIST_MAX, ...(continuationToken && { continuationToken }) }
      const page = await this.#objects.request(this.#objects.requestMillis, () =>
        this.#objects.client.list(input),
      )
      for (const { key, size } of page.contents ?? []) {
        const sha256 = key.slice(prefix.length)
        if (DIGEST.test(sha256)) yield { sha256, size: size ?? 0 }
      }
      continuationToken = page.isTruncated ? page.nextContinuationToken : undefined
    } while (continuationToken !== undefined)
  }

  async remove(sha256: string): Promise<void> {
    await this.#objects.remove(this.#keyOf(sha256))
  }

  async check(
    content: Content,
    options: { readonly quick: boolean; readonly pause?: () => Promise<void> },
  ): Promise<BlobCondition> {
    return this.#objects.check(this.#keyOf(content.sha256), content, options)
  }

  async quarantine(sha256: string): Promise<void> {
    const key = this.#keyOf(sha256)
    const bytes = this.#objects.client.file(key)
    const aside = `${this.#prefix}damaged/${sha256}`
    const millis = this.#objects.millisFor((await this.#objects.sizeOf(key)) ?? 0)
    await this.#objects.request(millis, () => this.#objects.client.write(aside, bytes))
    await this.remove(sha256)
  }

  async availability(): Promise<BlobAvailability> {
    try {
      const input = { prefix: this.#prefix, maxKeys: 1 }
      await this.#objects.request(PROBE_MILLIS, () => this.#objects.client.list(input))
      return (await this.#staging.isWritable()) ? 'available' : 'full'
    } catch {
      return 'unavailable'
    }
  }

  #keyOf(sha256: string): string {
    if (!DIGEST.test(sha256)) throw missing(sha256)
    return `${this.#prefix}sha256/${sha256}`
  }
}

function missing(sha256: string): Fault {
  return new Fault('PRODUCT_CORRUPT', {
    detail: `stored file ${sha256.slice(0, 64)} is missing in the S3-compatible store`,
  })
}
