/**
 * Migrates the hot store of log records. It records migrations by `user_version`, and since the
 * third one also which versions can use the file.
 */
import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { openOwnDatabase } from '../../system/own-databases.ts'
import {
  canUse,
  newerDetail,
  readableFrom,
  recordsReadableFrom,
} from '../../value/databases/migrations.ts'
import { MIGRATIONS } from './migrations.generated.ts'

/** The reason why this version cannot use the file. The thread of the log reports its `code`. */
export class NewerLogError extends Error {
  readonly code = 'SERVER_DATABASE_NEWER'
}

/** Returns the schema version; 0 for an empty file. Throws a NewerLogError. */
export function verifyLogVersion(database: Database): number {
  const row = database.query<{ user_version: number }, []>('pragma user_version').get()
  const found = row?.user_version ?? 0
  if (found <= MIGRATIONS.length) return found
  const unknown = database
    .query<{ version: number; readableFrom: number }, [number]>(
      `select version, readable_from as readableFrom from log_migrations where version > ?1`,
    )
    .all(MIGRATIONS.length)
  const isComplete = unknown.length === found - MIGRATIONS.length
  if (isComplete && canUse(MIGRATIONS.length, unknown)) return found
  const rows = isComplete ? unknown : [{ version: found, readableFrom: null }]
  throw new NewerLogError(newerDetail('logs.db', rows))
}

/** Applies pending migrations. Throws a NewerLogError, or an error of SQLite. */
export function migrateLogs(database: Database): void {
  const found = verifyLogVersion(database)
  database.transaction(() => {
    for (const migration of MIGRATIONS.slice(found)) {
      const { version, sql } = migration
      database.run(sql)
      if (recordsReadableFrom(MIGRATIONS, version)) {
        const readable = readableFrom([migration])
        database.run('insert into log_migrations values (?1, ?2)', [version, readable])
      }
      database.run(`pragma user_version = ${version}`)
    }
  })()
}

/** Applies pending migrations to the file, if it exists. Throws what `migrateLogs` throws. */
export function migrateLogFile(path: string): void {
  if (!existsSync(path)) return
  const database = openOwnDatabase(path)
  try {
    database.run('pragma trusted_schema = off')
    migrateLogs(database)
  } finally {
    database.close()
  }
}
