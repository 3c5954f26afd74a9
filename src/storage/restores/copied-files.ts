/** The names under which a backup has the bytes of files, for a copy that reads them on demand. */
import { Database } from 'bun:sqlite'

/** Bytes in the target of a backup. */
export interface CopiedFile {
  /** 64 lowercase hex characters. */
  readonly sha256: string
  readonly bytes: number
  readonly name: string
}

export class CopiedFiles {
  readonly #database: Database

  private constructor(database: Database) {
    this.#database = database
  }

  /** Creates the file, which must not exist. The names are durable once it is closed. */
  static create(path: string): CopiedFiles {
    const database = new Database(path, { create: true, readwrite: true })
    database.run(`create table files (
      sha256 text primary key, bytes integer not null, name text not null
    ) without rowid`)
    database.run('begin')
    return new CopiedFiles(database)
  }

  static open(path: string): CopiedFiles {
    return new CopiedFiles(new Database(path, { readonly: true }))
  }

  add({ sha256, bytes, name }: CopiedFile): void {
    this.#database
      .query<null, [string, number, string]>(
        'insert or ignore into files (sha256, bytes, name) values (?1, ?2, ?3)',
      )
      .run(sha256, bytes, name)
  }

  find(sha256: string): CopiedFile | null {
    return this.#database
      .query<CopiedFile, [string]>('select sha256, bytes, name from files where sha256 = ?1')
      .get(sha256)
  }

  close(): void {
    if (this.#database.inTransaction) this.#database.run('commit')
    this.#database.close()
  }
}
