/**
 * Migrates a schema to the version of this program, or fails without a change. All pending
 * migrations commit together, under a lock that serializes servers. Applied migrations are never
 * edited.
 */
import { Fault, isFault } from '../errors/fault.ts'
import { digestEquals, sha256 } from '../system/digests.ts'
import {
  canUse,
  type Migration,
  newerDetail,
  type RecordedMigration,
  readableFrom,
  recordsReadableFrom,
} from '../value/databases/migrations.ts'
import { lockMigrations } from './advisory-locks.ts'
import type { Connection, RawRow } from './connection.ts'
import type { Database } from './database.ts'
import { type StartupCode, toStartupFault } from './errors.ts'
import { MIGRATIONS } from './migrations.generated.ts'
import { readBoolean, readBytes, readInteger, readText } from './rows.ts'

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
  /** True if programs use a schema with later migrations that name their version. */
  readonly isReadableByEarlier: boolean
}

export const IDENTITY_SCHEMA: Schema = {
  name: 'public',
  product: 'service-platform-identity',
  migrations: MIGRATIONS,
  unavailable: 'SERVER_PLATFORM_DATABASE_UNAVAILABLE',
  // An unknown version fails closed (contract/management.md, Versioning).
  isReadableByEarlier: false,
}

export interface MigrationResult {
  /** The previous version; 0 for an empty database. */
  readonly from: number
  /** The version of this program, or a later one that lets this program use the database. */
  readonly to: number
}

const POSTGRESQL_MINIMUM = 160_000
const MIGRATION_TIMEOUT_MS = 600_000
export const SCHEMA_VERSION = MIGRATIONS.length

/**
 * Applies pending migrations; it can be repeated. Throws the code of the schema, with the reason as
 * detail, where the database is unreachable, too old or not durable, or has unknown migrations.
 * Where programs of earlier versions can use the schema, the code of unknown ones that end this is
 * SERVER_DATABASE_NEWER.
 */
export async function migrate(
  database: Database,
  atMicros: bigint,
  schema: Schema = IDENTITY_SCHEMA,
): Promise<MigrationResult> {
  return withConnection(database, schema, async (connection) => {
    const from = await applyPending(connection, atMicros, schema)
    // If the connection is lost here, all or nothing is stored, and the next start continues.
    await connection.query('commit')
    return { from, to: Math.max(from, schema.migrations.length) }
  })
}

/**
 * Reads a schema as this program migrates it, and leaves the database as it was. Throws what
 * `migrate` throws.
 */
export async function readMigrated<T>(
  database: Database,
  schema: Schema,
  read: (connection: Connection) => Promise<T>,
): Promise<T> {
  return withConnection(database, schema, async (connection) => {
    await applyPending(connection, 0n, schema)
    const result = await read(connection)
    await connection.query('rollback')
    return result
  })
}

async function withConnection<T>(
  database: Database,
  schema: Schema,
  use: (connection: Connection) => Promise<T>,
): Promise<T> {
  try {
    const connection = await database.connect()
    try {
      await checkServer(connection)
      return await use(connection)
    } finally {
      // Discarded, since its settings are those of a migration.
      connection.discard()
    }
  } catch (error) {
    throw toSchemaFault(error, schema)
  }
}

/** Returns the fault of a failure with a schema. */
export function toSchemaFault(error: unknown, { unavailable }: Schema): unknown {
  if (error instanceof MigrationError) return new Fault(unavailable, { detail: error.message })
  return toStartupFault(error, unavailable)
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
    if (error instanceof MigrationError) return { version: null, known, defect: error.message }
    if (!isFault(error, 'SERVER_DATABASE_NEWER')) throw error
    return { version: null, known, defect: error.detail ?? error.message }
  }
}

/** Reason why the database cannot be used. */
class MigrationError extends Error {}

/** Rejects a PostgreSQL server that is too old or that can lose acknowledged commits. */
export async function checkServer(connection: Connection): Promise<void> {
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

/** Applies the pending migrations in a transaction that it begins. Returns the version before. */
async function applyPending(
  connection: Connection,
  atMicros: bigint,
  schema: Schema,
): Promise<number> {
  await connection.query(`set statement_timeout = ${MIGRATION_TIMEOUT_MS}`)
  await connection.query(`set lock_timeout = ${MIGRATION_TIMEOUT_MS}`)
  await connection.query('begin isolation level read committed')
  await lockMigrations(connection, MIGRATION_TIMEOUT_MS)
  const from = await verifyRecorded(connection, schema)
  for (const migration of schema.migrations.slice(from)) {
    await connection.query(migration.sql, [], { timeoutMs: MIGRATION_TIMEOUT_MS })
    await record(connection, schema, migration, atMicros)
  }
  return from
}

/**
 * Returns the recorded version. Throws unless all recorded migrations are unchanged and known, or
 * later ones that keep the schema readable for this program.
 */
export async function verifyRecorded(connection: Connection, schema: Schema): Promise<number> {
  const present = await connection.query(`select to_regclass($1) is not null as present`, [
    `${schema.name}.service_platform_migrations`,
  ])
  if (present.rows[0]?.present !== true) return 0
  // Programs of earlier versions have made the table without the column.
  const recorded = await connection.query(
    `select version, name, checksum,
            coalesce((to_jsonb(m) ->> 'readable_from')::integer, version) as readable_from
       from ${schema.name}.service_platform_migrations m order by version`,
  )
  const unknown: RecordedMigration[] = []
  for (const [i, row] of recorded.rows.entries()) {
    const version = readInteger(row, 'version')
    if (version !== i + 1) throw new MigrationError(`schema version ${i + 1} is not recorded`)
    const known = schema.migrations[i]
    if (known === undefined) {
      if (!schema.isReadableByEarlier) throw new MigrationError(unknownVersion(version))
      unknown.push({ version, readableFrom: readInteger(row, 'readable_from') })
      continue
    }
    const isEqual =
      readText(row, 'name') === known.name &&
      digestEquals(readBytes(row, 'checksum'), checksum(known))
    if (!isEqual)
      throw new MigrationError(`schema version ${version} was recorded with another definition`)
  }
  await verifyMeta(connection, schema, recorded.rows.length)
  if (!canUse(schema.migrations.length, unknown)) {
    throw new Fault('SERVER_DATABASE_NEWER', { detail: newerDetail('documents', unknown) })
  }
  return recorded.rows.length
}

function unknownVersion(version: number): string {
  return `a newer version has changed it: schema version ${version} is unknown to this program`
}

async function verifyMeta(
  connection: Connection,
  { name, product }: Schema,
  version: number,
): Promise<void> {
  const { rows } = await connection.query(
    `select product, schema_version from ${name}.service_platform_meta`,
  )
  const row = rows[0]
  if (row?.product !== product || row.schema_version !== version) {
    throw new MigrationError('the recorded schema version and its migrations contradict each other')
  }
}

async function record(
  connection: Connection,
  { product, migrations }: Schema,
  migration: Migration,
  atMicros: bigint,
): Promise<void> {
  await connection.query(
    `insert into service_platform_migrations (version, name, checksum, applied_at_micros)
     values ($1, $2, $3, $4)`,
    [migration.version, migration.name, checksum(migration), atMicros],
  )
  if (recordsReadableFrom(migrations, migration.version)) {
    await connection.query(
      `update service_platform_migrations set readable_from = $2 where version = $1`,
      [migration.version, readableFrom([migration])],
    )
  }
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
