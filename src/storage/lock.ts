/**
 * One process owns a Product root. The lock is an exclusive transaction on an empty SQLite file: a
 * record lock of the kernel, which no child inherits and which ends with the process, however it
 * dies. A lock file with a process ID in it would outlive a `kill -9`.
 */
import { Database } from 'bun:sqlite'
import { Fault } from '../errors/fault.ts'
import { ensureOwnFile, invalidRoot } from './files.ts'

export interface RootLock {
  release(): void
}

/** A Database that nobody refers to is closed by the garbage collector, and its lock is gone. */
const held = new Set<Database>()

/**
 * Throws SERVER_PRODUCT_ROOT_LOCKED at once where another process, or this one, has it. Nothing
 * else in this process may open `path`: closing any descriptor of the file would drop the lock.
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
