/** Reads of the documents in PostgreSQL for the doctor: they take no epoch and change nothing. */

import type { Connection } from '../../database/connection.ts'
import { inspectSchema, type SchemaState } from '../../database/migrate.ts'
import type { Secret } from '../../value/secret.ts'
import type { FollowedDocuments } from '../followed-documents.ts'
import type { StoreSchema } from '../store.ts'
import { loadFieldShapes, loadTexts } from './field-shapes.ts'
import { followPostgresDocuments } from './followed-store.ts'
import { text } from './rows.ts'
import { DOCUMENT_SCHEMA } from './schema.ts'
import { loadTerm } from './terms.ts'

export interface PostgresInspection {
  readonly schema: SchemaState
  /** Null unless the schema is that of this program and an Environment has used it. */
  readonly binding: { readonly environmentId: string; readonly databaseId: string } | null
  /** Null without a binding. */
  readonly documents: { readonly latestSequence: number; readonly schema: StoreSchema } | null
}

/** Throws QueryFailure. The connection has the settings of `documentDatabase`. */
export async function inspectPostgresDocuments(
  connection: Connection,
): Promise<PostgresInspection> {
  const schema = await inspectSchema(connection, DOCUMENT_SCHEMA)
  if (schema.version !== schema.known) return { schema, binding: null, documents: null }
  const { rows } = await connection.query('select environment_id, database_id from state')
  const [row] = rows
  if (row === undefined) return { schema, binding: null, documents: null }
  const binding = {
    environmentId: text(row, 'environment_id'),
    databaseId: text(row, 'database_id'),
  }
  // The indexes after the sequence: an index that is dropped meanwhile is then read as dropped.
  const { latestSequence, indexes } = await loadTerm(connection, 0)
  const shapes = await loadFieldShapes(connection)
  const names = (await loadTexts(connection)).names()
  return {
    schema,
    binding,
    documents: { latestSequence, schema: { indexes: [...indexes.rows()], shapes, names } },
  }
}

/** Runs reads of the stored documents at a sequence that `inspectPostgresDocuments` has found. */
export async function readPostgresDocuments<T>(
  url: Secret,
  found: NonNullable<PostgresInspection['documents']>,
  read: (store: FollowedDocuments) => Promise<T>,
): Promise<T> {
  const onConnectionLost = (): void => undefined
  const store = followPostgresDocuments({ url, connectionsMax: 1, onConnectionLost, ...found })
  try {
    return await read(store)
  } finally {
    await store.close()
  }
}
