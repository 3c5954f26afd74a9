/**
 * Writes what was committed since the last increment: transactions in their order, and the rows of
 * the control database and of the identity database that changed, as they are now.
 */
import type { IdentityChanges } from '../../database/identity/changed-rows.ts'
import type { TransactionWrite } from '../../documents/store.ts'
import type { ControlChanges, TableChanges } from '../../storage/control/changes.ts'
import type { RecordOf } from '../../wire/files/backups.ts'
import type { BackedUpServer } from '../base/base-backup.ts'
import {
  artifactsOfRow,
  bytesOfDocument,
  documentRecord,
  type NamedBytes,
  operationRecord,
  schemaRecords,
} from '../base/base-records.ts'
import { type StoredBytes, storedArtifact } from '../base/stored-bytes.ts'
import { Throttle } from '../base/throttle.ts'
import type { ChainWriter } from '../format/chain-writer.ts'
import { IncrementLines } from '../format/increment-lines.ts'
import { SEGMENT_BYTES, SEGMENT_BYTES_MAX } from '../format/segments.ts'
import type { BlobNames } from './blob-names.ts'
import type { CommitBuffer } from './commit-buffer.ts'
import type { PendingFiles } from './pending-files.ts'
import type { Progress } from './progress.ts'
import type { WatchedTarget } from './watched-target.ts'

export interface IncrementWriterOptions {
  readonly server: BackedUpServer
  readonly chain: ChainWriter
  readonly bytes: StoredBytes
  readonly target: Pick<WatchedTarget, 'isReachable'>
  readonly buffer: CommitBuffer
  readonly files: PendingFiles
  readonly names: BlobNames
  readonly control: ControlChanges
  readonly identity: IdentityChanges
  readonly progress: Progress
}

/** Time that a segment waits for the bytes of the files that it names. */
const FILES_MILLIS = 500
/** Files that may be pending. Beyond it a segment waits until some are stored. */
const FILES_MAX = 10_000
const FILES_MILLIS_MAX = 60_000
/** Bytes of texts after which other work gets its time. */
const STEP_BYTES = 128 * 1024
/** The rows of the control database are in one segment: some of them refer to others. */
const CONTROL_BYTES_MAX = SEGMENT_BYTES_MAX / 2

/** The changes of the control database do not fit into a segment: only a base has room for them. */
export class ControlTooLong extends Error {}

export class IncrementWriter {
  readonly #options: IncrementWriterOptions
  readonly #throttle: Throttle
  #lines = new IncrementLines()
  /** Transactions of the buffer that the lines have. */
  #taken = 0
  #isSchemaChanged = false
  #newestMicros: bigint | null = null
  #filesFailure: unknown = null

  constructor(options: IncrementWriterOptions) {
    this.#options = options
    this.#throttle = new Throttle(options.server.system)
  }

  noteSchemaChange(): void {
    this.#isSchemaChanged = true
  }

  /** The time of the newest segment; null before the first one. */
  get newestMicros(): bigint | null {
    return this.#newestMicros
  }

  /** The failure of the last file that was to be stored; null if it is stored. */
  get filesFailure(): unknown {
    return this.#filesFailure
  }

