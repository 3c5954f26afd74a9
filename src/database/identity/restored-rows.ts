/** Fills the identity database of a restored installation with the rows of a backup. */
import { Fault } from '../../errors/fault.ts'
import { sha256 } from '../../system/digests.ts'
import type { Connection } from '../connection.ts'
import type { Database } from '../database.ts'
import { QueryFailure, toStartupFault } from '../errors.ts'
import { IDENTITY_SCHEMA, migrate } from '../migrate.ts'
import { MIGRATIONS } from '../migrations.generated.ts'
import { IDENTITY_TABLES, type IdentityTable } from './all-rows.ts'

/** The columns of the primary key of each table. A test compares them with the schema. */
export const IDENTITY_KEYS: Readonly<Record<IdentityTable, readonly string[]>> = {
  service_platform_meta: ['singleton'],
  service_platform_migrations: ['version'],
  service_platform_pepper_checks: ['pepper'],
  service_operators: ['operator_id'],
  service_operator_invitations: ['invitation_id'],
  service_operator_invitation_operations: ['operation_id'],
  service_operator_managed_sources: ['source_id'],
  service_operator_managed_revisions: ['source_id', 'operator_id'],
  service_operator_grants: ['grant_id'],
  service_operator_identities: ['provider_id', 'subject_digest'],
  service_operator_sessions: ['session_id'],
  service_operator_token_uses: ['token_digest'],
  service_operator_operations: ['operation_id'],
  service_platform_audit: ['audit_id'],
}

export const IDENTITY_MIGRATIONS = 'service_platform_migrations'
/** Tables that a restored database writes by itself. */
const OWN_TABLES: readonly IdentityTable[] = ['service_platform_meta', IDENTITY_MIGRATIONS]

type Columns = Readonly<Record<string, string | null>>

/** Rows of one statement. */
const INSERT_ROWS = 500

/**
 * Returns the schema version of recorded migrations, which may be an earlier one. Throws
 * BACKUP_VERSION_UNKNOWN where this program does not have one of them.
 */
export function identityVersion(migrations: readonly Columns[]): number {
  const recorded = new Map(migrations.map((row) => [row.version, row.checksum]))
  const version = recorded.size
  const isKnown = MIGRATIONS.slice(0, version).every(
    ({ version: number, sql }) =>
      recorded.get(String(number)) === `\\x${sha256(sql).toString('hex')}`,
  )
  if (isKnown && version > 0 && version <= MIGRATIONS.length) return version
  const detail = `the identity database has the schema version ${version}`
  throw new Fault('BACKUP_VERSION_UNKNOWN', { detail })
}

/** Returns whether the database has a table of identity. Throws QueryFailure. */
export async function hasIdentityTables(database: Database): Promise<boolean> {
  const rows = await database.rows(
    'select 1 from unnest($1::text[]) name where to_regclass(name) is not null',
    [IDENTITY_TABLES.map((table) => `public.${table}`)],
  )
  return rows.length > 0
}

/** Removes the tables that `writeIdentityRows` created. */
export async function removeIdentityTables(database: Database): Promise<void> {
  await database.rows(`drop table if exists ${IDENTITY_TABLES.join(', ')}`)
}

export interface IdentityRestore {
  readonly database: Database
  readonly version: number
  readonly nowMicros: bigint
  rows(table: IdentityTable): Iterable<Columns>
}

/**
 * Creates the schema, inserts all rows in one transaction and migrates to the version of this
 * program. The caller has checked that the database has no table of identity. Throws
 * BACKUP_CORRUPT for rows that the schema cannot have, and SERVER_PLATFORM_DATABASE_UNAVAILABLE.
 */
export async function writeIdentityRows(restore: IdentityRestore): Promise<void> {
  const { database, version, nowMicros } = restore
  const migrations = MIGRATIONS.slice(0, version)
  await migrate(database, nowMicros, { ...IDENTITY_SCHEMA, migrations })
  const connection = await database.connect()
  try {
    await connection.query('begin')
    for (const table of IDENTITY_TABLES) {
      if (!OWN_TABLES.includes(table)) await insertTable(connection, table, restore.rows(table))
    }
    await connection.query('commit')
  } catch (error) {
    // A constraint is violated, or a text is not a value of its column.
    const isUnfit = error instanceof QueryFailure && error.kind === 'programming'
    throw isUnfit ? unfit(error.message) : toStartupFault(error)
  } finally {
    await connection.query('rollback').catch(() => undefined)
    connection.release()
  }
  await migrate(database, nowMicros)
}

async function insertTable(
  connection: Connection,
  table: IdentityTable,
  rows: Iterable<Columns>,
): Promise<void> {
  const { rows: found } = await connection.query(
    `select attname as name, format_type(atttypid, atttypmod) as type, attidentity <> '' as numbered
       from pg_attribute
      where attrelid = to_regclass($1) and attnum > 0 and not attisdropped
      order by attnum`,
    [`public.${table}`],
  )
  // An earlier version may lack the table, whose rows then have unknown columns.
  const columns = found as unknown as { name: string; type: string; numbered: boolean }[]
  const names = columns.map(({ name }) => name)
  const places = columns.map((_, i) => `$${i + 1}::text[]`)
  const values = columns.map(({ name, type }) => `${name}::${type}`)
  const sql = `
    insert into ${table} (${names.join(', ')}) overriding system value
    select ${values.join(', ')} from unnest(${places.join(', ')}) _ (${names.join(', ')})`
  let batch: Columns[] = []
  const flush = async () => {
    await connection.query(
      sql,
      names.map((name) => batch.map((row) => row[name] ?? null)),
    )
    batch = []
  }
  for (const row of rows) {
    const unknown = Object.keys(row).some((name) => !names.includes(name))
    if (unknown) throw unfit(`a row of ${table} has an unknown column`)
    batch.push(row)
    if (batch.length === INSERT_ROWS) await flush()
  }
  if (batch.length > 0) await flush()
  for (const { name, numbered } of columns) {
    if (!numbered) continue
    await connection.query(
      `select setval(pg_get_serial_sequence($1, $2), max(${name})) from ${table}
       having max(${name}) is not null`,
      [`public.${table}`, name],
    )
  }
}

function unfit(reason: string): Fault {
  return new Fault('BACKUP_CORRUPT', { detail: `the identity database: ${reason}` })
}
