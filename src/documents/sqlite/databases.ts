/**
 * Opens the document file: creates it, migrates its schema and rejects a file of another program or
 * of a newer version. A full check of a large file takes minutes, so only schema, migrations and
 * newest row are checked.
 */
import { Database, SQLiteError } from 'bun:sqlite'
import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { assert } from '../../errors/assert.ts'
import { Fault } from '../../errors/fault.ts'
import { binaryString } from '../../system/binary-strings.ts'
import { digestEquals, sha256 } from '../../system/digests.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
import { openOwnDatabase, openSharedDatabase } from '../../system/own-databases.ts'
import {
  canUse,
  type Migration,
  newerDetail,
  readableFrom,
  recordsReadableFrom,
} from '../../value/databases/migrations.ts'
import { decodeStored } from '../../value/stored.ts'
import { ULID_BYTES } from '../compact-ids.ts'
import { faultOfStoredData } from '../store-faults.ts'
import { MIGRATIONS } from './migrations.generated.ts'
import { configure } from './pragmas.ts'
import { loadFieldShapes, loadState } from './writer-state.ts'

/** "svcd", which marks the document files of this product. */
const APPLICATION_ID = 0x73766364
/** The value of the pragma auto_vacuum. */
const INCREMENTAL = 2

export interface OpenOptions {
  /** False if an empty file is PRODUCT_CORRUPT: it has lost its write-ahead log. */
  readonly mayBeNew: boolean
  /** True if the file is deleted when the process ends, and commits are not synced to the disk. */
  readonly isTemporary?: boolean
  /** True if application processes read the file. */
  readonly isShared?: boolean
  readonly memory?: MemoryPlan | undefined
}

/**
 * Opens a read-only connection. Throws UNAVAILABLE where the file cannot be opened,
 * PRODUCT_CORRUPT where it is not a document store and SERVER_DATABASE_NEWER where this version
 * cannot use it.
 */
export function openDatabase(path: string, options: OpenOptions): Database {
  const { mayBeNew, isTemporary = false, isShared = false, memory = DEFAULT_PLAN } = options
  let database: Database | undefined
  try {
    createFile(path)
    database = openOwnDatabase(path, isShared)
    rejectForeignFile(database, mayBeNew)
    // Possible before the first page is written.
    if (pragma(database, 'user_version') === 0) database.run('pragma auto_vacuum = incremental')
    // The default of 8 MiB holds the inner pages of some million documents and fits into the
    // processor's cache: a read of one document in a million takes 12.5 us with 8 MiB and 15 with
    // 64, and a read of a hot document takes the same time with both.
    const pragmas = { cacheMiB: memory.pageCacheMib, isTemporary }
    configure(database, pragmas)
    database.transaction(applyPending)(database)
    if (pragma(database, 'auto_vacuum') !== INCREMENTAL && writeCopy(database, path)) {
      database = replaceByCopy(database, path)
      configure(database, pragmas)
    }
    checkSchema(database)
    checkRows(database)
    database.run('pragma query_only = on')
    return database
  } catch (error) {
    database?.close()
    throw storeFault(error)
  }
}

/**
 * Opens an existing file in a transaction that has applied the pending migrations, which the caller
 * rolls back. Throws what `openDatabase` throws.
 */
export function openUnmigrated(path: string, { pageCacheMib }: MemoryPlan): Database {
  let database: Database | undefined
  try {
    database = openOwnDatabase(path)
    rejectForeignFile(database, false)
    configure(database, { cacheMiB: pageCacheMib, isTemporary: false })
    database.run('begin immediate')
    applyPending(database)
    return database
  } catch (error) {
    database?.close()
    throw storeFault(error)
  }
}

/**
 * Opens a read-only connection to a file that another process of this server owns. Throws
 * UNAVAILABLE.
 */
export function openFollowedDatabase(path: string, { pageCacheMib }: MemoryPlan): Database {
  let database: Database | undefined
  try {
    database = openSharedDatabase(path)
    configure(database, { cacheMiB: pageCacheMib, isTemporary: false })
    database.run('pragma query_only = on')
    return database
  } catch (error) {
    database?.close()
    throw storeFault(error)
  }
}

/** Classifies the error of a failed read or opening. */
export function storeFault(error: unknown): Fault {
  const known = faultOfStoredData(error)
  if (known !== null) return known
  const code = error instanceof SQLiteError ? (error.code ?? 'SQLITE_ERROR') : 'the file'
  const broken = /^SQLITE_(?:CORRUPT|NOTADB|FORMAT|SCHEMA|MISMATCH|ERROR)/.test(code)
  const detail = `documents: ${code} failed`
  return new Fault(broken ? 'PRODUCT_CORRUPT' : 'UNAVAILABLE', { detail, cause: error })
}