  /** Writes the commits and the changes of the control database. Raises UNAVAILABLE. */
  async writeCommits(
    // They are taken before the rows of control are read: a restored commit has the changes before
    // it.
    transactions: readonly TransactionWrite[] = this.#options.buffer.from(0),
  ): Promise<void> {
    const { control, files } = this.#options
    this.#begin()
    const isSchemaChanged = this.#isSchemaChanged
    this.#isSchemaChanged = false
    try {
      if (isSchemaChanged) this.#addSchema()
      const hasControl = !control.isEmpty
      if (hasControl) await this.#addControl(control.read())
      await this.#addTransactions(transactions)
      if (this.#lines.isEmpty) await this.#storeFiles()
      if (!this.#lines.isEmpty || files.hasStored) await this.#append()
      if (hasControl) control.confirm()
    } catch (error) {
      this.#isSchemaChanged ||= isSchemaChanged
      throw error
    }
  }

  /**
   * Writes the rows of the identity database that changed. Throws QueryFailure where it cannot be
   * read: the rows are written later then.
   */
  async writeIdentity(): Promise<void> {
    const { identity, server } = this.#options
    if (!(await identity.hasChanges())) return
    this.#begin()
    let wholeTable: string | null = null
    for await (const { table, row } of identity.read(server.system.nowMicros())) {
      const isFull = this.#lines.bytes >= SEGMENT_BYTES
      if (isFull && table !== wholeTable) await this.#append()
      if (row === null) {
        wholeTable = table
        this.#lines.add({ t: 'identityTable', table })
      } else {
        this.#lines.add({ t: 'identity', table, row })
      }
    }
    if (!this.#lines.isEmpty) await this.#append()
    identity.confirm()
  }

  #addSchema(): void {
    for (const record of schemaRecords(this.#options.server.store.schema())) {
      this.#lines.add(record)
    }
  }

  async #addControl(tables: readonly TableChanges[]): Promise<void> {
    for (const { table, isWhole, rows, deleted } of tables) {
      if (isWhole) this.#lines.add({ t: 'controlTable', table })
      for (const row of deleted) this.#lines.add({ t: 'controlDelete', table, row })
      for (const row of rows) {
        await this.#addArtifacts(table, row)
        this.#lines.add({ t: 'control', table, row })
      }
      if (this.#lines.bytes > CONTROL_BYTES_MAX) throw new ControlTooLong()
    }
  }

  async #addArtifacts(table: string, row: RecordOf<'control'>['row']): Promise<void> {
    const { server, bytes } = this.#options
    for (const content of artifactsOfRow(table, row)) {
      const name = await bytes.store(storedArtifact(server.root.artifacts, content))
      const { sha256, size } = content
      if (name !== null) this.#lines.add({ t: 'artifact', sha256, bytes: size, name })
    }
  }

  async #addTransactions(transactions: readonly TransactionWrite[]): Promise<void> {
    let step = this.#throttle.begin()
    let stepEnd = this.#lines.bytes + STEP_BYTES
    for (const transaction of transactions) {
      this.#addTransaction(transaction)
      this.#taken += 1
      if (this.#lines.bytes < stepEnd) continue
      await step()
      if (this.#lines.bytes >= SEGMENT_BYTES) await this.#append()
      step = this.#throttle.begin()
      stepEnd = this.#lines.bytes + STEP_BYTES
    }
  }

  #addTransaction({ sequence, atMicros, writes, operation }: TransactionWrite): void {
    const { files, progress } = this.#options
    if (sequence !== null) {
      const contents: NamedBytes[] = []
      this.#lines.add({ t: 'commit', sequence, atMicros: String(atMicros) })
      for (const { id, createdAtMicros, text } of writes) {
        this.#lines.add(documentRecord({ id, createdAtMicros, sequence, text }))
        const content = bytesOfDocument(id, text)
        if (content !== null) contents.push(content)
      }
      files.add(sequence, contents)
      progress.reach(sequence)
    }
    if (operation !== undefined) this.#lines.add(operationRecord(operation))
  }

  /** Writes the lines as an increment, and begins the next one. */
  async #append(): Promise<void> {
    const { chain, server, buffer, files, names, progress } = this.#options
    await this.#storeFiles()
    const blobs = files.records()
    for (const record of blobs) this.#lines.add(record)
    const { from, to } = progress.range
    const atMicros = server.system.nowMicros()
    const content = this.#lines.finish()
    await chain.append({
      kind: 'increment',
      backupId: null,
      first: null,
      fromSequence: from,
      toSequence: to,
      run: progress.run(files.storedUpTo),
      atMicros,
      ...content,
    })
    files.confirm(blobs.length)
    names.confirm(content.names)
    buffer.drop(this.#taken)
    progress.confirm()
    this.#newestMicros = atMicros
    this.#begin()
  }

  #begin(): void {
    this.#options.progress.restart()
    this.#lines = new IncrementLines()
    this.#taken = 0
  }

  /**
   * A file that cannot be read delays no increment. Where the target does not take it, the
   * increment waits too: otherwise it would be in the target before the bytes of its documents.
   */
  async #storeFiles(): Promise<void> {
    const { files, target } = this.#options
    try {
      await files.store(files.size > FILES_MAX ? FILES_MILLIS_MAX : FILES_MILLIS)
      this.#filesFailure = null
    } catch (error) {
      this.#filesFailure = error
      if (!target.isReachable) throw error
    }
  }
}
