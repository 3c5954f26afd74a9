/** Reads which migrations a PostgreSQL database has, and changes nothing. */
import type { Database } from './database.ts'
import { checkServer, type Schema, toSchemaFault, verifyRecorded } from './migrate.ts'

export interface SchemaSurvey {
  /** The recorded schema version; 0 for a database without the schema. */
  readonly found: number
  /** Bytes of all tables of the schema and their indexes. */
  readonly bytes: number
  /** Number of document versions by the statistics of PostgreSQL; 0 where they are unknown. */
  readonly documents: number
}

/** Throws what `migrate` throws. */
export async function surveySchema(database: Database, schema: Schema): Promise<SchemaSurvey> {
  try {
    const connection = await database.connect()
    let isClean = false
    try {
      await checkServer(connection)
      await connection.query('begin transaction read only')
      const found = await verifyRecorded(connection, schema)
      const { rows } = await connection.query(
        `select coalesce(sum(pg_total_relation_size(c.oid)), 0)::double precision as bytes,
                coalesce(max(c.reltuples) filter (where c.relname = 'documents'), 0) as documents
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $1 and c.relkind = 'r'`,
        [schema.name],
      )
      await connection.query('rollback')
      isClean = true
      const [bytes, documents] = [Number(rows[0]?.bytes), Number(rows[0]?.documents)]
      return { found, bytes, documents: Math.max(0, Math.round(documents)) }
    } finally {
      if (isClean) connection.release()
      else connection.discard()
    }
  } catch (error) {
    throw toSchemaFault(error, schema)
  }
}
