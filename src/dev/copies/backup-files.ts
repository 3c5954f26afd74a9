/** Reads the bytes of files from the backup that the documents of a root are a copy of. */
import { join } from 'node:path'
import { type BackupSource, readBlob } from '../../backups/format/backup-reader.ts'
import { Fault, isFault, reasonText } from '../../errors/fault.ts'
import { openIdentities, openTarget } from '../../server/restore/sources.ts'
import type { ProcessEnvironment } from '../../settings/sources.ts'
import type { Content } from '../../storage/blobs/blobs.ts'
import type { BlobOrigin } from '../../storage/blobs/on-demand-blobs.ts'
import { CopiedFiles } from '../../storage/restores/copied-files.ts'
import { COPY_FILES_FILE } from '../../storage/root.ts'
import type { CopyRecord } from './copy-record.ts'

export interface BackupFilesOptions {
  readonly rootPath: string
  readonly record: CopyRecord
  /** The variables by which a backup in an S3-compatible store is read. */
  readonly variables: ProcessEnvironment
  /** Called with each failure, since a reader of a file gets no more than its code. */
  readonly onFailure: (message: string) => void
}

export class BackupFiles implements BlobOrigin {
  readonly #options: BackupFilesOptions
  readonly #names: CopiedFiles
  #source: Promise<BackupSource> | null = null

  constructor(options: BackupFilesOptions) {
    this.#options = options
    this.#names = CopiedFiles.open(join(options.rootPath, COPY_FILES_FILE))
  }

  has({ sha256, size }: Content): boolean {
    return this.#names.find(sha256)?.bytes === size
  }

  async *read({ sha256 }: Content): AsyncGenerator<Uint8Array> {
    const { record } = this.#options
    const named = this.#names.find(sha256)
    if (named === null) throw new Fault('PRODUCT_CORRUPT', { detail: `no file ${sha256}` })
    try {
      yield* readBlob(await this.#open(), record, { t: 'blob', ...named })
    } catch (error) {
      throw this.#reported(error)
    }
  }

  close(): void {
    this.#names.close()
  }

  /** Opens the backup with the first file that is read, and again after a failure. */
  #open(): Promise<BackupSource> {
    this.#source ??= this.#openSource().catch((error: unknown) => {
      this.#source = null
      throw error
    })
    return this.#source
  }

  async #openSource(): Promise<BackupSource> {
    const { record, variables } = this.#options
    const target = await openTarget(record.from, variables)
    return { target, opener: openIdentities(record.identities) }
  }

  /** Returns what readers of files know how to report. */
  #reported(error: unknown): unknown {
    if (!isFault(error)) return error
    const { record, onFailure } = this.#options
    const reason = reasonText(error) ?? error.message
    const detail = `the bytes of a file could not be read from the backup ${record.from}: ${reason}`
    onFailure(detail)
    const code = error.code === 'BACKUP_CORRUPT' ? 'PRODUCT_CORRUPT' : 'UNAVAILABLE'
    return new Fault(code, { detail, cause: error })
  }
}
