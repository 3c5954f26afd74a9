/**
 * Counts the files and bytes of each bucket, and keeps commits within quotas. One process owns the
 * documents, so the counts are in memory: the files of the start are read once, and every durable
 * change updates them.
 */
import type { FileChange } from '../../engine/commits/read-set.ts'
import {
  type FileDocument,
  type FilePage,
  fileFields,
  listFiles,
} from '../../engine/files/file-documents.ts'
import type { SystemDocuments } from '../../engine/files/system-documents.ts'
import { Fault } from '../../errors/fault.ts'
import type { Logger } from '../../telemetry/log.ts'
import { type Bucket, bucketFault } from './buckets.ts'

export interface UsageOptions {
  readonly documents: SystemDocuments
  readonly log: Logger
  /** Files of one read. Tests shorten it. */
  readonly pageFiles?: number
}

export interface BucketUse {
  readonly files: number
  readonly bytes: bigint
}

/** The place of a file in the order in which files are read. */
type Position = Pick<FileDocument, 'createdAtMicros' | 'fileId'>

/** A file that is being committed. */
interface Reservation {
  readonly bucket: string
  readonly bytes: bigint
}

const PAGE_FILES = 1_000
const NONE: BucketUse = { files: 0, bytes: 0n }

export class BucketUsage {
  readonly #options: UsageOptions
  /** Buckets that have files. */
  readonly #uses = new Map<string, BucketUse>()
  readonly #reservations = new Map<string, Reservation>()
  readonly #stopListening: () => void
  /** The last file that was counted. Changes of later ones are found when they are read. */
  #countedTo: Position | null = null
  #isCounted = false
  /** Changes since the snapshot of the page in progress; null while none is read. */
  #during: FileChange[] | null = null
  #counting: Promise<void> | null = null
  #isClosed = false

  constructor(options: UsageOptions) {
    this.#options = options
    this.#stopListening = options.documents.listen((changes) => {
      for (const change of changes) this.#changed(change)
    })
  }

  /** Starts to count, in the background. A failure is logged; the next use begins again. */
  start(): void {
    this.whenCounted().catch((error: unknown) => {
      this.#options.log.warn('files.usage_not_counted', { error })
    })
  }

  /** Resolves once the files that existed at the start are counted. Raises UNAVAILABLE. */
  whenCounted(): Promise<void> {
    this.#counting ??= this.#count().catch((error: unknown) => {
      this.#counting = null
      throw error
    })
    return this.#counting
  }

  /** Returns what a bucket holds; null until all files are counted. */
  of(bucket: string): BucketUse | null {
    return this.#hasCounted() ? (this.#uses.get(bucket) ?? NONE) : null
  }

  /** Returns what all buckets hold together; null until all files are counted. */
  total(): BucketUse | null {
    if (!this.#hasCounted()) return null
    let [files, bytes] = [0, 0n]
    for (const use of this.#uses.values()) {
      files += use.files
      bytes += use.bytes
    }
    return { files, bytes }
  }

  /**
   * Reserves what a commit adds to its bucket, until the file is durable or `release` is called.
   * Other commits see neither the bytes that it frees nor those of a deletion before they are
   * durable. Call it after `whenCounted` for a bucket with a quota. Throws LIMIT_EXCEEDED where
   * the quota would be exceeded.
   */
  reserve(bucket: Bucket, fileId: string, addedBytes: bigint): void {
    const { name, quotaBytes } = bucket
    const bytes = addedBytes > 0n ? addedBytes : 0n
    if (quotaBytes !== null && bytes > 0n) {
      let used = this.#uses.get(name)?.bytes ?? 0n
      for (const other of this.#reservations.values()) {
        if (other.bucket === name) used += other.bytes
      }
      if (used + bytes > quotaBytes) {
        throw bucketFault('quotaBytes', `at most ${quotaBytes} bytes in all files of the bucket`)
      }
    }
    this.#reservations.set(fileId, { bucket: name, bytes })
  }

  /** Ends the reservation of a commit that failed or will be repeated. */
  release(fileId: string): void {
    this.#reservations.delete(fileId)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopListening()
    await this.#counting?.catch(() => undefined)
  }

  /** Whether all files are counted. Begins again where the last count failed. */
  #hasCounted(): boolean {
    if (this.#counting === null && !this.#isClosed) this.start()
    return this.#isCounted
  }

  async #count(): Promise<void> {
    const { documents, pageFiles = PAGE_FILES } = this.#options
    this.#uses.clear()
    this.#countedTo = null
    let afterKey: string | null = null
    try {
      do {
        if (this.#isClosed) throw new Fault('UNAVAILABLE', { detail: 'the server stops' })
        const after: string | null = afterKey
        const page: FilePage = await documents.read((transaction) => {
          // The snapshot was taken in this turn of the event loop.
          this.#during = []
          return listFiles(transaction, { afterKey: after, limit: pageFiles })
        })
        this.#add(page)
        afterKey = page.lastKey
      } while (afterKey !== null)
    } finally {
      this.#during = null
    }
  }

  /** Counts a page, then the changes since its snapshot. */
  #add({ files, lastKey }: FilePage): void {
    for (const { bucket, size } of files) this.#change(bucket, 1, size)
    this.#countedTo = files.at(-1) ?? this.#countedTo
    this.#isCounted = lastKey === null
    const during = this.#during ?? []
    this.#during = null
    for (const change of during) this.#changed(change)
  }

  #changed(change: FileChange): void {
    this.#reservations.delete(change.fileId)
    if (this.#during !== null) this.#during.push(change)
    else if (this.#isBehind(change)) this.#apply(change)
  }

  /** Whether the file is among those that were counted, which are read in order of creation. */
  #isBehind({ createdAtMicros, fileId }: Position): boolean {
    const last = this.#countedTo
    if (this.#isCounted || last === null) return this.#isCounted
    return createdAtMicros === last.createdAtMicros
      ? fileId <= last.fileId
      : createdAtMicros < last.createdAtMicros
  }

  #apply({ before, after }: FileChange): void {
    const [old, current] = [before, after].map((each) => (each === null ? null : fileFields(each)))
    if (old) this.#change(old.bucket, -1, -old.size)
    if (current) this.#change(current.bucket, 1, current.size)
  }

  #change(bucket: string, files: number, bytes: bigint): void {
    const use = this.#uses.get(bucket) ?? NONE
    const next = { files: use.files + files, bytes: use.bytes + bytes }
    if (next.files === 0) this.#uses.delete(bucket)
    else this.#uses.set(bucket, next)
  }
}
