/**
 * Reads a file of an earlier version as this version stores documents, and leaves it as it is: the
 * pending migrations are rolled back after the reads.
 */
import { DEFAULT_PLAN } from '../../system/memory/memory-plan.ts'
import type { DocumentsSnapshot } from '../store.ts'
import { openUnmigrated, storeFault } from './databases.ts'
import { Scans } from './scans.ts'
import { loadFieldShapes, loadState } from './writer-state.ts'

/** The caller holds the lock of the Product root. Throws what `openDatabase` throws. */
export async function readUnmigratedSqlite<T>(
  path: string,
  read: (documents: DocumentsSnapshot) => Promise<T>,
): Promise<T> {
  const database = openUnmigrated(path, DEFAULT_PLAN)
  try {
    const { latestSequence, indexes, texts } = loadState(database)
    const scans = new Scans(database, texts)
    const shapes = loadFieldShapes(database)
    return await read({
      latestSequence,
      versions: (request) => guarded(() => scans.versions(request)),
      operations: (request) => guarded(() => scans.operations(request)),
      schema: () => ({ indexes: [...indexes.rows()], shapes, names: texts.names() }),
    })
  } finally {
    if (database.inTransaction) database.run('rollback')
    database.close()
  }
}

function guarded<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw storeFault(error)
  }
}
