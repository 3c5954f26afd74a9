/**
 * Migrates a schema to the version of this program, or fails without a change. All pending
 * migrations commit together, under a lock that serializes servers. Applied migrations are never
 * edited.
 */
import { Fault } from '../errors/fault.ts'
import { digestEquals, sha256 } from '../system/digests.ts'
import { lockMigrations } from './advisory-locks.ts'
import type { Connection, RawRow } from './connection.ts'
import type { Database } from './database.ts'
import { type StartupCode, toStartupFault } from './errors.ts'
import { MIGRATIONS } from './migrations.generated.ts'
import { readBoolean, readBytes, readInteger, readText } from './rows.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
}

/** A schema of this program in a PostgreSQL database. */
export interface Schema {
  /** Name in PostgreSQL. The search path of the connections begins with it. */
  readonly name: string
  /** Recorded in the database, to recognize the schema of another program. */
  readonly product: string
  /** The first one creates the tables that record migrations. */
  readonly migrations: readonly Migration[]
  /** Code of every failure that prevents the use of the schema. */
  readonly unavailable: StartupCode
}

export const IDENTITY_SCHEMA: Schema = {
  name: 'public',
  product: 'service-platform-identity',
  migrations: MIGRATIONS,
  unavailable: 'SERVER_PLATFORM_DATABASE_UNAVAILABLE',
}

export interface MigrationResult {
  /** The previous version; 0 for an empty database. */
  readonly from: number
  readonly to: number
}

const POSTGRESQL_MINIMUM = 160_000
const MIGRATION_TIMEOUT_MS = 600_000
export const SCHEMA_VERSION = MIGRATIONS.length

/**
 * Applies pending migrations; it can be repeated. Throws the code of the schema, with the reason as
 * detail, where the database is unreachable, too old or not durable, or has unknown migrations.
 */
export async function migrate(
  database: Database,
  atMicros: bigint,
  schema: Schema = IDENTITY_SCHEMA,
): Promise<MigrationResult> {
  try {
    const connection = await database.connect()
    try {
      await checkServer(connection)
      return await migrateOn(connection, atMicros, schema)
    } finally {
      // Discarded, since its settings are those of a migration.
      connection.discard()
    }
  } catch (error) {
    if (error instanceof MigrationError)
      throw new Fault(schema.unavailable, { detail: error.message })
    throw toStartupFault(error, schema.unavailable)
  }
}

/** The schema of a database as it is found. */
export interface SchemaState {
  /** 0 for an empty database, null if it is not one of this program's versions. */
  readonly version: number | null
  /** The version of this program. */
  readonly known: number
  /** The reason why this program cannot use the schema; null if it can. */
  readonly defect: string | null
}

/** Reads the state of a schema and changes nothing. Throws QueryFailure. */
export async function inspectSchema(
  connection: Connection,
  schema: Schema = IDENTITY_SCHEMA,
): Promise<SchemaState> {
  const known = schema.migrations.length
  try {
    return { version: await verifyRecorded(connection, schema), known, defect: null }
  } catch (error) {
    if (!(error instanceof MigrationError)) throw error
    return { version: null, known, defect: error.message }
  }
}

/** Reason why the database cannot be used. */
class MigrationError extends Error {}

/** Rejects a PostgreSQL server that is too old or that can lose acknowledged commits. */
async function checkServer(connection: Connection): Promise<void> {
  const { rows } = await connection.query(
    `select current_setting('server_version_num')::integer as version,
            current_setting('fsync') as fsync,
            current_setting('full_page_writes') as full_page_writes,
            current_setting('synchronous_commit') as synchronous_commit,
            current_setting('server_encoding') as server_encoding,
            pg_is_in_recovery() as standby`,
  )
  const reason = unsupportedReason(rows[0] ?? {})
  if (reason !== null) throw new MigrationError(reason)
}

/** The reason why a server with these settings cannot be used; null if it can. */
export function unsupportedReason(row: RawRow): string | null {
  const version = readInteger(row, 'version')
  if (version < POSTGRESQL_MINIMUM) {
    return `version: PostgreSQL ${Math.floor(version / 10_000)} is older than 16`
  }
  for (const setting of ['fsync', 'full_page_writes', 'synchronous_commit']) {
    if (readText(row, setting) === 'off') return `PostgreSQL runs with ${setting} = off`
  }
  // Names are Unicode: other encodings reject some characters or count bytes.
  if (readText(row, 'server_encoding') !== 'UTF8') return 'the database is not encoded in UTF-8'
  return readBoolean(row, 'standby') ? 'PostgreSQL is a standby' : null
}

async function migrateOn(
  connection: Connection,
  atMicros: bigint,
  schema: Schema,
): Promise<MigrationResult> {
  const { migrations } = schema
  await connection.query(`set statement_timeout = ${MIGRATION_TIMEOUT_MS}`)
  await connection.query(`set lock_timeout = ${MIGRATION_TIMEOUT_MS}`)
  await connection.query('begin isolation level read committed')
  await lockMigrations(connection, MIGRATION_TIMEOUT_MS)
  const from = await verifyRecorded(connection, schema)
  for (const migration of migrations.slice(from)) {
    await connection.query(migration.sql, [], { timeoutMs: MIGRATION_TIMEOUT_MS })
    await record(connection, schema, migration, atMicros)
  }
  // If the connection is lost here, all or nothing is stored, and the next start continues.
  await connection.query('commit')
  return { from, to: migrations.length }
}

/** Returns the recorded version. Throws unless all recorded migrations are known and unchanged. */
async function verifyRecorded(connection: Connection, schema: Schema): Promise<number> {
  const present = await connection.query(`select to_regclass($1) is not null as present`, [
    `${schema.name}.service_platform_migrations`,
  ])
  if (present.rows[0]?.present !== true) return 0
  const recorded = await connection.query(
    `select version, name, checksum from service_platform_migrations order by version`,
  )
  for (const [i, row] of recorded.rows.entries()) {
    const version = readInteger(row, 'version')
    const known = schema.migrations[i]
    if (known === undefined)
      throw new MigrationError(`schema version ${version} is unknown to this program`)
    if (version !== known.version)
      throw new MigrationError(`schema version ${known.version} is not recorded`)
    const isEqual =
      readText(row, 'name') === known.name &&
      digestEquals(readBytes(row, 'checksum'), checksum(known))
    if (!isEqual)
      throw new MigrationError(`schema version ${version} was recorded with another definition`)
  }
  await verifyMeta(connection, schema, recorded.rows.length)
  return recorded.rows.length
}

async function verifyMeta(
  connection: Connection,
  { product }: Schema,
  version: number,
): Promise<void> {
  const { rows } = await connection.query(
    `select product, schema_version from service_platform_meta`,
  )
  const row = rows[0]
  if (row?.product !== product || row.schema_version !== version) {
    throw new MigrationError('the recorded schema version and its migrations contradict each other')
  }
}

async function record(
  connection: Connection,
  { product }: Schema,
  migration: Migration,
  atMicros: bigint,
): Promise<void> {
  await connection.query(
    `insert into service_platform_migrations (version, name, checksum, applied_at_micros)
     values ($1, $2, $3, $4)`,
    [migration.version, migration.name, checksum(migration), atMicros],
  )
  await connection.query(
    `insert into service_platform_meta (product, schema_version)
     values ($1, $2)
     on conflict (singleton) do update set schema_version = excluded.schema_version`,
    [product, migration.version],
  )
}

function checksum(migration: Migration): Buffer {
  return sha256(migration.sql)
}
