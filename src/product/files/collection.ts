/**
 * Removes the bytes of deleted files. Metadata alone decides which bytes are unused, because a
 * counter could drift from it. A crash at any step leaves bytes for the next start, and never a
 * file without its bytes.
 */
import { fileFields, isContentReferenced } from '../../engine/files/file-documents.ts'
import type { SystemDocuments } from '../../engine/files/system-documents.ts'
import type { BlobStore } from '../../storage/blobs/blobs.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import { FILE_DOCUMENTS } from '../../value/files/files.ts'

export interface CollectionOptions {
  readonly system: System
  readonly log: Logger
  readonly documents: SystemDocuments
  readonly blobs: BlobStore
}

/**
 * Time from the deletion of a file to the removal of its bytes. A response reads the metadata and
 * opens the bytes a few milliseconds later, so an immediate removal would break it. Once opened, a
 * file stays readable.
 */
const GRACE_MILLIS = 30_000
/** Interval of the runs: bytes are removed 30 to 40 s after the deletion of their last file. */
const PERIOD_MILLIS = 10_000

export class FileCollection {
  readonly #options: CollectionOptions
  /** Monotonic milliseconds after which bytes may be removed, by SHA-256. */
  readonly #candidates = new Map<string, number>()
  /** Number of tasks that store a file with these bytes. */
  readonly #held = new Map<string, number>()
  /** The removal in progress. */
  #removal: { readonly sha256: string; readonly ended: Promise<void> } | null = null
  readonly #pauses = new Set<object>()
  readonly #runs: CoalescingTask
  readonly #stopListening: () => void
  readonly #timer: ReturnType<typeof setInterval>
  #hasListed = false

  constructor(options: CollectionOptions) {
    this.#options = options
    this.#runs = new CoalescingTask(
      () => this.#collect(),
      (error) => options.log.warn('files.collection_failed', { error }),
    )
    this.#stopListening = options.documents.listen((changes) => {
      for (const { table, before } of changes) {
        // The bytes of a part are suspected by its upload, which may move them into a file.
        if (table !== FILE_DOCUMENTS || before === null) continue
        this.#suspect(fileFields(before).sha256, GRACE_MILLIS)
      }
    })
    this.#timer = setInterval(() => this.#runs.start(), PERIOD_MILLIS)
    this.#timer.unref()
  }

  /** Starts to look for bytes that an earlier process left, in the background. */
  start(): void {
    this.#runs.start()
  }

  /** Runs a task that stores bytes and then references them; keeps them until it has ended. */
  async hold<T>(sha256: string, task: () => Promise<T>): Promise<T> {
    this.#held.set(sha256, (this.#held.get(sha256) ?? 0) + 1)
    try {
      if (this.#removal?.sha256 === sha256) await this.#removal.ended
      const result = await task()
      // A check that is in progress is out of date, because the bytes are referenced now.
      this.#candidates.delete(sha256)
      return result
    } catch (error) {
      // The bytes may be stored although no file references them.
      this.#suspect(sha256, GRACE_MILLIS)
      throw error
    } finally {
      const left = this.#held.get(sha256)! - 1
      if (left === 0) this.#held.delete(sha256)
      else this.#held.set(sha256, left)
    }
  }

  /**
   * Keeps all bytes, also those of files that are deleted meanwhile, until the returned function is
   * called. Removals that began before concern bytes that no file references.
   */
  pause(): () => void {
    const pause = {}
    this.#pauses.add(pause)
    return () => void this.#pauses.delete(pause)
  }

  /** Removes the bytes after the grace period, unless a file references them then. */
  suspect(sha256: string): void {
    this.#suspect(sha256, GRACE_MILLIS)
  }

  /** Removes the bytes that are due. Resolves when the run has ended. */
  async collect(): Promise<void> {
    this.#runs.start()
    await this.#runs.whenIdle()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#stopListening()
    await this.#runs.close()
  }

  #suspect(sha256: string, graceMillis: number): void {
    this.#candidates.set(sha256, this.#options.system.monotonicMillis() + graceMillis)
  }

  async #collect(): Promise<void> {
    const { system, log } = this.#options
    if (!this.#hasListed) await this.#list()
    let removed = 0
    for (const [sha256, dueAt] of this.#candidates) {
      if (this.#runs.isClosed || this.#pauses.size > 0) break
      if (dueAt > system.monotonicMillis()) continue
      if (await this.#removeUnreferenced(sha256, dueAt)) removed += 1
    }
    if (removed > 0) log.info('files.collected', { removed })
  }

  /**
   * Suspects all stored bytes that no file references, because a killed process may have left some.
   */
  async #list(): Promise<void> {
    const { blobs } = this.#options
    for await (const { sha256 } of blobs.list()) {
      if (this.#runs.isClosed) return
      if (!this.#candidates.has(sha256) && !(await this.#isReferenced(sha256))) {
        this.#suspect(sha256, 0)
      }
    }
    this.#hasListed = true
  }

  /** Removes the bytes unless a file references them. Returns whether it removed them. */
  async #removeUnreferenced(sha256: string, dueAt: number): Promise<boolean> {
    const isReferenced = await this.#isReferenced(sha256)
    // A task may have begun to hold them since, or have stored a file. No other code runs between
    // this check and the removal.
    if (this.#held.has(sha256) || this.#candidates.get(sha256) !== dueAt) return false
    if (this.#pauses.size > 0) return false
    if (isReferenced) {
      this.#candidates.delete(sha256)
      return false
    }
    const ended = this.#options.blobs.remove(sha256)
    // Only `hold` waits for it; after a failure the bytes are still there, which it tolerates.
    this.#removal = { sha256, ended: ended.catch(() => undefined) }
    try {
      await ended
    } finally {
      this.#removal = null
    }
    this.#candidates.delete(sha256)
    return true
  }

  #isReferenced(sha256: string): Promise<boolean> {
    return this.#options.documents.read((transaction) => isContentReferenced(transaction, sha256))
  }
}