/** Creates the file with mode 0600 under any umask. SQLite gives its other files that mode. */
function createFile(path: string): void {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = constants
  try {
    closeSync(openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw error
  }
  // Without it a power loss may remove the name of the file, and with it every commit.
  sync(dirname(path))
}

function sync(path: string): void {
  const file = openSync(path, constants.O_RDONLY)
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Copies a file of an earlier version, which cannot return free pages, into one that can. Returns
 * false if that fails, as on a disk without room for both: then the next opening tries again.
 */
function writeCopy(database: Database, path: string): boolean {
  const copy = copyOf(path)
  try {
    rmSync(copy, { force: true })
    createFile(copy)
    database.run('pragma auto_vacuum = incremental')
    database.run('vacuum into ?1', [copy])
    sync(copy)
    return true
  } catch {
    rmSync(copy, { force: true })
    return false
  }
}

/** Replaces the file by its copy. Returns a connection to it. */
function replaceByCopy(database: Database, path: string): Database {
  // A write-ahead log that stayed would be replayed into the copy.
  database.run('pragma journal_mode = delete')
  database.close()
  renameSync(copyOf(path), path)
  sync(dirname(path))
  return openOwnDatabase(path)
}

function copyOf(path: string): string {
  return `${path}.copy`
}

function pragma(
  database: Database,
  name: 'application_id' | 'auto_vacuum' | 'user_version',
): number {
  return Number(Object.values(database.query<object, []>(`pragma ${name}`).get() ?? {})[0])
}

function rejectForeignFile(database: Database, mayBeNew: boolean): void {
  const objects = database
    .query<{ count: number }, []>('select count(*) as count from sqlite_schema')
    .get()
  const empty = objects?.count === 0 && pragma(database, 'user_version') === 0
  const id = pragma(database, 'application_id')
  assert(
    id === APPLICATION_ID || (mayBeNew && empty && id === 0),
    'the file is not a document store',
  )
}

/** Returns the schema version. Throws SERVER_DATABASE_NEWER. */
export function verifyVersion(database: Database): number {
  const applied = pragma(database, 'user_version')
  if (applied <= MIGRATIONS.length) return applied
  const unknown = database
    .query<{ version: number; readable_from: number | null }, [number]>(
      'select version, readable_from from migrations where version > ?1',
    )
    .all(MIGRATIONS.length)
    .map(({ version, readable_from }) => ({ version, readableFrom: readable_from }))
  assert(unknown.length === applied - MIGRATIONS.length, 'a migration is not recorded')
  if (canUse(MIGRATIONS.length, unknown)) return applied
  throw new Fault('SERVER_DATABASE_NEWER', { detail: newerDetail('documents.db', unknown) })
}

/** Applies all pending migrations, in a transaction: of a log that was cut, all remain or none. */
function applyPending(database: Database): void {
  const applied = verifyVersion(database)
  for (const { version, sql } of MIGRATIONS.slice(0, applied)) {
    const row = database
      .query<{ checksum: Uint8Array }, [number]>(
        'select checksum from migrations where version = ?1',
      )
      .get(version)
    const isEqual = row !== null && digestEquals(row.checksum, sha256(sql))
    assert(isEqual, `migration ${version} is not the one that was applied`)
  }
  for (const migration of MIGRATIONS.slice(applied)) apply(database, migration)
}

function apply(database: Database, migration: Migration): void {
  const { version, name, sql } = migration
  database.run(sql)
  const record = 'insert into migrations (version, name, checksum) values (?1, ?2, ?3)'
  database.run(record, [version, name, sha256(sql)])
  if (recordsReadableFrom(MIGRATIONS, version)) {
    const note = 'update migrations set readable_from = ?1 where version = ?2'
    database.run(note, [readableFrom([migration]), version])
  }
  database.run(`pragma user_version = ${version}`)
  database.run(`pragma application_id = ${APPLICATION_ID}`)
}

function checkSchema(database: Database): void {
  const fresh = new Database(':memory:')
  try {
    for (const { sql } of MIGRATIONS) fresh.run(sql)
    if (pragma(database, 'user_version') > MIGRATIONS.length) {
      const found = new Set(columnsOf(database))
      const isComplete = columnsOf(fresh).every((column) => found.has(column))
      assert(isComplete, 'the schema of a later version lacks columns of this one')
    } else {
      assert(schemaText(database) === schemaText(fresh), 'the schema is not that of its version')
    }
  } finally {
    fresh.close()
  }
}

/** A later version only adds to the schema while it keeps the file readable for this one. */
function columnsOf(database: Database): string[] {
  return database
    .query<{ name: string }, []>(
      `select s.name || '.' || c.name as name
         from sqlite_schema s join pragma_table_info(s.name) c where s.type = 'table'`,
    )
    .all()
    .map(({ name }) => name)
}

function schemaText(database: Database): string {
  const rows = database
    .query<object, []>('select type, name, tbl_name, sql from sqlite_schema order by type, name')
    .all()
  return JSON.stringify(rows)
}

function checkRows(database: Database): void {
  const { latestSequence, texts } = loadState(database)
  loadFieldShapes(database)
  const newest = database
    .query<{ id: Uint8Array; sequence: number; text: string | null }, []>(
      'select id, sequence, text from documents order by row desc limit 1',
    )
    .get()
  if (newest === null) return
  assert(newest.sequence <= latestSequence, 'a document is newer than the latest sequence')
  if (newest.text === null) return
  const table = binaryString(newest.id, 0, newest.id.length - ULID_BYTES - 1)
  decodeStored(texts.expand(table, newest.text))
}
