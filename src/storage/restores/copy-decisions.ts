/**
 * The decisions of a copy of a backup about single documents. The IDs are on disk, since a backup
 * may have more of them than the memory of a machine for development holds.
 */
import { Database } from 'bun:sqlite'

/** Memory for pages of the file; more of them are on disk. */
const CACHE_KIB = 4 * 1024

export class CopyDecisions {
  readonly #database: Database

  private constructor(database: Database) {
    this.#database = database
  }

  /** Creates the file, which must not exist. It is of no use after a crash. */
  static create(path: string): CopyDecisions {
    const database = new Database(path, { create: true, readwrite: true })
    database.run('pragma journal_mode = off')
    database.run('pragma synchronous = off')
    database.run(`pragma cache_size = -${CACHE_KIB}`)
    database.run('create table left_out (id text primary key, source text not null) without rowid')
    database.run('create table changed (id text primary key, copied integer) without rowid')
    database.run('begin')
    return new CopyDecisions(database)
  }

  /** Notes that a document of the table does not fit. A later version may. */
  leaveOut(table: string, id: string): void {
    this.#database
      .query<null, [string, string]>('insert or ignore into left_out (id, source) values (?1, ?2)')
      .run(id, table)
  }

  /** Forgets that an earlier version of the document does not fit. */
  readmit(id: string): void {
    this.#database.query<null, [string]>('delete from left_out where id = ?1').run(id)
  }

  /** Notes whether the newest version of a changed document is copied. */
  noteChanged(id: string, isCopied: boolean): void {
    this.#database
      .query<null, [string, number]>('insert or replace into changed (id, copied) values (?1, ?2)')
      .run(id, Number(isCopied))
  }

  /** Returns whether the newest version of a changed document is copied; undefined for others. */
  changed(id: string): boolean | undefined {
    const row = this.#database
      .query<{ copied: number }, [string]>('select copied from changed where id = ?1')
      .get(id)
    return row === null ? undefined : row.copied === 1
  }

  /** Returns the number of documents of each table that do not fit. */
  countLeftOut(): ReadonlyMap<string, number> {
    const rows = this.#database
      .query<{ source: string; count: number }, []>(
        'select source, count(*) as count from left_out group by source',
      )
      .all()
    return new Map(rows.map(({ source, count }) => [source, count]))
  }

  close(): void {
    this.#database.close()
  }
}
