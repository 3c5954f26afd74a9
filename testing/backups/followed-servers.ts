/** The parts of a running server that a continuous backup follows, with commits by the test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { controlRecord } from '../../src/backups/base/base-records.ts'
import type { FollowedServer } from '../../src/backups/increments/continuous-options.ts'
import { Database } from '../../src/database/database.ts'
import { readIdentityRows } from '../../src/database/identity/all-rows.ts'
import { documentDatabase, removeDocumentSchema } from '../../src/documents/postgres/schema.ts'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import type { DocumentStore, DocumentWrite, TransactionWrite } from '../../src/documents/store.ts'
import { SnapshotHolds } from '../../src/engine/commits/snapshot-holds.ts'
import type { BlobStore } from '../../src/storage/blobs/blobs.ts'
import { FileBlobs } from '../../src/storage/blobs/file-blobs.ts'
import { prepareCopy, readCopy, removeCopy } from '../../src/storage/control/copies.ts'
import { openProductRoot, type ProductRoot } from '../../src/storage/root.ts'
import { realSystem, type System } from '../../src/system/system.ts'
import { Secret } from '../../src/value/secret.ts'
import { encodeStored } from '../../src/value/stored.ts'
import { freshDatabase, type TestDatabase } from '../databases/postgres.ts'
import { documentId } from '../documents/store-fixtures.ts'
import { openDocuments } from '../documents/stores.ts'
import { IDENTITY_TEMPLATE } from '../identity.ts'
import { ENVIRONMENT_ID, makeRoot } from '../product-roots.ts'
import { type Keys, type RowsByTable, rowKey, rowsOf } from './rebuilt-state.ts'

export type StoreKind = 'SQLite' | 'PostgreSQL'
interface Parts {
  readonly system: System
  readonly directory: string
  readonly root: ProductRoot
  readonly blobs: BlobStore
  readonly identity: Database
  readonly identityDatabase: TestDatabase
  /** Null for documents in SQLite. */
  readonly documents: TestDatabase | null
}

export async function followedServer(
  kind: StoreKind,
  system: System = realSystem(),
): Promise<FollowedServerBench> {
  const root = await openProductRoot(makeRoot(), system)
  const identityDatabase = await freshDatabase(IDENTITY_TEMPLATE)
  const parts = {
    system,
    directory: mkdtempSync(join(tmpdir(), 'followed-')),
    root,
    blobs: await FileBlobs.open({ directory: join(root.path, 'files'), freeFloorBytes: 0 }),
    identityDatabase,
    identity: new Database({ url: new Secret(identityDatabase.url) }),
    documents: kind === 'SQLite' ? null : await freshDatabase(),
  }
  return new FollowedServerBench(parts, await openStore(parts), await keysOf(parts))
}

export class FollowedServerBench {
  readonly directory: string
  readonly root: ProductRoot
  readonly identity: Database
  readonly keys: Keys
  store: DocumentStore
  server: FollowedServer
  heldFiles = 0
  #isStoreClosed = false
  readonly #parts: Parts
  readonly #holds: SnapshotHolds
  #listener: ((transactions: readonly TransactionWrite[]) => void) | null = null

  constructor(parts: Parts, store: DocumentStore, keys: Keys) {
    this.directory = parts.directory
    this.root = parts.root
    this.identity = parts.identity
    this.keys = keys
    this.store = store
    this.#parts = parts
    this.#holds = new SnapshotHolds(parts.system)
    this.server = this.#serverOf(store)
  }

  /** Commits a transaction as the committer does. */
  async commit(
    writes: readonly DocumentWrite[],
    operation?: (sequence: number | null) => NonNullable<TransactionWrite['operation']>,
  ): Promise<void> {
    const sequence = writes.length === 0 ? null : this.store.latestSequence + 1
    const record = operation?.(sequence)
    const transaction = {
      sequence,
      atMicros: this.#parts.system.nowMicros(),
      writes,
      ...(record && { operation: record }),
    }
    await this.store.commit({ transactions: [transaction] })
    this.#listener?.([transaction])
  }

