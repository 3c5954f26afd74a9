/** Reads of a document file for the doctor: they change neither the file nor its log. */
import type { Database } from 'bun:sqlite'
import { isFault, reasonText } from '../../errors/fault.ts'
import { digestEquals, sha256 } from '../../system/digests.ts'
import { type DatabaseUse, inspectDatabase, integrityOf } from '../../system/inspected-databases.ts'
import type { FollowedDocuments } from '../followed-documents.ts'
import { verifyVersion } from './databases.ts'
import { followOpenDatabase } from './followed-store.ts'
import { MIGRATIONS } from './migrations.generated.ts'
import { loadFieldShapes, loadState } from './writer-state.ts'

/** The value of the pragma auto_vacuum that returns free pages. */
const INCREMENTAL = 2

export interface SqliteInspection {
  /** `ok`, or the finding; null if the file has more bytes than are checked. */
  readonly integrity: string | null
  readonly schema: {
    readonly version: number
    readonly known: number
    readonly defect: string | null
  }
  readonly journalMode: string
  readonly returnsPages: boolean
}

export interface InspectOptions {
  readonly path: string
  readonly use: DatabaseUse
  readonly integrityBytesMax: number
}

/** Throws SQLiteError where the file cannot be read. */
export function inspectSqliteDocuments(options: InspectOptions): SqliteInspection {
  const { path, use, integrityBytesMax } = options
  return inspectDatabase(path, use, (database) => ({
    integrity: integrityOf(database, integrityBytesMax),
    schema: schemaOf(database),
    journalMode: String(pragma(database, 'journal_mode')),
    returnsPages: pragma(database, 'auto_vacuum') === INCREMENTAL,
  }))
}

/**
 * Runs reads of the stored documents at their newest sequence. The schema must be that of this
 * program. Throws SQLiteError, UNAVAILABLE and PRODUCT_CORRUPT.
 */
export function readSqliteDocuments<T>(
  { path, use }: Pick<InspectOptions, 'path' | 'use'>,
  read: (store: FollowedDocuments) => Promise<T>,
): Promise<T> {
  return inspectDatabase(path, use, async (database) => {
    const { indexes, texts, latestSequence } = loadState(database)
    const shapes = loadFieldShapes(database)
    const schema = { indexes: [...indexes.rows()], shapes, names: texts.names() }
    const store = followOpenDatabase(database, { latestSequence, schema })
    try {
      return await read(store)
    } finally {
      await store.close()
    }
  })
}

function schemaOf(database: Database): SqliteInspection['schema'] {
  const version = Number(pragma(database, 'user_version'))
  const known = MIGRATIONS.length
  // A later version may let this one use the file.
  try {
    verifyVersion(database)
  } catch (error) {
    if (!isFault(error)) return { version, known, defect: 'a migration is not recorded' }
    return { version, known, defect: reasonText(error) }
  }
  const changed = MIGRATIONS.slice(0, version).find(({ version: applied, sql }) => {
    const row = database
      .query<{ checksum: Uint8Array }, [number]>(
        'select checksum from migrations where version = ?1',
      )
      .get(applied)
    return row === null || !digestEquals(row.checksum, sha256(sql))
  })
  const defect =
    changed === undefined
      ? null
      : `documents.db has schema version ${changed.version} with another definition`
  return { version, known, defect }
}

function pragma(
  database: Database,
  name: 'auto_vacuum' | 'journal_mode' | 'user_version',
): unknown {
  return Object.values(database.query<object, []>(`pragma ${name}`).get() ?? {})[0]
}
