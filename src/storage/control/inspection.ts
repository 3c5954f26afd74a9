/** Reads of a control database for the doctor: they change neither the file nor its log. */
import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { isFault, reasonText } from '../../errors/fault.ts'
import { type DatabaseUse, inspectDatabase, integrityOf } from '../../system/inspected-databases.ts'
import { MIGRATIONS } from '../migrations.generated.ts'
import { type ControlReader, type Parameter, verifyMigrations } from './database.ts'

export interface ControlInspection {
  /** `ok`, or the finding; null if the file has more bytes than are checked. */
  readonly integrity: string | null
  /** Rows that refer to missing rows. */
  readonly foreignKeyBreaks: number
  readonly schema: {
    /** Null if it is not one of this program's versions. */
    readonly version: number | null
    readonly known: number
    readonly defect: string | null
  }
}

/**
 * Runs `read` if the schema is that of this program. Throws SQLiteError where the file cannot be
 * read, and what `read` throws.
 */
export function inspectControl<T>(
  {
    path,
    use,
    integrityBytesMax,
  }: { readonly path: string; readonly use: DatabaseUse; readonly integrityBytesMax: number },
  read: (reader: ControlReader) => T,
): { readonly found: ControlInspection; readonly content: T | null } {
  return inspectDatabase(path, use, (database) => {
    const reader = readerOf(database)
    const integrity = integrityOf(database, integrityBytesMax)
    const breaks =
      integrity === 'ok' ? reader.all('select 1 from pragma_foreign_key_check limit 100').length : 0
    const schema = schemaOf(reader)
    const isCurrent = schema.defect === null && schema.version === schema.known
    const content = isCurrent ? read(reader) : null
    return { found: { integrity, foreignKeyBreaks: breaks, schema }, content }
  })
}

function readerOf(database: Database): ControlReader {
  return {
    get: <Row>(sql: string, ...parameters: Parameter[]) =>
      database.query<Row, SQLQueryBindings[]>(sql).get(...parameters),
    all: <Row>(sql: string, ...parameters: Parameter[]) =>
      database.query<Row, SQLQueryBindings[]>(sql).all(...parameters),
  }
}

function schemaOf(reader: ControlReader): ControlInspection['schema'] {
  const known = MIGRATIONS.length
  const table = reader.get(`select 1 from sqlite_schema where name = 'control_migrations'`)
  if (table === null) return { version: 0, known, defect: null }
  try {
    return { version: verifyMigrations(reader), known, defect: null }
  } catch (error) {
    if (!isFault(error)) throw error
    return { version: null, known, defect: reasonText(error) }
  }
}
