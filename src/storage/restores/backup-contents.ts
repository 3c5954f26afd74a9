/**
 * The parts of a backup that a restore keeps before it writes anything: rows of tables, digests of
 * changed documents, names of stored bytes, and the documents that need them. A private temporary
 * database holds them. SQLite removes its file from the directory when it creates it, so a killed
 * process leaves none of it.
 */
import { Database } from 'bun:sqlite'

/** Bytes in the target that a record of the backup names. */
export interface NamedBytes {
  readonly kind: 'blob' | 'artifact'
  readonly sha256: string
  readonly bytes: number
  readonly name: string
}

/** The columns of a row as the backup has them. */
export type TextColumns = Readonly<Record<string, string | null>>

/** A table of the control database, or of the identity database. */
export interface RestoredTable {
  readonly source: 'control' | 'identity'
  readonly table: string
}

export interface RestoredRow extends RestoredTable {
  /** The values of the primary key. */
  readonly key: string
  readonly columns: TextColumns
}

/** A leaf of the Merkle tree of documents. */
export interface ChangedLeaf {
  readonly id: Uint8Array
  /** Null for a document that was deleted. */
  readonly digest: Uint8Array | null
}

const CACHE_KIB = 8 * 1024
const SCHEMA = `
  create table files.table_rows (
    source text not null, name text not null, key text not null, columns text not null,
    primary key (source, name, key)
  ) without rowid;
  create table files.leaves (id blob primary key, digest blob) without rowid;
  create table files.named_bytes (
    kind text not null, name text not null, sha256 text not null, bytes integer not null,
    primary key (kind, name)
  ) without rowid;
  create index files.named_bytes_sha256 on named_bytes (sha256);
  create table files.file_documents (id text primary key, sha256 text not null) without rowid;`

export class BackupContents {
  readonly #database = new Database(':memory:')
  readonly #put
  readonly #delete
  readonly #clear
  readonly #setLeaf
  readonly #addBytes
  readonly #setFile
  readonly #deleteFile

  constructor() {
    const database = this.#database
    database.run("attach '' as files")
    database.run(`pragma files.cache_size = -${CACHE_KIB}`)
    database.run('pragma files.journal_mode = off')
    database.run(SCHEMA)
    // It never ends: nothing is to be durable.
    database.run('begin')
    this.#put = database.query<null, [string, string, string, string]>(
      `insert or replace into files.table_rows (source, name, key, columns)
       values (?1, ?2, ?3, ?4)`,
    )
    this.#delete = database.query<null, [string, string, string]>(
      'delete from files.table_rows where source = ?1 and name = ?2 and key = ?3',
    )
    this.#clear = database.query<null, [string, string]>(
      'delete from files.table_rows where source = ?1 and name = ?2',
    )
    this.#setLeaf = database.query<null, [Uint8Array, Uint8Array | null]>(
      'insert or replace into files.leaves (id, digest) values (?1, ?2)',
    )
    this.#addBytes = database.query<{ kind: string }, [string, string, string, number]>(
      `insert or ignore into files.named_bytes (kind, name, sha256, bytes)
       values (?1, ?2, ?3, ?4) returning kind`,
    )
    this.#setFile = database.query<null, [string, string]>(
      'insert or replace into files.file_documents (id, sha256) values (?1, ?2)',
    )
    this.#deleteFile = database.query<null, [string]>(
      'delete from files.file_documents where id = ?1',
    )
  }

  /** Adds a row, or replaces the one with its key. */
  putRow({ source, table, key, columns }: RestoredRow): void {
    this.#put.run(source, table, key, JSON.stringify(columns))
  }

  deleteRow({ source, table, key }: Omit<RestoredRow, 'columns'>): void {
    this.#delete.run(source, table, key)
  }

  /** Deletes all rows of a table. */
  clearTable({ source, table }: RestoredTable): void {
    this.#clear.run(source, table)
  }

  /** Yields the rows of a table in the order of their keys. */
  *rows(source: RestoredTable['source'], table: string): Generator<TextColumns> {
    const statement = this.#database.query<{ columns: string }, [string, string]>(
      `select columns from files.table_rows
        where source = ?1 and name = ?2 order by key`,
    )
    for (const { columns } of statement.iterate(source, table)) {
      yield JSON.parse(columns) as TextColumns
    }
  }

  /** Returns the names of the tables that have rows. */
  tables(source: RestoredTable['source']): string[] {
    return this.#database
      .query<{ name: string }, [string]>(
        'select distinct name from files.table_rows where source = ?1 order by name',
      )
      .all(source)
      .map(({ name }) => name)
  }

  setLeaf({ id, digest }: ChangedLeaf): void {
    this.#setLeaf.run(id, digest)
  }

  /** Yields the changed documents in the order of the bytes of their IDs. */
  leaves(): IterableIterator<ChangedLeaf> {
    return this.#database
      .query<{ id: Uint8Array; digest: Uint8Array | null }, []>(
        'select id, digest from files.leaves order by id',
      )
      .iterate()
  }

  /** Returns false for bytes that are known already. */
  addBytes({ kind, name, sha256, bytes }: NamedBytes): boolean {
    return this.#addBytes.get(kind, name, sha256, bytes) !== null
  }

  /** Notes the bytes that a document names; null for a document that is deleted. */
  setFileDocument(id: string, sha256: string | null): void {
    if (sha256 === null) this.#deleteFile.run(id)
    else this.#setFile.run(id, sha256)
  }

  /** Returns the number of documents of files, and of parts of files, whose bytes nothing names. */
  countMissingFiles(): number {
    const counted = this.#database
      .query<{ count: number }, []>(
        `select count(*) as count from files.file_documents f where not exists
           (select 1 from files.named_bytes n where n.sha256 = f.sha256 and n.kind = 'blob')`,
      )
      .get()
    return counted?.count ?? 0
  }

  namedBytes(): IterableIterator<NamedBytes> {
    return this.#database
      .query<NamedBytes, []>(
        'select kind, name, sha256, bytes from files.named_bytes order by kind, name',
      )
      .iterate()
  }

  close(): void {
    this.#database.close()
  }
}
