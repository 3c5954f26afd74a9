/** Reads of SQLite files for the doctor, which leave the files and their logs as they are. */
import { constants, Database } from 'bun:sqlite'
import { existsSync, rmSync } from 'node:fs'

const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants

/**
 * The users of a file while it is read: only the caller, which holds a lock for it; this process;
 * or several processes of this server.
 */
export type DatabaseUse = 'caller' | 'process' | 'processes'

function open(path: string, use: DatabaseUse): Database {
  if (use === 'processes') return new Database(path, SQLITE_OPEN_READONLY)
  const url = `${Bun.pathToFileURL(path)}?vfs=unix-excl&mode=ro`
  return new Database(url, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
}

/** Runs reads on a connection, which it closes. They change neither the file nor its log. */
export function inspectDatabase<T>(
  path: string,
  use: DatabaseUse,
  inspect: (database: Database) => T,
): T {
  // SQLite makes an empty log and its index for reads. Where others use the file they stay.
  const made = [`${path}-wal`, `${path}-shm`].filter((file) => !existsSync(file))
  const database = open(path, use)
  const close = (): void => {
    database.close()
    if (use === 'caller') for (const file of made) rmSync(file, { force: true })
  }
  let result: T
  try {
    database.run('pragma busy_timeout = 2000')
    database.run('pragma trusted_schema = off')
    result = inspect(database)
  } catch (error) {
    close()
    throw error
  }
  if (result instanceof Promise) return result.finally(close) as T
  close()
  return result
}

/**
 * Returns `ok`, or the first finding of SQLite's check of the file; null if it has more bytes than
 * that. A check reads the whole file.
 */
export function integrityOf(database: Database, bytesMax: number): string | null {
  const size = database
    .query<{ bytes: number }, []>(
      'select page_count * page_size as bytes from pragma_page_count, pragma_page_size',
    )
    .get()!
  if (size.bytes > bytesMax) return null
  const [found] = database.query<{ quick_check: string }, []>('pragma quick_check(1)').all()
  // The text may quote what is stored.
  return found?.quick_check === 'ok' ? 'ok' : 'it fails the integrity check of SQLite'
}

/** Returns the version of the SQLite library of this process. */
export function sqliteVersion(): string {
  const database = new Database(':memory:')
  try {
    return database.query<{ version: string }, []>('select sqlite_version() as version').get()!
      .version
  } finally {
    database.close()
  }
}
