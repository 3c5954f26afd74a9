/**
 * Makes a backup of a running server. Documents are read at one snapshot; the control database,
 * which refers to no document, is read after it, and the identity database at a snapshot of its
 * own. Bytes are in the target before the segment that names them.
 */
import { join } from 'node:path'
import type { Database } from '../../database/database.ts'
import { readIdentityRows } from '../../database/identity/all-rows.ts'
import type { DocumentStore, ScanPage } from '../../documents/store.ts'
import type { SnapshotHold } from '../../engine/commits/snapshot-holds.ts'
import { assert } from '../../errors/assert.ts'
import type { BlobStore } from '../../storage/blobs/blobs.ts'
import { type ControlRow, prepareCopy, readCopy, removeCopy } from '../../storage/control/copies.ts'
import { readOwnFile } from '../../storage/files.ts'
import { CONTROL_COPY_FILE, type ProductRoot } from '../../storage/root.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { System } from '../../system/system.ts'
import { FILE_DOCUMENTS, PART_DOCUMENTS } from '../../value/files/files.ts'
import type { BackupId, HistoryId } from '../../value/ids.ts'
import { DESCRIPTOR_FILE, KEYRING_FILE, ROOT_FILE_BYTES_MAX } from '../../value/product-root.ts'
import { decodeStored } from '../../value/stored.ts'
import { type Bytes, Sealer } from '../format/age-files.ts'
import { BackupWriter, type WrittenBackup } from '../format/backup-writer.ts'
import { ChainWriter } from '../format/chain-writer.ts'
import type { BackupTarget } from '../targets/targets.ts'
import {
  controlRecord,
  documentRecord,
  indexRecord,
  operationRecord,
  shapeRecord,
} from './base-records.ts'
import { artifactSha256, StoredBytes } from './stored-bytes.ts'
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
}

export interface BaseOptions {
  readonly server: BackedUpServer
  readonly target: BackupTarget
  /** Recipients of age. */
  readonly recipients: readonly string[]
  readonly historyId: HistoryId
  /** Its ID; by default a new one. */
  readonly backupId?: BackupId | undefined
  /** Ends the backup with UNAVAILABLE. */
  readonly signal?: AbortSignal | undefined
}

export interface BaseResult extends WrittenBackup {
  /** SHA-256 of files and artifacts whose bytes were missing or damaged, 100 at most. */
  readonly damaged: readonly string[]
}

/** Documents of one page, and about the UTF-16 units of their texts. */
const PAGE_ROWS = 32
const PAGE_TEXT_UNITS = 128 * 1024
const DAMAGED_MAX = 100
/** System tables whose documents name stored bytes. */
const TABLES_WITH_BYTES: readonly string[] = [FILE_DOCUMENTS, PART_DOCUMENTS]

/** Only one backup of a root runs at a time. Raises UNAVAILABLE. */
export async function makeBase(options: BaseOptions): Promise<BaseResult> {
  const { server, target, historyId } = options
  const address = { environmentId: server.root.descriptor.environmentId, historyId }
  const sealer = new Sealer(options.recipients)
  const chain = await ChainWriter.open({ target, sealer, address })
  const releaseFiles = server.holdFiles()
  const hold = server.holdSnapshot()
  try {
    const throttle = new Throttle(server.system, options.signal)
    const { keyring } = server.root
    const writer = new BackupWriter({
      chain,
      backupId: options.backupId ?? server.system.ids.make('bkp'),
      sequence: hold.sequence,
      atMicros: server.system.nowMicros(),
    })
    const key = keyring.derive(keyring.activeId, 'backup-blob-name')
    const { recipients } = options
    const bytes = new StoredBytes({ target, sealer, recipients, address, key, throttle })
    const base = new Base({ server, writer, bytes, throttle, snapshot: hold.sequence })
    await base.write()
    return { ...(await writer.finish()), damaged: base.damaged }
  } finally {
    hold.release()
    releaseFiles()
  }
}

interface BaseParts {
  readonly server: BackedUpServer
  readonly writer: BackupWriter
  readonly bytes: StoredBytes
  readonly throttle: Throttle
  readonly snapshot: number
}

class Base {
  readonly damaged: string[] = []
  readonly #parts: BaseParts

  constructor(parts: BaseParts) {
    this.#parts = parts
  }

  async write(): Promise<void> {
    await this.#writeSchema()
    await this.#writeDocuments()
    await this.#writeOperations()
    await this.#writeControl()
    await this.#writeIdentity()
  }

