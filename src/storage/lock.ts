/**
 * The lock by which one process owns a Product root: an exclusive transaction on an empty SQLite
 * file. This is a record lock of the kernel, which no child inherits and which ends with the
 * process, even after a `kill -9`, which a lock file with a process ID would survive.
 */
import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { Fault } from '../errors/fault.ts'
import { ensureOwnFile, invalidRoot } from './files.ts'

export interface RootLock {
  release(): void
}

/** `isRootLocked` of another process locks the file for less than that. */
const LOCK_WAIT_MILLIS = 500

/** Keeps locked databases reachable: the garbage collector would close one and drop its lock. */
const held = new Set<Database>()

/**
 * Locks a root. Throws SERVER_PRODUCT_ROOT_LOCKED after half a second where this or another process
 * holds the lock. No other code of this process may open `path`: closing any descriptor of the file
 * would drop the lock.
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
    database.exec(`pragma busy_timeout = ${LOCK_WAIT_MILLIS}`)
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

/** Returns whether a process holds the lock. A server that starts at this moment waits for it. */
export function isRootLocked(path: string): boolean {
  if (!existsSync(path)) return false
  const database = new Database(path, { readonly: true })
  try {
    database.query('select count(*) from sqlite_schema').get()
    return false
  } catch (error) {
    if ((error as { code?: string }).code === 'SQLITE_BUSY') return true
    throw invalidRoot(`${path} cannot be read`, error)
  } finally {
    database.close()
  }
}
