/**
 * Opens SQLite files that only this process uses. SQLite keeps the index of the write-ahead log in
 * memory then, shared by the connections of all threads. Otherwise it would map the index from a
 * file, and a read-only or failing disk ends a process that writes to such a mapping.
 */
import { constants, Database } from 'bun:sqlite'

const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_URI } = constants

/**
 * Opens an existing file. To any other process it is locked until the last connection closes,
 * unless `isShared` is true: then other processes of the server may open it too.
 */
export function openOwnDatabase(path: string, isShared = false): Database {
  if (isShared) return openSharedDatabase(path)
  const url = `${Bun.pathToFileURL(path)}?vfs=unix-excl`
  return new Database(url, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI)
}

/** Opens an existing file that several processes of this server use. */
export function openSharedDatabase(path: string): Database {
  return new Database(path, SQLITE_OPEN_READWRITE)
}
