/** Backups in a bucket of an S3-compatible store. Raises UNAVAILABLE. */
import { isMissing, type S3Address, S3Objects } from '../../storage/blobs/s3-objects.ts'
import { absent } from './failures.ts'
import type { BackupTarget } from './targets.ts'

/** Names of one page, the most that S3 lists. */
const LIST_MAX = 1_000

export interface S3TargetOptions {
  readonly address: S3Address
  /** Begins all names: empty, or it ends with `/`. */
  readonly prefix: string
  /** Milliseconds for a request without a body. Tests shorten it. */
  readonly requestMillis?: number
}

export class S3Target implements BackupTarget {
  readonly location: string
  readonly #objects: S3Objects
  readonly #prefix: string

  constructor({ address, prefix, requestMillis }: S3TargetOptions) {
    this.location = `s3://${address.bucket}/${prefix}`
    this.#objects = new S3Objects(address, requestMillis)
    this.#prefix = prefix
  }

  async names(directory: string): Promise<string[]> {
    const prefix = this.#prefix + (directory === '' ? '' : `${directory}/`)
    const names: string[] = []
    let continuationToken: string | undefined
    do {
      const input = {
        prefix,
        delimiter: '/',
        maxKeys: LIST_MAX,
        ...(continuationToken && { continuationToken }),
      }
      const page = await this.#objects.request(this.#objects.requestMillis, () =>
        this.#objects.client.list(input),
      )
      const found = [
        ...(page.contents ?? []).map(({ key }) => key),
        ...(page.commonPrefixes ?? []).map((each) => each.prefix.replace(/\/$/, '')),
      ]
      names.push(...found.map((key) => key.slice(prefix.length)))
      continuationToken = page.isTruncated ? page.nextContinuationToken : undefined
    } while (continuationToken !== undefined)
    return names.sort()
  }

  sizeOf(name: string): Promise<number | null> {
    return this.#objects.sizeOf(this.#prefix + name)
  }

  async *read(name: string): AsyncGenerator<Uint8Array> {
    const stream = this.#objects.client.file(this.#prefix + name).stream()
    const reader = (stream as ReadableStream<Uint8Array>).getReader()
    try {
      for (;;) {
        const { done, value } = await this.#objects.request(this.#objects.requestMillis, () =>
          reader.read(),
        )
        if (done) return
        yield value
      }
    } catch (error) {
      throw isMissing(error) ? absent(name) : error
    } finally {
      // The connection of a read that broke off would stay open.
      await reader.cancel().catch(() => undefined)
    }
  }

  write(name: string, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number> {
    return this.#objects.putPieces(this.#prefix + name, bytes)
  }

  remove(name: string): Promise<void> {
    return this.#objects.remove(this.#prefix + name)
  }

  async removeDirectory(): Promise<void> {
    // A directory is a part of the names below it.
  }
}
