/**
 * The control database of a Product root: one SQLite connection, synchronous, durable at commit.
 * Since no other code runs in between, several reads without an `await` see one state.
 */
import { Database, type SQLQueryBindings } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import { ensureOwnFile, invalidRoot } from '../files.ts'
import { MIGRATIONS } from '../migrations.generated.ts'

export type Parameter = string | number | bigint | Uint8Array | null

/** What stores take to read. */
export interface ControlReader {
  get<Row>(sql: string, ...parameters: Parameter[]): Row | null
  all<Row>(sql: string, ...parameters: Parameter[]): Row[]
}

/** What stores take to write; only `transaction` makes one. */
export interface ControlTx extends ControlReader {
  /** Answers the number of changed rows. */
  run(sql: string, ...parameters: Parameter[]): number
}

export class ControlDatabase {
  readonly #database: Database
  readonly #statements: ControlTx

  private constructor(database: Database) {
    this.#database = database
    this.#statements = {
      get: <Row>(sql: string, ...parameters: Parameter[]) =>
        database.query<Row, SQLQueryBindings[]>(sql).get(...parameters),
      all: <Row>(sql: string, ...parameters: Parameter[]) =>
        database.query<Row, SQLQueryBindings[]>(sql).all(...parameters),
      run: (sql: string, ...parameters: Parameter[]) =>
        database.query<unknown, SQLQueryBindings[]>(sql).run(...parameters).changes,
    }
  }

  /** Opens, or makes, and migrates. Throws SERVER_PRODUCT_ROOT_INVALID or _UNAVAILABLE. */
  static open(path: string, at: bigint): ControlDatabase {
    // Made before SQLite does: its log files take their mode from this file.
    ensureOwnFile(path)
    let database: Database | null = null
    try {
      database = new Database(path, { readwrite: true, create: false, strict: true })
      database.exec('pragma busy_timeout = 2000')
      database.exec('pragma journal_mode = wal')
      database.exec('pragma synchronous = full')
      database.exec('pragma foreign_keys = on')
      database.exec('pragma trusted_schema = off')
      // What was deleted or replaced is overwritten: sealed secrets do not stay in free pages.
      database.exec('pragma secure_delete = on')
      const check = database.query<{ quick_check: string }, []>('pragma quick_check').get()
      if (check?.quick_check !== 'ok') throw invalidRoot('control.db fails its integrity check')
      const control = new ControlDatabase(database)
      control.#migrate(at)
      return control
    } catch (cause) {
      database?.close()
      const refused = isFault(cause, 'PRODUCT_UNAVAILABLE') ? cause.cause : cause
      throw isFault(refused) ? refused : invalidRoot('control.db cannot be opened', refused)
    }
  }

  /** Reads of one state. Throws PRODUCT_UNAVAILABLE or PRODUCT_CORRUPT. */
  read<T>(work: (reader: ControlReader) => T): T {
    try {
      return work(this.#statements)
    } catch (cause) {
      throw storageFault(cause)
    }
  }

  /**
   * Runs `work` and commits, durably, or leaves nothing. Throws what `work` throws, or
   * PRODUCT_UNAVAILABLE or PRODUCT_CORRUPT.
   */
  transaction<T>(work: (tx: ControlTx) => T): T {
    try {
      this.#database.exec('begin immediate')
      const result = work(this.#statements)
      assert(!(result instanceof Promise), 'a control transaction is synchronous')
      this.#database.exec('commit')
      return result
    } catch (cause) {
      if (this.#database.inTransaction) this.#database.exec('rollback')
      throw storageFault(cause)
    }
  }

  close(): void {
    this.#database.close()
  }

  #migrate(at: bigint): void {
    this.transaction((tx) => {
      tx.run(
        `create table if not exists control_migrations (
           version integer primary key,
           name text not null,
           checksum text not null,
           applied_at integer not null
         ) strict`,
      )
      const recorded = tx.all<{ version: number; checksum: string }>(
        'select version, checksum from control_migrations order by version',
      )
      recorded.forEach(({ version, checksum }, i) => {
        const known = MIGRATIONS[i]
        if (known?.version !== version || sha256Hex(known.sql) !== checksum) {
          throw invalidRoot(`control.db has an unknown schema version ${version}`)
        }
      })
      for (const { version, name, sql } of MIGRATIONS.slice(recorded.length)) {
        this.#database.exec(sql)
        tx.run(
          `insert into control_migrations (version, name, checksum, applied_at)
           values (?, ?, ?, ?)`,
          version,
          name,
          sha256Hex(sql),
          at,
        )
      }
    })
  }
}

/** The only place that knows SQLite's result codes. */
function storageFault(cause: unknown): unknown {
  const code = (cause as { code?: unknown }).code
  if (cause instanceof Fault || typeof code !== 'string' || !code.startsWith('SQLITE_')) {
    return cause
  }
  if (/^SQLITE_(CORRUPT|NOTADB|FORMAT)/.test(code)) {
    return new Fault('PRODUCT_CORRUPT', { cause, detail: `control.db: ${code}` })
  }
  if (/^SQLITE_(FULL|IOERR|READONLY|BUSY|LOCKED|CANTOPEN|NOMEM|PROTOCOL)/.test(code)) {
    return new Fault('PRODUCT_UNAVAILABLE', { cause, detail: `control.db: ${code}` })
  }
  return cause
}
