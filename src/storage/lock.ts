/**
 * The lock by which one process owns a Product root: an exclusive transaction on an empty SQLite
 * file. This is a record lock of the kernel, which no child inherits and which ends with the
 * process, even after a `kill -9`, which a lock file with a process ID would survive.
 */
import { Database } from 'bun:sqlite'
import { Fault } from '../errors/fault.ts'
import { ensureOwnFile, invalidRoot } from './files.ts'

export interface RootLock {
  release(): void
}

/** Keeps locked databases reachable: the garbage collector would close one and drop its lock. */
const held = new Set<Database>()

/**
 * Locks a root. Throws SERVER_PRODUCT_ROOT_LOCKED at once where this or another process holds the
 * lock. No other code of this process may open `path`: closing any descriptor of the file would
 * drop the lock.
 */
export function lockRoot(path: string): RootLock {
  ensureOwnFile(path)
  let database: Database
  try {
    database = new Database(path, { readwrite: true, create: false })
  } catch (cause) {
    throw invalidRoot(`${path} cannot be opened`, cause)
  }
  try {
    database.exec('pragma busy_timeout = 0')
    database.exec('begin exclusive')
  } catch (cause) {
    database.close()
    if ((cause as { code?: string }).code === 'SQLITE_BUSY') {
      throw new Fault('SERVER_PRODUCT_ROOT_LOCKED', { detail: path })
    }
    throw invalidRoot(`${path} cannot be locked`, cause)
  }
  held.add(database)
  return {
    release() {
      held.delete(database)
      database.close()
    },
  }
}
