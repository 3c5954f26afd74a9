/**
 * Compares stored bytes with the metadata of files, slowly and repeatedly, so that damage is found
 * while a backup of the bytes still exists.
 */
import { type FileDocument, type FilePage, listFiles } from '../../engine/files/file-documents.ts'
import type { SystemDocuments } from '../../engine/files/system-documents.ts'
import type { BlobStore } from '../../storage/blobs/blobs.ts'
import type { Logger } from '../../telemetry/log.ts'

export interface ScrubberOptions {
  readonly log: Logger
  readonly documents: SystemDocuments
  readonly blobs: BlobStore
  /** Pauses between reads. Tests shorten them. */
  readonly pauses?: ScrubberPauses
}

export interface ScrubberPauses {
  /** Pause after each MiB of bytes, and after each file. */
  readonly mibMillis: number
  /** Pause before the first round. */
  readonly firstMillis: number
  /** Pause after each round. */
  readonly roundMillis: number
}

/** Limits reads to 8 MiB per second, which is a disk of 1 TB in a day and a half. */
const PAUSES: ScrubberPauses = { mibMillis: 125, firstMillis: 60_000, roundMillis: 3_600_000 }
const PAGE_FILES = 100

export class Scrubber {
  readonly #options: ScrubberOptions
  readonly #pauses: ScrubberPauses
  /** SHA-256 of contents that were damaged or missing at their last check. */
  readonly #damaged = new Set<string>()
  #running: Promise<void> = Promise.resolve()
  #isClosed = false
  #wake: () => void = () => undefined

  constructor(options: ScrubberOptions) {
    this.#options = options
    this.#pauses = options.pauses ?? PAUSES
  }

  /** Number of contents that were damaged or missing at their last check. */
  get damaged(): number {
    return this.#damaged.size
  }

  start(): void {
    this.#running = this.#run()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    await this.#running
  }

  async #run(): Promise<void> {
    await this.#pause(this.#pauses.firstMillis)
    while (!this.#isClosed) {
      try {
        await this.#round()
      } catch (error) {
        this.#options.log.warn('files.scrub_failed', { error })
      }
      await this.#pause(this.#pauses.roundMillis)
    }
  }

  async #round(): Promise<void> {
    const { documents } = this.#options
    const seen = new Set<string>()
    let afterKey: string | null = null
    do {
      const after: string | null = afterKey
      const page: FilePage = await documents.read((transaction) =>
        listFiles(transaction, { afterKey: after, limit: PAGE_FILES }),
      )
      for (const file of page.files) {
        seen.add(file.sha256)
        if (this.#isClosed) return
        await this.#check(file)
      }
      afterKey = page.lastKey
    } while (afterKey !== null)
    // Contents of files that were deleted meanwhile no longer count as damage.
    for (const sha256 of this.#damaged) if (!seen.has(sha256)) this.#damaged.delete(sha256)
  }

  async #check(file: FileDocument): Promise<void> {
    const { blobs, documents, log } = this.#options
    const { fileId, sha256, size } = file
    const pause = () => this.#pause(this.#pauses.mibMillis)
    const condition = await blobs.check({ sha256, size: Number(size) }, { quick: true, pause })
    await pause()
    if (condition === 'whole') {
      this.#damaged.delete(sha256)
      return
    }
    // The file may have been deleted meanwhile, and its bytes with it.
    const left = await documents.read((transaction) => transaction.get(fileId))
    if (left === null || this.#damaged.has(sha256)) return
    this.#damaged.add(sha256)
    log.error('files.damaged', {
      message: `The bytes of ${fileId} are ${condition}: restore them from a backup.`,
      fileId,
      sha256,
      condition,
    })
  }

  #pause(millis: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, millis)
      timer.unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
