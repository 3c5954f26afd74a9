/**
 * The control database of a Product root: one synchronous SQLite connection, durable at commit. No
 * other code runs between synchronous calls, so several reads without an `await` see one state.
 */
import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { open } from 'node:fs/promises'
import { assert } from '../../errors/assert.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import { openOwnDatabase, openSharedDatabase } from '../../system/own-databases.ts'
import {
  canUse,
  newerDetail,
  type RecordedMigration,
  readableFrom,
  recordsReadableFrom,
} from '../../value/databases/migrations.ts'
import { ensureOwnFile, invalidRoot } from '../files.ts'
import { MIGRATIONS } from '../migrations.generated.ts'
import { ControlChanges } from './changes.ts'

export type Parameter = string | number | bigint | Uint8Array | null

/** Statements that read. */
export interface ControlReader {
  get<Row>(sql: string, ...parameters: Parameter[]): Row | null
  all<Row>(sql: string, ...parameters: Parameter[]): Row[]
}

/** Statements that read and write; only `transaction` provides them. */
export interface ControlTx extends ControlReader {
  /** Returns the number of changed rows. */
  run(sql: string, ...parameters: Parameter[]): number
}

export interface ControlOptions {
  /** True if other processes of the server follow the database. */
  readonly isShared?: boolean
  /** The schema version to migrate to; that of this program if absent. */
  readonly version?: number
}

/** The table that records migrations. It precedes them, and they change it. */
export const MIGRATIONS_TABLE = `create table if not exists control_migrations (
  version integer primary key,
  name text not null,
  checksum text not null,
  applied_at integer not null
) strict`

export class ControlDatabase {
  readonly #path: string
  readonly #database: Database
  readonly #statements: ControlTx
  readonly #listeners: (() => void)[] = []
  #changes = 0

