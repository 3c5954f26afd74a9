/** The schema of documents in PostgreSQL, and the settings of its connections. */
import { Database } from '../../database/database.ts'
import { type MigrationResult, migrate, type Schema } from '../../database/migrate.ts'
import { requireSessions } from '../../database/poolers.ts'
import type { Secret } from '../../value/secret.ts'
import { MIGRATIONS } from './migrations.generated.ts'

export const DOCUMENT_SCHEMA: Schema = {
  name: 'svc_documents',
  product: 'service-platform-documents',
  migrations: MIGRATIONS,
  unavailable: 'SERVER_DOCUMENT_DATABASE_UNAVAILABLE',
  isReadableByEarlier: true,
}

/**
 * Settings of each connection. Every statement walks an index and ends with its limit, so the
 * settings forbid other plans, which PostgreSQL would choose by the stale statistics of a table
 * that has just grown. A generic plan is made once per connection.
 */
export const SETTINGS = `
  set search_path = svc_documents, pg_temp;
  set plan_cache_mode = force_generic_plan;
  set enable_seqscan = off;
  set enable_bitmapscan = off;
  set enable_hashjoin = off;
  set enable_mergejoin = off;
  set enable_sort = off;
  set jit = off`

export interface DocumentDatabaseOptions {
  readonly url: Secret
  readonly connectionsMax: number
  readonly onIdleLoss: (detail: string) => void
  /** Shown in pg_stat_activity; that of the server by default. */
  readonly applicationName?: string
}

export function documentDatabase(options: DocumentDatabaseOptions): Database {
  return new Database({ applicationName: 'svc-server documents', ...options, settings: SETTINGS })
}

/** Applies pending migrations. Throws what `migrate` throws. */
export async function migrateDocuments(url: Secret, atMicros: bigint): Promise<MigrationResult> {
  const database = documentDatabase({ url, connectionsMax: 2, onIdleLoss: () => undefined })
  try {
    await requireSessions(database, DOCUMENT_SCHEMA.unavailable)
    return await migrate(database, atMicros, DOCUMENT_SCHEMA)
  } finally {
    await database.close()
  }
}

/** Returns whether the schema of documents has any table. Throws QueryFailure. */
export async function hasDocumentTables(database: Database): Promise<boolean> {
  const rows = await database.rows(
    'select 1 from pg_class where relnamespace = to_regnamespace($1) limit 1',
    [DOCUMENT_SCHEMA.name],
  )
  return rows.length > 0
}

/** Removes the schema with all that is in it. Throws QueryFailure. */
export async function removeDocumentSchema(database: Database): Promise<void> {
  await database.rows(`drop schema if exists ${DOCUMENT_SCHEMA.name} cascade`)
}
