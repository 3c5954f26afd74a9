/**
 * Brings a schema of this program to this version, or refuses. All pending migrations commit
 * together, under a lock that makes several servers take turns; what was applied is never edited.
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

/** One of the schemas of this program in a PostgreSQL database. */
export interface Schema {
  /** In PostgreSQL; the search path of the connections begins with it. */
  readonly name: string
  /** Written into the database, so that one of another program is never taken for ours. */
  readonly product: string
  /** The first of them makes the tables that record them. */
  readonly migrations: readonly Migration[]
  /** What everything that keeps the server from using it is raised as. */
  readonly unavailable: StartupCode
}

export const IDENTITY_SCHEMA: Schema = {
  name: 'public',
  product: 'service-platform-identity',
  migrations: MIGRATIONS,
  unavailable: 'SERVER_PLATFORM_DATABASE_UNAVAILABLE',
}

export interface MigrationResult {
  /** Version before; 0 for an empty database. */
  readonly from: number
  readonly to: number
}

const POSTGRESQL_MINIMUM = 160_000
const MIGRATION_TIMEOUT_MS = 600_000
export const SCHEMA_VERSION = MIGRATIONS.length

/**
 * Safe to repeat. Throws the schema's code, with the reason as detail, where the database cannot be
 * reached, is too old or not durable, or records something unknown.
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
      // Its session settings are those of a migration.
      connection.discard()
    }
  } catch (error) {
    if (error instanceof OperationError)
      throw new Fault(schema.unavailable, { detail: error.message })
    throw toStartupFault(error, schema.unavailable)
  }
}

/** Why the database is not used. */
class OperationError extends Error {}

/** What was acknowledged must survive a power cut, so a server that trades that away is refused. */
async function checkServer(connection: Connection): Promise<void> {
  const { rows } = await connection.query(
    `select current_setting('server_version_num')::integer as version,
            current_setting('fsync') as fsync,
            current_setting('full_page_writes') as full_page_writes,
            current_setting('synchronous_commit') as synchronous_commit,
            current_setting('server_encoding') as server_encoding,
            pg_is_in_recovery() as standby`,
  )
  const refusal = serverRefusal(rows[0] ?? {})
  if (refusal !== null) throw new OperationError(refusal)
}

/** Why nothing must be kept on a server with these settings; null where it may. */
export function serverRefusal(row: RawRow): string | null {
  if (readInteger(row, 'version') < POSTGRESQL_MINIMUM) return 'PostgreSQL is older than 16'
  for (const setting of ['fsync', 'full_page_writes', 'synchronous_commit']) {
    if (readText(row, setting) === 'off') return `PostgreSQL runs with ${setting} = off`
  }
  // Names are Unicode; another encoding refuses some of them or counts their bytes.
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
  // Loss of the connection here leaves all or nothing; the next start finds out which.
  await connection.query('commit')
  return { from, to: migrations.length }
}

/** Answers the recorded version. Everything recorded must be exactly what this program knows. */
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
      throw new OperationError(`schema version ${version} is unknown to this program`)
    if (version !== known.version)
      throw new OperationError(`schema version ${known.version} is not recorded`)
    const same =
      readText(row, 'name') === known.name &&
      digestEquals(readBytes(row, 'checksum'), checksum(known))
    if (!same)
      throw new OperationError(`schema version ${version} was recorded with another definition`)
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
    throw new OperationError('the recorded schema version and its migrations contradict each other')
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
