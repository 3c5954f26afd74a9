/**
 * Counts the files and bytes of each bucket, and enforces quotas on files, parts of multipart
 * uploads and bytes that are being received.
 */
import type { FileChange } from '../../engine/commits/read-set.ts'
import { fileFields, listFiles } from '../../engine/files/file-documents.ts'
import { listMultiparts, multipartFields } from '../../engine/files/multipart-documents.ts'
import type { SystemDocuments } from '../../engine/files/system-documents.ts'
import { Fault } from '../../errors/fault.ts'
import type { Logger } from '../../telemetry/log.ts'
import { FILE_DOCUMENTS, MULTIPART_DOCUMENTS } from '../../value/files/files.ts'
import { type Bucket, bucketFault } from '../buckets/admission.ts'
import { type BucketUse, type CountedTable, TableCount } from './table-count.ts'

export interface UsageOptions {
  readonly documents: SystemDocuments
  readonly log: Logger
  /** Maximum documents of one read. Tests lower it. */
  readonly pageFiles?: number
}

const PAGE_FILES = 1_000

const FILES: CountedTable = {
  table: FILE_DOCUMENTS,
  async list(transaction, page) {
    const { files, lastKey } = await listFiles(transaction, page)
    const documents = files.map(({ fileId: id, createdAtMicros, bucket, size: bytes }) => {
      return { id, createdAtMicros, bucket, files: 1, bytes }
    })
    return { documents, lastKey }
  },
  useOf(fields) {
    const { bucket, size } = fileFields(fields)
    return { bucket, files: 1, bytes: size }
  },
}

/**
 * Counts the parts of open uploads. The parts of a closed upload belong to a file, or are being
 * removed.
 */
const PARTS: CountedTable = {
  table: MULTIPART_DOCUMENTS,
  async list(transaction, page) {
    const { uploads, lastKey } = await listMultiparts(transaction, page)
    const documents = uploads.map(({ multipartId: id, createdAtMicros, ...upload }) => {
      return { id, createdAtMicros, bucket: upload.bucket, ...openUse(upload) }
    })
    return { documents, lastKey }
  },
  useOf(fields) {
    const upload = multipartFields(fields)
    return { bucket: upload.bucket, ...openUse(upload) }
  },
}

function openUse({ isOpen, bytes }: { readonly isOpen: boolean; readonly bytes: bigint }) {
  return { files: 0, bytes: isOpen ? bytes : 0n }
}

export class BucketUsage {
  readonly #options: UsageOptions
  readonly #files = new TableCount(FILES)
  readonly #parts = new TableCount(PARTS)
  readonly #reservations = new Set<Reservation>()
  readonly #stopListening: () => void
  #counting: Promise<void> | null = null
  #isClosed = false