  /** Stores the bytes of a file, and returns the text of its document. */
  async stageFile(bytes: Uint8Array): Promise<string> {
    const staged = await this.#parts.blobs.stage(0)
    await staged.write(bytes)
    const { sha256, size } = await staged.finish()
    await staged.commit()
    const fields = new Map<string, string | bigint>([
      ['sha256', sha256],
      ['size', BigInt(size)],
    ])
    return encodeStored(fields)
  }

  controlRows(): RowsByTable {
    const copy = join(this.root.path, 'control.test')
    prepareCopy(copy)
    try {
      this.root.control.copyInto(copy)
      const tables: RowsByTable = new Map()
      for (const each of readCopy(copy)) {
        const { table, row } = controlRecord(each)
        rowsOf(tables, table).set(rowKey(this.keys.control(table), row), JSON.stringify(row))
      }
      return tables
    } finally {
      removeCopy(copy)
    }
  }

  async identityRows(): Promise<RowsByTable> {
    const tables: RowsByTable = new Map()
    for await (const { table, row } of readIdentityRows(this.identity)) {
      rowsOf(tables, table).set(rowKey(this.keys.identity(table), row), JSON.stringify(row))
    }
    return tables
  }

  /** Opens the documents again, as a server that starts. */
  async restart(): Promise<void> {
    await this.store.close()
    this.#listener = null
    this.store = await openStore(this.#parts)
    this.server = this.#serverOf(this.store)
  }

  /** Opens documents that have none of the commits, as after a disk that lost them. */
  async loseDocuments(): Promise<void> {
    await this.store.close()
    const { documents, directory } = this.#parts
    if (documents === null) {
      for (const end of ['', '-wal', '-shm']) {
        rmSync(join(directory, `documents.db${end}`), { force: true })
      }
    } else {
      const url = new Secret(documents.url)
      const database = documentDatabase({ url, connectionsMax: 1, onIdleLoss: () => undefined })
      await removeDocumentSchema(database)
      await database.close()
    }
    this.#listener = null
    this.store = await openStore(this.#parts)
    this.server = this.#serverOf(this.store)
  }

  /** Closes the documents before the rest, as a server that stops does. */
  async closeStore(): Promise<void> {
    if (this.#isStoreClosed) return
    this.#isStoreClosed = true
    await this.store.close()
  }

  async close(): Promise<void> {
    const { documents, identityDatabase } = this.#parts
    await this.closeStore()
    await documents?.drop()
    await this.identity.close()
    await identityDatabase.drop()
    this.root.close()
    rmSync(this.root.path, { recursive: true })
    rmSync(this.directory, { recursive: true })
  }

  #serverOf(store: DocumentStore): FollowedServer {
    const { system, root, blobs, identity } = this.#parts
    return {
      system,
      store,
      holdSnapshot: () => this.#holds.hold(store.latestSequence),
      holdFiles: () => {
        this.heldFiles += 1
        return () => {
          this.heldFiles -= 1
        }
      },
      root,
      blobs,
      identity,
      commits: {
        follow: (follower) => {
          this.#listener = follower
          const stop = () => {
            this.#listener = null
          }
          return { from: store.latestSequence, stop }
        },
      },
    }
  }
}

function openStore({ documents, directory }: Parts): Promise<DocumentStore> {
  if (documents === null) return openSqliteDocuments(join(directory, 'documents.db'))
  return openDocuments(documents.url, { environmentId: ENVIRONMENT_ID })
}

/** Reads the primary keys of all tables. */
async function keysOf({ root, identity }: Parts): Promise<Keys> {
  const rows = await identity.rows(
    `select c.conrelid::regclass::text as name,
            (select json_agg(a.attname order by k.at)
               from unnest(c.conkey) with ordinality k (number, at)
               join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.number) as key
       from pg_constraint c where c.contype = 'p'`,
    [],
  )
  const identityKeys = new Map(rows.map(({ name, key }) => [name, key as readonly string[]]))
  const sql = 'select name from pragma_table_info(?1) where pk > 0 order by pk'
  return {
    control: (table) =>
      root.control
        .read((reader) => reader.all<{ name: string }>(sql, table))
        .map((row) => row.name),
    identity: (table) => identityKeys.get(table)!,
  }
}

export const write = (table: string, number: number, text: string | null): DocumentWrite => ({
  id: documentId(table, number),
  createdAtMicros: BigInt(number),
  text,
  entries: [],
})
