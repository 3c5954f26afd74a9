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
 * Opens a read-only connection. Throws UNAVAILABLE where the file cannot be opened and
 * PRODUCT_CORRUPT where it is not a document store that this version can use.
 */
export function openDatabase(
  path: string,
  { mayBeNew, isTemporary = false, isShared = false, memory = DEFAULT_PLAN }: OpenOptions,
): Database {
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
    migrate(database)
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
  const version = pragma(database, 'user_version')
  assert(version <= MIGRATIONS.length, 'the file was written by a newer version')
}

function migrate(database: Database): void {
  const applied = pragma(database, 'user_version')
  for (const { version, name, sql } of MIGRATIONS) {
    const checksum = sha256(sql)
    if (version <= applied) {
      const row = database
        .query<{ checksum: Uint8Array }, [number]>(
          'select checksum from migrations where version = ?1',
        )
        .get(version)
      const isEqual = row !== null && digestEquals(row.checksum, checksum)
      assert(isEqual, `migration ${version} is not the one that was applied`)
      continue
    }
    database.transaction(() => {
      database.run(sql)
      database.run('insert into migrations (version, name, checksum) values (?1, ?2, ?3)', [
        version,
        name,
        checksum,
      ])
      database.run(`pragma user_version = ${version}`)
      database.run(`pragma application_id = ${APPLICATION_ID}`)
    })()
  }
}

function checkSchema(database: Database): void {
  const fresh = new Database(':memory:')
  try {
    for (const { sql } of MIGRATIONS) fresh.run(sql)
    assert(schemaText(database) === schemaText(fresh), 'the schema is not that of its version')
  } finally {
    fresh.close()
  }
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
