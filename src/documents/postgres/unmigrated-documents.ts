/**
 * Reads a schema of an earlier version as this version stores documents, and leaves it as it is:
 * the pending migrations are rolled back after the reads.
 */
import { readMigrated } from '../../database/migrate.ts'
import { requireSessions } from '../../database/poolers.ts'
import { Fault } from '../../errors/fault.ts'
import type { Secret } from '../../value/secret.ts'
import type { DocumentsSnapshot } from '../store.ts'
import { loadFieldShapes, loadTexts } from './field-shapes.ts'
import type { ReadQuery } from './reads.ts'
import { Scans } from './scans.ts'
import { DOCUMENT_SCHEMA, documentDatabase } from './schema.ts'
import { loadTerm } from './terms.ts'

/** Throws SERVER_DOCUMENT_DATABASE_UNAVAILABLE, SERVER_DATABASE_NEWER, and what `read` throws. */
export async function readUnmigratedPostgres<T>(
  { url, environmentId }: { readonly url: Secret; readonly environmentId: string },
  read: (documents: DocumentsSnapshot) => Promise<T>,
): Promise<T> {
  const database = documentDatabase({ url, connectionsMax: 2, onIdleLoss: () => undefined })
  try {
    await requireSessions(database, DOCUMENT_SCHEMA.unavailable)
    return await readMigrated(database, DOCUMENT_SCHEMA, async (connection) => {
      const { rows } = await connection.query('select environment_id from state')
      if (rows[0] !== undefined && rows[0].environment_id !== environmentId) {
        const detail = 'it belongs to another Environment'
        throw new Fault(DOCUMENT_SCHEMA.unavailable, { detail })
      }
      const { latestSequence, indexes } = await loadTerm(connection, 0)
      const shapes = await loadFieldShapes(connection)
      const texts = await loadTexts(connection)
      const query: ReadQuery = async (sql, parameters) =>
        (await connection.query(sql, parameters)).rows
      const scans = new Scans(query, texts)
      return read({
        latestSequence,
        versions: (request) => scans.versions(request),
        operations: (request) => scans.operations(request),
        schema: () => ({ indexes: [...indexes.rows()], shapes, names: texts.names() }),
      })
    })
  } finally {
    await database.close()
  }
}
