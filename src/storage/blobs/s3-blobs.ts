/**
 * Bytes of stored files in an S3-compatible store, under `<Environment>/sha256/<digest>`. Bytes are
 * staged on the disk of the Product root first: their address is their digest, which is known only
 * at their end, and an upload that breaks off leaves nothing in the store.
 */
import { Fault } from '../../errors/fault.ts'
import { inSlices } from '../../system/event-loop.ts'
import type {
  BlobAvailability,
  BlobBody,
  BlobCondition,
  BlobStore,
  Content,
  Slice,
  StagedBlob,
} from './blobs.ts'
import { digestOf } from './content-digests.ts'
import { exactly } from './exact-streams.ts'
import { type StagedFile, Staging } from './staged-files.ts'

export interface S3Address {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

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

const REQUEST_MILLIS = 10_000
/** Below the second after which probes give up. */
const PROBE_MILLIS = 800
/** Least rate at which the store must take bytes: it bounds how long an upload waits for it. */
const BYTES_PER_MILLI_MIN = 64
const PART_BYTES = 8 * 1024 * 1024
const PARTS_IN_FLIGHT = 4
const RETRIES = 3
const LIST_MAX = 1_000
const DIGEST = /^[0-9a-f]{64}$/

export class S3Blobs implements BlobStore {
  readonly #client: Bun.S3Client
  readonly #prefix: string
  readonly #staging: Staging
  readonly #requestMillis: number

  private constructor(options: S3BlobsOptions) {
    const { address, environmentId, stagingDirectory, freeFloorBytes } = options
    this.#client = new Bun.S3Client({ ...address })
    this.#prefix = `${environmentId}/`
    this.#staging = new Staging({ directory: stagingDirectory, freeFloorBytes })
    this.#requestMillis = options.requestMillis ?? REQUEST_MILLIS
  }

  /** Only the owner of the root may call it. Sends nothing to the store. Raises UNAVAILABLE. */
  static async open(options: S3BlobsOptions): Promise<S3Blobs> {
    const blobs = new S3Blobs(options)
    await blobs.#staging.open()
    return blobs
  }

  stage(bytesExpected: number): Promise<StagedBlob> {
    return this.#staging.stage(bytesExpected, (file) => this.#commit(file))
  }

