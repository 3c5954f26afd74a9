/** The parts of a server that backups read, without the server; and restores of its backups. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BaseResult, makeBase } from '../../src/backups/base/base-backup.ts'
import type { BackedUpPeppers } from '../../src/backups/base/base-records.ts'
import { makeIdentity, Opener, recipientOf, Sealer } from '../../src/backups/format/age-files.ts'
import { blobPath, type HistoryAddress } from '../../src/backups/format/chain.ts'
import { ChainWriter } from '../../src/backups/format/chain-writer.ts'
import { IncrementLines } from '../../src/backups/format/increment-lines.ts'
import type { Destination } from '../../src/backups/restore/destination.ts'
import { NEWEST } from '../../src/backups/restore/goals.ts'
import {
  type RestoreOptions,
  type RestoreResult,
  restoreBackup,
} from '../../src/backups/restore/restore.ts'
import { DirectoryTarget } from '../../src/backups/targets/directory.ts'
import { Database } from '../../src/database/database.ts'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import type { DocumentStore, DocumentWrite, TransactionWrite } from '../../src/documents/store.ts'
import { SnapshotHolds } from '../../src/engine/commits/snapshot-holds.ts'
import { FileBlobs } from '../../src/storage/blobs/file-blobs.ts'
import { openProductRoot, type ProductRoot } from '../../src/storage/root.ts'
import { sha256Hex } from '../../src/system/digests.ts'
import { realSystem } from '../../src/system/system.ts'
import type { HistoryId } from '../../src/value/ids.ts'
import { Secret } from '../../src/value/secret.ts'
import { encodeStored } from '../../src/value/stored.ts'
import type { BackupRecord, Sidecar } from '../../src/wire/files/backups.ts'
import { freshDatabase, type TestDatabase } from '../databases/postgres.ts'
import { documentId } from '../documents/store-fixtures.ts'
import { openDocuments } from '../documents/stores.ts'
import { IDENTITY_TEMPLATE } from '../identity.ts'
import { ENVIRONMENT_ID, makeRoot } from '../product-roots.ts'

export const HISTORY = 'hst_00000000000000000000000001' as HistoryId
export const ADDRESS: HistoryAddress = { environmentId: ENVIRONMENT_ID, historyId: HISTORY }

export type DocumentsIn = 'sqlite' | 'postgres'

export interface IncrementOptions {
  readonly kind?: 'increment' | 'catchup'
  readonly from: number
  readonly to: number
  readonly atMicros?: bigint
  /** Up to where the bytes of files are named; `to` where absent. */
  readonly files?: number
}

interface Parts {
  readonly directory: string
  readonly store: DocumentStore
  readonly root: ProductRoot
  readonly identity: Database
  readonly blobs: FileBlobs
  readonly target: DirectoryTarget
  readonly secret: string
  readonly databases: TestDatabase[]
}

export async function backedUpServer(documents: DocumentsIn): Promise<BackedUpServer> {
  const directory = mkdtempSync(join(tmpdir(), 'backed-up-'))
  const root = await openProductRoot(makeRoot(), realSystem())
  const databases = [await freshDatabase(IDENTITY_TEMPLATE)]
  const url = new Secret(databases[0]!.url)
  let store: DocumentStore
  if (documents === 'sqlite') store = await openSqliteDocuments(join(directory, 'documents.db'))
  else {
    const database = await freshDatabase()
    databases.push(database)
    store = await openDocuments(database.url, { environmentId: ENVIRONMENT_ID })
  }
  const path = join(directory, 'target')
  mkdirSync(path)
  return new BackedUpServer({
    directory,
    store,
    root,
    identity: new Database({ url }),
    blobs: await FileBlobs.open({ directory: join(root.path, 'files'), freeFloorBytes: 0 }),
    target: new DirectoryTarget(path),
    secret: await makeIdentity(),
    databases,
  })
}

export class BackedUpServer {
  readonly parts: Parts
  readonly #holds = new SnapshotHolds(realSystem())

  constructor(parts: Parts) {
    this.parts = parts
  }

  async dispose(): Promise<void> {
    const { store, root, identity, databases, directory } = this.parts
    await store.close()
    await identity.close()
    root.close()
    for (const database of databases) await database.drop()
    rmSync(root.path, { recursive: true })
    rmSync(directory, { recursive: true })
  }

  get source() {
    return { target: this.parts.target, opener: new Opener([this.parts.secret]) }
  }

  commit(sequence: number, ...writes: DocumentWrite[]): Promise<void> {
    return this.commitAll([{ sequence, atMicros: BigInt(sequence), writes }])
  }

  commitAll(transactions: readonly TransactionWrite[]): Promise<void> {
    return this.parts.store.commit({ transactions })
  }