  constructor(options: UsageOptions) {
    this.#options = options
    this.#stopListening = options.documents.listen((changes) => {
      for (const change of changes) this.#changed(change)
    })
  }

  /** Starts the count in the background. A failure is logged; the next use starts a new count. */
  start(): void {
    this.whenCounted().catch((error: unknown) => {
      this.#options.log.warn('files.usage_not_counted', { error })
    })
  }

  /** Resolves once what existed at the start is counted. Raises UNAVAILABLE. */
  whenCounted(): Promise<void> {
    this.#counting ??= this.#count().catch((error: unknown) => {
      this.#counting = null
      throw error
    })
    return this.#counting
  }

  /** Returns the files of a bucket; null until all files are counted. */
  of(bucket: string): BucketUse | null {
    return this.#hasCounted() ? this.#files.of(bucket) : null
  }

  /** Returns the files of all buckets; null until all files are counted. */
  total(): BucketUse | null {
    if (!this.#hasCounted()) return null
    let [files, bytes] = [0, 0n]
    for (const use of this.#files.uses.values()) {
      files += use.files
      bytes += use.bytes
    }
    return { files, bytes }
  }

  /**
   * Creates an empty reservation for a transfer or a commit that replaces `replacedBytes` of the
   * bucket. Its owner always calls `release`.
   */
  reserve(replacedBytes = 0n): Reservation {
    const reservation: Reservation = new Reservation(replacedBytes, {
      requireSpace: (bucket, bytes) => this.#requireSpace(reservation, bucket, bytes),
      release: () => void this.#reservations.delete(reservation),
    })
    return reservation
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopListening()
    await this.#counting?.catch(() => undefined)
  }

  /**
   * Adds the reservation to those that others see. Throws LIMIT_EXCEEDED if it exceeds the quota.
   */
  #requireSpace(reservation: Reservation, { name, quotaBytes }: Bucket, bytes: bigint): void {
    if (quotaBytes !== null && bytes > 0n) {
      let used = this.#files.of(name).bytes + this.#parts.of(name).bytes
      for (const other of this.#reservations) {
        if (other !== reservation && other.bucket === name) used += other.bytes
      }
      if (used + bytes > quotaBytes) {
        throw bucketFault('quotaBytes', `at most ${quotaBytes} bytes in all files of the bucket`)
      }
    }
    this.#reservations.add(reservation)
  }

  /** Returns whether all files are counted. Starts a new count if the last one failed. */
  #hasCounted(): boolean {
    if (this.#counting === null && !this.#isClosed) this.start()
    return this.#files.isCounted
  }

  async #count(): Promise<void> {
    const { documents, pageFiles = PAGE_FILES } = this.#options
    const onPage = () => {
      if (this.#isClosed) throw new Fault('UNAVAILABLE', { detail: 'the server stops' })
    }
    await this.#files.count(documents, { limit: pageFiles, onPage })
    await this.#parts.count(documents, { limit: pageFiles, onPage })
  }

  #changed(change: FileChange): void {
    for (const reservation of this.#reservations) {
      if (reservation.documentId === change.id) this.#reservations.delete(reservation)
    }
    this.#files.changed(change)
    this.#parts.changed(change)
  }
}

/** The functions by which a reservation holds its bytes. */
interface Holder {
  requireSpace(bucket: Bucket, bytes: bigint): void
  release(): void
}

/**
 * The bytes that a transfer or a commit adds to a bucket, until they are durable and the counts
 * include them. Space that a replacement or a deletion frees is available to others only once that
 * is durable too, because its commit may still fail.
 */
export class Reservation {
  readonly #replacedBytes: bigint
  readonly #holder: Holder
  #bucket: string | null = null
  #bytes = 0n
  #documentId: string | null = null

  constructor(replacedBytes: bigint, holder: Holder) {
    this.#replacedBytes = replacedBytes
    this.#holder = holder
  }

  get bucket(): string | null {
    return this.#bucket
  }

  get bytes(): bigint {
    return this.#bytes
  }

  /** The document that makes the bytes durable; null before its commit. */
  get documentId(): string | null {
    return this.#documentId
  }

  /**
   * Extends the reservation to the bytes received so far. Call it after `whenCounted` for a bucket
   * with a quota. Throws LIMIT_EXCEEDED if the quota would be exceeded.
   */
  extendTo(bucket: Bucket, receivedBytes: bigint): void {
    const bytes = receivedBytes - this.#replacedBytes
    if (bytes > this.#bytes) this.#hold(bucket, bytes)
  }

  /** Reserves exactly the bytes that the commit of a document adds. Throws as `extendTo` does. */
  commit(bucket: Bucket, addedBytes: bigint, documentId: string): void {
    this.#hold(bucket, addedBytes > 0n ? addedBytes : 0n)
    this.#documentId = documentId
  }

  /** Ends the reservation. It has no effect once the bytes are durable. */
  release(): void {
    this.#holder.release()
  }

  #hold(bucket: Bucket, bytes: bigint): void {
    this.#holder.requireSpace(bucket, bytes)
    this.#bucket = bucket.name
    this.#bytes = bytes
  }
}
