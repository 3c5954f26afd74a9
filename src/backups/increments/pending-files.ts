/**
 * The stored files that documents of increments name, until the target has their bytes. Long ones
 * delay no increment: a later one names them.
 */
import type { BlobStore } from '../../storage/blobs/blobs.ts'
import type { RecordOf } from '../../wire/files/backups.ts'
import type { NamedBytes } from '../base/base-records.ts'
import { type StoredBytes, storedFile } from '../base/stored-bytes.ts'
import type { BlobNames } from './blob-names.ts'

interface PendingFile extends NamedBytes {
  /** The sequence of the document that names it. */
  readonly sequence: number
}

export interface PendingFilesOptions {
  readonly blobs: Pick<BlobStore, 'open'>
  readonly bytes: Pick<StoredBytes, 'store'>
  readonly names: Pick<BlobNames, 'confirm'>
  /** `BackedUpServer.holdFiles`. */
  holdFiles(): () => void
}

/** Files that are stored at the same time: a remote target answers after some milliseconds. */
const FILES_AT_ONCE = 8
/** Bytes of such files. A longer file is stored alone. */
const BYTES_AT_ONCE = 4 * 1024 * 1024

export class PendingFiles {
  readonly #options: PendingFilesOptions
  /** Files in the order of their sequences. */
  #files: PendingFile[] = []
  /** The newest sequence whose files were added. */
  #newest = 0
  #stored: RecordOf<'blob'>[] = []
  #running: Promise<void> | null = null
  #release: (() => void) | null = null
  #isClosed = false

  constructor(options: PendingFilesOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#files.length
  }

  /** The files of documents up to this sequence are stored; infinity if none is pending. */
  get storedUpTo(): number {
    return (this.#files[0]?.sequence ?? Number.POSITIVE_INFINITY) - 1
  }

  get hasStored(): boolean {
    return this.#stored.length > 0
  }

  /** Adds the files that a commit names, unless that was done before. */
  add(sequence: number, contents: readonly NamedBytes[]): void {
    if (sequence <= this.#newest) return
    this.#newest = sequence
    if (contents.length === 0) return
    this.#release ??= this.#options.holdFiles()
    this.#files.push(...contents.map((content) => ({ ...content, sequence })))
  }

  /**
   * Stores the files in their order. Resolves when all of them are stored, or after a time: then
   * storing continues. Rejects with what storing a file raises.
   */
  async store(millisMax: number): Promise<void> {
    if (this.#files.length === 0) return
    this.#running ??= this.#storeAll().finally(() => {
      this.#running = null
    })
    const running = this.#running
    // The next call meets the same failure again.
    running.catch(() => undefined)
    let timer: ReturnType<typeof setTimeout> | undefined
    const time = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, millisMax)
    })
    try {
      await Promise.race([running, time])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Returns the records of the files that were stored, until they are confirmed. */
  records(): readonly RecordOf<'blob'>[] {
    return this.#stored.slice()
  }

  /** Forgets the oldest records, which a segment has. */
  confirm(count: number): void {
    this.#options.names.confirm(this.#stored.splice(0, count).map(({ name }) => name))
  }

  /** Forgets all files: a base has them. */
  clear(): void {
    this.#files = []
    this.confirm(this.#stored.length)
    this.#releaseFiles()
  }

  /** Resolves when nothing is stored any longer. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running?.catch(() => undefined)
    this.clear()
  }

  async #storeAll(): Promise<void> {
    for (;;) {
      const next = this.#next()
      if (next.length === 0 || this.#isClosed) break
      const outcomes = await Promise.allSettled(next.map((file) => this.#store(file)))
      const failure = outcomes.find(({ status }) => status === 'rejected')
      if (failure !== undefined) throw (failure as PromiseRejectedResult).reason
      // They are gone after `clear`.
      if (this.#files[0] === next[0]) this.#files.splice(0, next.length)
    }
    if (this.#files.length === 0) this.#releaseFiles()
  }

  /** Returns the first files, up to the number and the bytes that are stored at the same time. */
  #next(): readonly PendingFile[] {
    let bytes = 0
    const end = this.#files.findIndex(({ size }, i) => {
      bytes += size
      return i > 0 && (i >= FILES_AT_ONCE || bytes > BYTES_AT_ONCE)
    })
    return this.#files.slice(0, end === -1 ? undefined : end)
  }

  async #store(file: PendingFile): Promise<void> {
    const { sha256, size } = file
    const name = await this.#options.bytes.store(storedFile(this.#options.blobs, file))
    // Missing or damaged bytes have no record, as in a base.
    if (name !== null) this.#stored.push({ t: 'blob', sha256, bytes: size, name })
  }

  #releaseFiles(): void {
    this.#release?.()
    this.#release = null
  }
}
