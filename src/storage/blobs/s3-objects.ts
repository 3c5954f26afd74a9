/** Requests to an S3-compatible store: each is bounded in time and fails as UNAVAILABLE. */
import { Fault } from '../../errors/fault.ts'
import { inSlices } from '../../system/event-loop.ts'

export interface S3Address {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export interface StoredBytes {
  /** 64 lowercase hex characters. */
  readonly sha256: string
  readonly size: number
}

const REQUEST_MILLIS = 10_000
/** Least rate at which the store must take bytes: it bounds how long an upload waits for it. */
const BYTES_PER_MILLI_MIN = 64
/** S3 takes at most 10,000 parts of at least 5 MiB: the longest file, 5 GiB, has 640 of these. */
const PART_BYTES = 8 * 1024 * 1024
const PARTS_IN_FLIGHT = 4
/** Parts of an upload of unknown length, which one has in memory: the least that S3 takes. */
const STREAM_PART_BYTES = 5 * 1024 * 1024
const RETRIES = 3

export class S3Objects {
  readonly client: Bun.S3Client
  readonly requestMillis: number

  /** `requestMillis`: for a request without a body. Tests shorten it. */
  constructor(address: S3Address, requestMillis: number = REQUEST_MILLIS) {
    this.client = new Bun.S3Client({ ...address })
    this.requestMillis = requestMillis
  }

  /** Stores a file, or replaces the object. Checks the length that the store has afterwards. */
  async putFile(key: string, path: string, size: number): Promise<void> {
    await this.request(this.millisFor(size), () =>
      this.client.write(key, Bun.file(path), {
        type: 'application/octet-stream',
        partSize: PART_BYTES,
        queueSize: PARTS_IN_FLIGHT,
        retry: RETRIES,
      }),
    )
    const stored = await this.sizeOf(key)
    if (stored !== size) throw unavailable(`it took ${size} bytes and has ${stored}`)
  }

  /**
   * Stores pieces whose number is not known before their end, or replaces the object. Holds a part
   * and the pieces in flight in memory. Returns the length, which the store has afterwards. After a
   * failure there may be nothing under the key.
   */
  async putPieces(
    key: string,
    pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<number> {
    const millis = this.millisFor(STREAM_PART_BYTES)
    const options = { type: 'application/octet-stream', retry: RETRIES }
    let gathered: Uint8Array[] = []
    let waiting = 0
    let length = 0
    let writer: Bun.NetworkSink | null = null
    try {
      for await (const piece of pieces) {
        gathered.push(piece)
        waiting += piece.length
        length += piece.length
        if (waiting < STREAM_PART_BYTES) continue
        const part = Buffer.concat(gathered)
        gathered = []
        waiting = 0
        writer ??= this.client
          .file(key)
          .writer({ ...options, partSize: STREAM_PART_BYTES, queueSize: 1 })
        const sink = writer
        await this.request(millis, async () => {
          await sink.write(part)
          await sink.flush()
        })
      }
      const rest = Buffer.concat(gathered)
      const sink = writer
      await this.request(millis, async () => {
        if (sink === null) return void (await this.client.write(key, rest, options))
        await sink.write(rest)
        await sink.end()
      })
    } catch (error) {
      if (writer === null) throw error
      // The upload has to end, or the store keeps its parts. Even with an error the runtime makes
      // an object of them.
      await Promise.resolve(writer.end(error as Error)).catch(() => undefined)
      await this.remove(key).catch(() => undefined)
      throw error
    }
    const stored = await this.sizeOf(key)
    if (stored !== length) throw unavailable(`it took ${length} bytes and has ${stored}`)
    return length
  }

  /** Returns the length that the store reports; null if the object does not exist. */
  async sizeOf(key: string): Promise<number | null> {
    try {
      const { size } = await this.request(this.requestMillis, () => this.client.stat(key))
      return size
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  /** Reads an object and compares it. Calls `pause` after each part that was read. */
  async check(
    key: string,
    { sha256, size }: StoredBytes,
    { quick, pause }: { readonly quick: boolean; readonly pause?: () => Promise<void> },
  ): Promise<'whole' | 'missing' | 'damaged'> {
    const stored = await this.sizeOf(key)
    if (stored === null) return 'missing'
    if (stored !== size) return 'damaged'
    if (quick || size === 0) return 'whole'
    const hasher = new Bun.CryptoHasher('sha256')
    const stream = this.client.file(key).stream() as ReadableStream<Uint8Array>
    const reader = stream.getReader()
    try {
      for (;;) {
        const { done, value } = await this.request(this.requestMillis, () => reader.read())
        if (done) return hasher.digest('hex') === sha256 ? 'whole' : 'damaged'
        await inSlices(value, (slice) => void hasher.update(slice))
        await pause?.()
      }
    } finally {
      // The connection of a read that broke off would stay open.
      await reader.cancel().catch(() => undefined)
    }
  }

  /** Does nothing if the object does not exist. */
  async remove(key: string): Promise<void> {
    await this.request(this.requestMillis, () => this.client.delete(key))
  }

  /** Milliseconds for a request with `bytes` bytes. */
  millisFor(bytes: number): number {
    return this.requestMillis + bytes / BYTES_PER_MILLI_MIN
  }

  /** Raises UNAVAILABLE where the store fails or does not answer in time. */
  async request<T>(millis: number, send: () => Promise<T>): Promise<T> {
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
}

/** Returns whether a request failed because the object does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Fault && codeOf(error.cause) === 'NoSuchKey'
}

function unavailable(reason: string, cause?: unknown): Fault {
  return new Fault('UNAVAILABLE', { cause, detail: `the S3-compatible store: ${reason}` })
}

/** The code of an error of S3 or of the system, such as "AccessDenied". */
function codeOf(cause: unknown): string {
  const code = (cause as { readonly code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : 'it failed'
}
