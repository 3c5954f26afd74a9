/**
 * Makes a backup of a running server. Documents are read at one snapshot; the control database,
 * which refers to no document, is read after it, and the identity database at a snapshot of its
 * own. Bytes are in the target before the segment that names them.
 */
import { join } from 'node:path'
import type { Database } from '../../database/database.ts'
import { readIdentityRows } from '../../database/identity/all-rows.ts'
import type { DocumentStore } from '../../documents/store.ts'
import type { SnapshotHold } from '../../engine/commits/snapshot-holds.ts'
import type { BlobStore } from '../../storage/blobs/blobs.ts'
import { prepareCopy, readCopy, removeCopy } from '../../storage/control/copies.ts'
import { readOwnFile } from '../../storage/files.ts'
import { CONTROL_COPY_FILE, type ProductRoot } from '../../storage/root.ts'
import type { System } from '../../system/system.ts'
import type { BackupId, HistoryId } from '../../value/ids.ts'
import { DESCRIPTOR_FILE, KEYRING_FILE, ROOT_FILE_BYTES_MAX } from '../../value/product-root.ts'
import type { BackupRecord } from '../../wire/files/backups.ts'
import { Sealer } from '../format/age-files.ts'
import { BackupWriter, type WrittenBackup } from '../format/backup-writer.ts'
import { ChainWriter, type ChainWriterOptions } from '../format/chain-writer.ts'
import type { BackupTarget } from '../targets/targets.ts'
import {
  artifactsOfRow,
  type BackedUpPeppers,
  bytesOfDocument,
  controlRecord,
  documentRecord,
  operationRecord,
  pepperFields,
  schemaRecords,
} from './base-records.ts'
import { inSteps, SCAN_PAGE, scannedRows } from './rows-in-steps.ts'
import {
  type BlobLocks,
  type BytesToStore,
  StoredBytes,
  storedArtifact,
  storedFile,
} from './stored-bytes.ts'
import { Throttle } from './throttle.ts'

/** The parts of a running server that a backup reads. */
export interface BackedUpServer {
  readonly system: System
  readonly store: Pick<DocumentStore, 'versions' | 'operations' | 'schema'>
  /** Keeps what the newest durable snapshot sees. */
  holdSnapshot(): SnapshotHold
  /** Keeps the bytes of files that are deleted from now on. The caller calls what it returns. */
  holdFiles(): () => void
  readonly root: Pick<ProductRoot, 'path' | 'descriptor' | 'keyring' | 'control' | 'artifacts'>
  readonly blobs: Pick<BlobStore, 'open'>
  readonly identity: Database
  /** Null or absent leaves them out. */
  readonly peppers?: BackedUpPeppers | null
}

export interface BaseOptions {
  readonly server: BackedUpServer
  readonly target: BackupTarget
  /** Recipients of age. */
  readonly recipients: readonly string[]
  readonly historyId: HistoryId
  /** Its ID; by default a new one. */
  readonly backupId?: BackupId | undefined
  /** The chain to continue, if others write to it meanwhile. */
  readonly chain?: ChainWriter
  /** Runs a step while no increment is read or written. */
  readonly exclusive?: <T>(step: () => Promise<T>) => Promise<T>
  /** Called with the snapshot of the documents when it is taken. */
  readonly onSnapshot?: (sequence: number) => void
  /** `StoredBytesOptions.onUse`. */
  readonly onUse?: (name: string) => Promise<void>
  /** `StoredBytesOptions.locks`. */
  readonly locks?: BlobLocks
  /** Stops the backup, which reads nothing more of the server and rejects with the reason. */
  readonly signal?: AbortSignal
}

export interface BaseResult extends WrittenBackup {
  /** SHA-256 of files and artifacts whose bytes were missing or damaged, 100 at most. */
  readonly damaged: readonly string[]
}

/** Figures of a base, which the target has in encrypted segments alone. */
export interface BaseFigures {
  readonly documents: number
  /** Bytes that were written to the target while it was made. */
  readonly bytes: number
  /** Number of files and artifacts that were left out. */
  readonly damaged: number
}

export function figuresOf({ counts, damaged }: BaseResult, bytes: number): BaseFigures {
  return { documents: counts.document ?? 0, bytes, damaged: damaged.length }
}

const DAMAGED_MAX = 100

/** Only one backup of a root runs at a time. Raises UNAVAILABLE. */
export async function makeBase(options: BaseOptions): Promise<BaseResult> {
  const { server, exclusive = (step) => step() } = options
  const { target, sealer, address } = chainOptions(options)
  const chain = options.chain ?? (await ChainWriter.open({ target, sealer, address }))
  const bytes = storedBytes(options)
  const throttle = new Throttle(server.system)
  const releaseFiles = server.holdFiles()
  let hold: SnapshotHold | null = null
  try {
    const base = await exclusive(async () => {
      options.signal?.throwIfAborted()
      hold = server.holdSnapshot()
      const snapshot = hold.sequence
      options.onSnapshot?.(snapshot)
      const backupId = options.backupId ?? server.system.ids.make('bkp')
      const atMicros = server.system.nowMicros()
      const writer = new BackupWriter({ chain, backupId, sequence: snapshot, atMicros })
      const { signal } = options
      const base = new Base({ server, writer, bytes, throttle, snapshot, exclusive, signal })
      await base.begin()
      return base
    })
    return await base.write()
  } catch (error) {
    // Parts of a server that closes fail in ways of their own.
    options.signal?.throwIfAborted()
    throw error
  } finally {
    // The assignment in the function is not seen by the compiler.
    ;(hold as SnapshotHold | null)?.release()
    releaseFiles()
  }
}