  async #commit(file: StagedFile): Promise<void> {
    const { sha256, size } = file.finish()
    const key = this.#keyOf(sha256)
    await file.close()
    if ((await this.#sizeOf(key)) === size) return
    const millis = this.#requestMillis + size / BYTES_PER_MILLI_MIN
    await this.#request(millis, () =>
      this.#client.write(key, Bun.file(file.path), {
        type: 'application/octet-stream',
        ...{ partSize: PART_BYTES, queueSize: PARTS_IN_FLIGHT, retry: RETRIES },
      }),
    )
    const stored = await this.#sizeOf(key)
    if (stored !== size) throw unavailable(`it took ${size} bytes and has ${stored}`)
  }

  /** Reads the first bytes, so that a failure of the store is told before the answer begins. */
  async open(content: Content, { start, end }: Slice): Promise<BlobBody> {
    if (start === end) return new Blob([])
    const stream = this.#client.file(this.#keyOf(content.sha256)).slice(start, end).stream()
    const reader = (stream as ReadableStream<Uint8Array>).getReader()
    const read = () => this.#request(this.#requestMillis, () => reader.read())
    try {
      return await exactly({ read, cancel: () => reader.cancel() }, end - start)
    } catch (error) {
      throw this.#isMissing(error) ? missing(content.sha256) : error
    }
  }

  async read({ sha256, size }: Content): Promise<Uint8Array> {
    const file = this.#client.file(this.#keyOf(sha256))
    const millis = this.#requestMillis + size / BYTES_PER_MILLI_MIN
    let bytes: Uint8Array
    try {
      bytes = await this.#request(millis, () => file.bytes())
    } catch (error) {
      throw this.#isMissing(error) ? missing(sha256) : error
    }
    if (bytes.length === size && (await digestOf(bytes)) === sha256) return bytes
    throw new Fault('PRODUCT_CORRUPT', { detail: `stored file ${sha256} is altered` })
  }

  async *list(): AsyncGenerator<Content> {
    const prefix = `${this.#prefix}sha256/`
    let continuationToken: string | undefined
    do {
      const input = { prefix, maxKeys: LIST_MAX, ...(continuationToken && { continuationToken }) }
      const page = await this.#request(this.#requestMillis, () => this.#client.list(input))
      for (const { key, size } of page.contents ?? []) {
        const sha256 = key.slice(prefix.length)
        if (DIGEST.test(sha256)) yield { sha256, size: size ?? 0 }
      }
      continuationToken = page.isTruncated ? page.nextContinuationToken : undefined
    } while (continuationToken !== undefined)
  }

  async remove(sha256: string): Promise<void> {
    await this.#request(this.#requestMillis, () => this.#client.delete(this.#keyOf(sha256)))
  }

  async check(
    { sha256, size }: Content,
    { quick, pause }: { readonly quick: boolean; readonly pause?: () => Promise<void> },
  ): Promise<BlobCondition> {
    const key = this.#keyOf(sha256)
    const stored = await this.#sizeOf(key)
    if (stored === null) return 'missing'
    if (stored !== size) return 'damaged'
    if (quick || size === 0) return 'whole'
    const hasher = new Bun.CryptoHasher('sha256')
    const stream = this.#client.file(key).stream() as ReadableStream<Uint8Array>
    const reader = stream.getReader()
    for (;;) {
      const { done, value } = await this.#request(this.#requestMillis, () => reader.read())
      if (done) break
      await inSlices(value, (slice) => void hasher.update(slice))
      await pause?.()
    }
    return hasher.digest('hex') === sha256 ? 'whole' : 'damaged'
  }

  async quarantine(sha256: string): Promise<void> {
    const key = this.#keyOf(sha256)
    const bytes = this.#client.file(key)
    const aside = `${this.#prefix}damaged/${sha256}`
    const millis = this.#requestMillis + ((await this.#sizeOf(key)) ?? 0) / BYTES_PER_MILLI_MIN
    await this.#request(millis, () => this.#client.write(aside, bytes))
    await this.remove(sha256)
  }

  async availability(): Promise<BlobAvailability> {
    try {
      const input = { prefix: this.#prefix, maxKeys: 1 }
      await this.#request(PROBE_MILLIS, () => this.#client.list(input))
      return (await this.#staging.hasSpace(0)) ? 'available' : 'full'
    } catch {
      return 'unavailable'
    }
  }

  /** Returns the length that the store reports; null where there are no bytes. */
  async #sizeOf(key: string): Promise<number | null> {
    try {
      const { size } = await this.#request(this.#requestMillis, () => this.#client.stat(key))
      return size
    } catch (error) {
      if (this.#isMissing(error)) return null
      throw error
    }
  }

  #keyOf(sha256: string): string {
    if (!DIGEST.test(sha256)) throw missing(sha256)
    return `${this.#prefix}sha256/${sha256}`
  }

  /** Raises UNAVAILABLE where the store fails or does not answer in time. */
  async #request<T>(millis: number, send: () => Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(unavailable('no answer in time')), millis)
    try {
      const sent = send()
      sent.catch(() => undefined)
      return await Promise.race([sent, late.promise])
    } catch (cause) {
      if (cause instanceof Fault) throw cause
      throw unavailable(codeOf(cause), cause)
    } finally {
      clearTimeout(timer)
    }
  }

  #isMissing(error: unknown): boolean {
    return error instanceof Fault && codeOf(error.cause) === 'NoSuchKey'
  }
}

function missing(sha256: string): Fault {
  return new Fault('PRODUCT_CORRUPT', {
    detail: `stored file ${sha256.slice(0, 64)} is missing in the S3-compatible store`,
  })
}

function unavailable(reason: string, cause?: unknown): Fault {
  return new Fault('UNAVAILABLE', { cause, detail: `the S3-compatible store: ${reason}` })
}

/** The code of an error of S3 or of the system, such as "AccessDenied". */
function codeOf(cause: unknown): string {
  const code = (cause as { readonly code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : 'it failed'
}