  /** Stores the bytes of a file. Returns the text of its document. */
  async storeFile(bytes: Uint8Array): Promise<string> {
    const staged = await this.parts.blobs.stage(0)
    await staged.write(bytes)
    const { sha256, size } = await staged.finish()
    await staged.commit()
    const fields = new Map<string, string | bigint>([
      ['sha256', sha256],
      ['size', BigInt(size)],
    ])
    return encodeStored(fields)
  }

  /** Stores encrypted bytes in the target. Returns the record that names them. */
  async storeBlob(bytes: Uint8Array): Promise<BackupRecord> {
    const sha256 = sha256Hex(bytes)
    const name = sha256Hex(sha256)
    const sealer = new Sealer([await recipientOf(this.parts.secret)])
    await this.parts.target.write(blobPath(ADDRESS, name), sealer.seal([bytes]))
    return { t: 'blob', sha256, bytes: bytes.length, name }
  }

  async base(peppers: BackedUpPeppers | null = null): Promise<BaseResult> {
    const { store, root, blobs, identity, target, secret } = this.parts
    const server = {
      system: realSystem(),
      store,
      holdSnapshot: () => this.#holds.hold(store.latestSequence),
      holdFiles: () => () => undefined,
      root,
      blobs,
      identity,
      peppers,
    }
    const recipients = [await recipientOf(secret)]
    return makeBase({ server, target, recipients, historyId: HISTORY })
  }

  /** Appends a segment with these records to the history. */
  async increment(options: IncrementOptions, records: readonly BackupRecord[]): Promise<Sidecar> {
    const { kind = 'increment', from, to, atMicros = 1_000n, files = to } = options
    const { target, secret } = this.parts
    const sealer = new Sealer([await recipientOf(secret)])
    const chain = await ChainWriter.open({ target, sealer, address: ADDRESS })
    const lines = new IncrementLines()
    for (const record of records) lines.add(record as Exclude<BackupRecord, { t: 'end' }>)
    return chain.append({
      kind,
      backupId: null,
      first: null,
      fromSequence: from,
      toSequence: to,
      run: { from, to, files },
      atMicros,
      ...lines.finish(),
    })
  }
}

/** A place to restore into, and what a test looks at afterwards. */
export class RestorePlace {
  readonly root: string
  readonly identityDatabase: TestDatabase
  readonly documentsDatabase: TestDatabase | null
  readonly identity: Database
  readonly #directory: string

  private constructor(
    directory: string,
    identityDatabase: TestDatabase,
    documentsDatabase: TestDatabase | null,
  ) {
    this.#directory = directory
    this.root = join(directory, 'root')
    this.identityDatabase = identityDatabase
    this.documentsDatabase = documentsDatabase
    this.identity = new Database({ url: new Secret(identityDatabase.url) })
  }

  get documents(): Secret | null {
    return this.documentsDatabase === null ? null : new Secret(this.documentsDatabase.url)
  }

  static async make(documents: DocumentsIn): Promise<RestorePlace> {
    const directory = mkdtempSync(join(tmpdir(), 'restored-'))
    const documentsDatabase = documents === 'sqlite' ? null : await freshDatabase()
    return new RestorePlace(directory, await freshDatabase(), documentsDatabase)
  }

  async dispose(): Promise<void> {
    await this.identity.close()
    await this.identityDatabase.drop()
    await this.documentsDatabase?.drop()
    rmSync(this.#directory, { recursive: true })
  }

  restore(
    server: BackedUpServer,
    options: Partial<Omit<RestoreOptions, 'destination' | 'openBlobs'>> = {},
    destination: Partial<Destination> = {},
  ): Promise<RestoreResult> {
    return restoreBackup({
      source: server.source,
      address: ADDRESS,
      goal: NEWEST,
      revokesCredentials: false,
      restoresPeppers: false,
      ...options,
      destination: {
        root: this.root,
        identity: this.identity,
        documents: this.documents,
        system: realSystem(),
        ...destination,
      },
      openBlobs: () => this.openBlobs(),
    })
  }

  openBlobs(): Promise<FileBlobs> {
    return FileBlobs.open({ directory: join(this.root, 'files'), freeFloorBytes: 0 })
  }

  async openDocuments(): Promise<DocumentStore> {
    const { documentsDatabase } = this
    if (documentsDatabase === null) {
      return openSqliteDocuments(join(this.root, 'documents.db'), { mayBeNew: false })
    }
    return openDocuments(documentsDatabase.url, { environmentId: ENVIRONMENT_ID })
  }
}

export const write = (table: string, number: number, text: string | null): DocumentWrite => ({
  id: documentId(table, number),
  createdAtMicros: BigInt(number),
  text,
  entries: [],
})