/** Returns where the segments of a server are written. */
export function chainOptions(options: BaseOptions): ChainWriterOptions {
  const { target, recipients, historyId } = options
  const address = { environmentId: options.server.root.descriptor.environmentId, historyId }
  return { target, sealer: new Sealer(recipients), address }
}

/** Returns the writer of the bytes that a server has. */
export function storedBytes(options: BaseOptions): StoredBytes {
  const { server, recipients, onUse, locks, signal } = options
  const { keyring } = server.root
  const key = keyring.derive(keyring.activeId, 'backup-blob-name')
  const throttle = new Throttle(server.system)
  const chain = chainOptions(options)
  return new StoredBytes({ ...chain, recipients, key, throttle, onUse, locks, signal })
}

interface BaseParts {
  readonly server: BackedUpServer
  readonly writer: BackupWriter
  readonly bytes: StoredBytes
  readonly throttle: Throttle
  readonly snapshot: number
  readonly exclusive: <T>(step: () => Promise<T>) => Promise<T>
  readonly signal: AbortSignal | undefined
}

class Base {
  readonly #parts: BaseParts
  readonly #damaged: string[] = []

  constructor(parts: BaseParts) {
    this.#parts = parts
  }

  /** Writes the first segment. No segment before it has a commit after the snapshot. */
  async begin(): Promise<void> {
    for (const record of schemaRecords(this.#parts.server.store.schema())) await this.#add(record)
    await this.#parts.writer.begin()
  }

  async write(): Promise<BaseResult> {
    await this.#writeDocuments()
    await this.#writeOperations()
    await this.#writeControl()
    await this.#writeIdentity()
    return { ...(await this.#parts.writer.finish()), damaged: this.#damaged }
  }

  async #writeDocuments(): Promise<void> {
    const { server, snapshot } = this.#parts
    const scan = (after: string) => server.store.versions({ ...SCAN_PAGE, after, snapshot })
    for await (const version of scannedRows(this.#parts, scan)) {
      const content = bytesOfDocument(version.id, version.text)
      if (content !== null) await this.#writeBytes('blob', storedFile(server.blobs, content))
      await this.#add(documentRecord(version))
    }
  }

  async #writeBytes(t: 'blob' | 'artifact', content: BytesToStore): Promise<void> {
    this.#requireRunning()
    const name = await this.#parts.bytes.store(content)
    const { sha256, size } = content
    if (name !== null) await this.#add({ t, sha256, bytes: size, name })
    else if (this.#damaged.length < DAMAGED_MAX) this.#damaged.push(sha256)
  }

  async #writeOperations(): Promise<void> {
    const { server, snapshot } = this.#parts
    const scan = (after: string) => server.store.operations({ ...SCAN_PAGE, after, snapshot })
    for await (const record of scannedRows(this.#parts, scan))
      await this.#add(operationRecord(record))
  }

  /** Copies the database first: other transactions run between two of its rows. */
  async #writeControl(): Promise<void> {
    const { server, writer, throttle, exclusive } = this.#parts
    const { path, control, artifacts } = server.root
    const copy = join(path, CONTROL_COPY_FILE)
    prepareCopy(copy)
    try {
      const text = (name: string, access: 'shared' | 'private') =>
        Buffer.from(readOwnFile(join(path, name), ROOT_FILE_BYTES_MAX, access)).toString()
      const descriptor = text(DESCRIPTOR_FILE, 'shared')
      const keyring = text(KEYRING_FILE, 'private')
      const peppers = server.peppers ? pepperFields(server.peppers) : {}
      // The segment with the record is written before the next increment: its number says which
      // changes the copy has.
      await exclusive(async () => {
        this.#requireRunning()
        await throttle.step(() => control.copyInto(copy))
        await this.#add({ t: 'environment', descriptor, keyring, ...peppers })
        await writer.split()
      })
      this.#requireRunning()
      for await (const row of inSteps(this.#parts, readCopy(copy))) {
        const record = controlRecord(row)
        for (const content of artifactsOfRow(record.table, record.row)) {
          await this.#writeBytes('artifact', storedArtifact(artifacts, content))
        }
        await this.#add(record)
      }
    } finally {
      removeCopy(copy)
    }
  }

  async #writeIdentity(): Promise<void> {
    const { server, writer, exclusive } = this.#parts
    const rows = readIdentityRows(server.identity)
    try {
      // The snapshot of the database is taken with the first row, whose segment is written before
      // the next increment too.
      const hasRows = await exclusive(async () => {
        this.#requireRunning()
        const first = await rows.next()
        if (first.done === true) return false
        await this.#add({ t: 'identity', ...first.value })
        await writer.split()
        return true
      })
      if (!hasRows) return
      for await (const row of inSteps(this.#parts, rows)) await this.#add({ t: 'identity', ...row })
    } finally {
      await rows.return(undefined)
    }
  }

  async #add(record: Exclude<BackupRecord, { t: 'end' }>): Promise<void> {
    this.#requireRunning()
    await this.#parts.writer.add(record)
  }

  /** Call it before each access to the server: its parts are closed after the signal. */
  #requireRunning(): void {
    this.#parts.signal?.throwIfAborted()
  }
}