  async #writeSchema(): Promise<void> {
    const { server, writer } = this.#parts
    const { shapes, indexes } = server.store.schema()
    for (const [table, shape] of [...shapes].sort(([a], [b]) => (a < b ? -1 : 1))) {
      await writer.add(shapeRecord(table, shape))
    }
    for (const index of indexes) {
      if (index.state !== 'dropped') await writer.add(indexRecord(index))
    }
  }

  async #writeDocuments(): Promise<void> {
    const { server, writer } = this.#parts
    const scan = (after: string) => server.store.versions({ ...this.#page(after), above: 0 })
    for await (const version of this.#scanned(scan)) {
      const table = version.id.slice(0, version.id.lastIndexOf('_'))
      if (TABLES_WITH_BYTES.includes(table)) await this.#writeFile(version.text!)
      await writer.add(documentRecord(version))
    }
  }

  async #writeFile(text: string): Promise<void> {
    const fields = decodeStored(text)
    assert(fields instanceof Map, 'a document has fields')
    const [sha256, size] = [fields.get('sha256'), fields.get('size')]
    assert(typeof sha256 === 'string' && typeof size === 'bigint', 'a file has a digest and a size')
    const content = { sha256, size: Number(size) }
    const slice = { start: 0, end: content.size }
    const { server, bytes, writer } = this.#parts
    const name = await bytes.store({ ...content, open: () => server.blobs.open(content, slice) })
    if (name === null) this.#noteDamaged(sha256)
    else await writer.add({ t: 'blob', sha256, bytes: content.size, name })
  }

  async #writeOperations(): Promise<void> {
    const { server, writer } = this.#parts
    const scan = (after: string) => server.store.operations(this.#page(after))
    for await (const record of this.#scanned(scan)) await writer.add(operationRecord(record))
  }

  /** Copies the database first: other transactions run between two of its rows. */
  async #writeControl(): Promise<void> {
    const { server, writer, throttle } = this.#parts
    const { path, control } = server.root
    const copy = join(path, CONTROL_COPY_FILE)
    prepareCopy(copy)
    try {
      await throttle.step(() => control.copyInto(copy))
      const text = (name: string, access: 'shared' | 'private') =>
        Buffer.from(readOwnFile(join(path, name), ROOT_FILE_BYTES_MAX, access)).toString()
      const descriptor = text(DESCRIPTOR_FILE, 'shared')
      await writer.add({ t: 'environment', descriptor, keyring: text(KEYRING_FILE, 'private') })
      for (const row of readCopy(copy)) {
        if (row.table === 'releases' && row.row.state !== 'retired') await this.#writeRelease(row)
        await writer.add(controlRecord(row))
      }
    } finally {
      removeCopy(copy)
    }
  }

  /** Writes the bytes that a Release refers to. */
  async #writeRelease({ row }: ControlRow): Promise<void> {
    const { server, bytes, writer } = this.#parts
    for (const kind of ['manifest', 'artifact']) {
      const [digest, size] = [row[`${kind}_digest`], row[`${kind}_bytes`]]
      assert(typeof digest === 'string' && typeof size === 'bigint', 'a Release has its artifacts')
      const sha256 = artifactSha256(digest)
      const name = await bytes.store({
        sha256,
        size: Number(size),
        open: async () => (await server.root.artifacts.get(digest, Number(size))) as Bytes,
      })
      if (name === null) this.#noteDamaged(sha256)
      else await writer.add({ t: 'artifact', sha256, bytes: Number(size), name })
    }
  }

  async #writeIdentity(): Promise<void> {
    const { server, writer } = this.#parts
    for await (const { table, row } of readIdentityRows(server.identity)) {
      await writer.add({ t: 'identity', table, row })
    }
  }

  #noteDamaged(sha256: string): void {
    if (this.damaged.length < DAMAGED_MAX) this.damaged.push(sha256)
  }

  #page(after: string) {
    const { snapshot } = this.#parts
    return { after, snapshot, rowsMax: PAGE_ROWS, textUnitsMax: PAGE_TEXT_UNITS }
  }

  /** Yields the rows of all pages. A step ends when the caller has handled its rows. */
  async *#scanned<T>(scan: (after: string) => MaybePromise<ScanPage<T>>): AsyncGenerator<T> {
    for (let after: string | null = ''; after !== null; ) {
      const from: string = after
      const end = this.#parts.throttle.begin()
      const page: ScanPage<T> = await scan(from)
      yield* page.rows
      after = page.after
      await end()
    }
  }
}