  private constructor(path: string, database: Database) {
    this.#path = path
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

  /**
   * Opens the database, which it creates if absent, and migrates it. Throws
   * SERVER_PRODUCT_ROOT_INVALID or SERVER_PRODUCT_ROOT_UNAVAILABLE, and SERVER_DATABASE_NEWER where
   * this version cannot use it. `isShared` lets other processes of the server follow it. A restore
   * of a backup of an older version opens it at a `version`.
   */
  static open(
    path: string,
    nowMicros: bigint,
    { isShared = false, version = MIGRATIONS.length }: ControlOptions = {},
  ): ControlDatabase {
    // Created before SQLite opens it, as SQLite's log files take their mode from this file.
    ensureOwnFile(path)
    let database: Database | null = null
    try {
      database = openOwnDatabase(path, isShared)
      database.exec('pragma busy_timeout = 2000')
      database.exec('pragma journal_mode = wal')
      database.exec('pragma synchronous = full')
      database.exec('pragma foreign_keys = on')
      database.exec('pragma trusted_schema = off')
      // Overwrites deleted and replaced content: sealed secrets do not stay in free pages.
      database.exec('pragma secure_delete = on')
      const check = database.query<{ quick_check: string }, []>('pragma quick_check').get()
      if (check?.quick_check !== 'ok') throw invalidRoot('control.db fails its integrity check')
      const control = new ControlDatabase(path, database)
      control.#migrate(nowMicros, version)
      return control
    } catch (cause) {
      database?.close()
      const reason = isFault(cause, 'PRODUCT_UNAVAILABLE') ? cause.cause : cause
      throw isFault(reason) ? reason : invalidRoot('control.db cannot be opened', reason)
    }
  }

  /**
   * Opens the database for reads in a process that does not own it. Throws
   * SERVER_PRODUCT_ROOT_UNAVAILABLE.
   */
  static follow(path: string): ControlDatabase {
    let database: Database | null = null
    try {
      database = openSharedDatabase(path)
      database.exec('pragma busy_timeout = 2000')
      database.exec('pragma query_only = on')
      database.exec('pragma trusted_schema = off')
      return new ControlDatabase(path, database)
    } catch (cause) {
      database?.close()
      throw invalidRoot('control.db cannot be opened', cause)
    }
  }

  /** Number of transactions that were committed, or followed, since the start. */
  get changes(): number {
    return this.#changes
  }

  /** Notes that another process has committed. */
  followChange(): void {
    this.#changes += 1
  }

  /** Calls `listener` after each commit, before its caller continues. */
  onCommit(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Runs reads, which see one state. Throws PRODUCT_UNAVAILABLE or PRODUCT_CORRUPT. */
  read<T>(query: (reader: ControlReader) => T): T {
    try {
      return query(this.#statements)
    } catch (cause) {
      throw storageFault(cause)
    }
  }

  /**
   * Runs `body` and commits its writes durably, or rolls all of them back. Throws what `body`
   * throws, or PRODUCT_UNAVAILABLE or PRODUCT_CORRUPT.
   */
  transaction<T>(body: (tx: ControlTx) => T): T {
    const result = this.#run(body)
    this.#changes += 1
    for (const listener of this.#listeners) listener()
    return result
  }

  /**
   * Runs `body` as `transaction` does and waits for the disk on another thread. A power failure
   * before the promise resolves may lose the writes, which `changes` does not count. Rejects with
   * what `transaction` throws, and with the error of the disk.
   */
  async writeBehind(body: (tx: ControlTx) => void): Promise<void> {
    this.#database.exec('pragma synchronous = normal')
    try {
      this.#run(body)
    } finally {
      this.#database.exec('pragma synchronous = full')
    }
    const log = await open(`${this.#path}-wal`, 'r')
    try {
      await log.sync()
    } finally {
      await log.close()
    }
  }

  /** Notes the rows that change from now on. Call it once. */
  trackChanges(): ControlChanges {
    return new ControlChanges(this.#database)
  }

  /**
   * Writes a copy, which sees one state, into an empty file. Takes 1 ms for each 500 KiB. Throws
   * PRODUCT_UNAVAILABLE and PRODUCT_CORRUPT.
   */
  copyInto(path: string): void {
    try {
      this.#database.query<unknown, [string]>('vacuum into ?1').run(path)
    } catch (cause) {
      throw storageFault(cause)
    }
  }

  close(): void {
    this.#database.close()
  }

  #run<T>(body: (tx: ControlTx) => T): T {
    try {
      this.#database.exec('begin immediate')
      const result = body(this.#statements)
      assert(!(result instanceof Promise), 'a control transaction is synchronous')
      this.#database.exec('commit')
      return result
    } catch (cause) {
      if (this.#database.inTransaction) this.#database.exec('rollback')
      throw storageFault(cause)
    }
  }

  #migrate(nowMicros: bigint, to: number): void {
    this.transaction((tx) => {
      tx.run(MIGRATIONS_TABLE)
      const found = verifyMigrations(tx)
      for (const migration of MIGRATIONS.slice(found, to)) {
        const { version, name, sql } = migration
        this.#database.exec(sql)
        tx.run(
          `insert into control_migrations (version, name, checksum, applied_at)
           values (?, ?, ?, ?)`,
          version,
          name,
          sha256Hex(sql),
          nowMicros,
        )
        if (!recordsReadableFrom(MIGRATIONS, version)) continue
        const readable = readableFrom([migration])
        tx.run(
          'update control_migrations set readable_from = ? where version = ?',
          readable,
          version,
        )
      }
    })
  }
}

/**
 * Returns the recorded schema version. Throws SERVER_PRODUCT_ROOT_INVALID where the records are not
 * those of this program, and SERVER_DATABASE_NEWER where it cannot live with later ones.
 */
export function verifyMigrations({ all }: Pick<ControlReader, 'all'>): number {
  const recorded = all<{ version: number; checksum: string; readable_from?: number | null }>(
    'select * from control_migrations order by version',
  )
  const unknown: RecordedMigration[] = []
  recorded.forEach(({ version, checksum, readable_from }, i) => {
    const migration = MIGRATIONS[i]
    const isKnown = migration !== undefined && sha256Hex(migration.sql) === checksum
    if (version !== i + 1 || (migration !== undefined && !isKnown)) {
      throw invalidRoot(`control.db has an unknown schema version ${version}`)
    }
    if (!isKnown) unknown.push({ version, readableFrom: readable_from ?? null })
  })
  if (canUse(MIGRATIONS.length, unknown)) return recorded.length
  throw new Fault('SERVER_DATABASE_NEWER', { detail: newerDetail('control.db', unknown) })
}

/** Translates SQLite's result codes to PRODUCT_CORRUPT and PRODUCT_UNAVAILABLE. */
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
