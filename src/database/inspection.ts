/** Reads the settings and the state of a PostgreSQL server and of one database, unchanged. */
import type { Connection, RawRow } from './connection.ts'
import { readBoolean, readInteger, readText } from './rows.ts'

export interface PostgresState {
  readonly fsync: string
  readonly fullPageWrites: string
  /** The value without what the connection sets. */
  readonly synchronousCommit: string
  readonly encoding: string
  readonly isStandby: boolean
  readonly isReadOnly: boolean
  /** Connections for roles other than superusers, or the limit of the role or the database. */
  readonly connectionsMax: number
  readonly connectionsUsed: number
  /** Connections whose application is a server of this product. */
  readonly connectionsOwn: number
  readonly collationRecorded: string | null
  readonly collationActual: string | null
  /** Transactions since the oldest row that is not frozen. */
  readonly transactionAge: number
  /** Age of the oldest transaction that this role may see. */
  readonly oldestTransactionSeconds: number
  readonly preparedTransactions: number
  /** Replication slots that nothing reads. */
  readonly idleSlots: number
  readonly isEncrypted: boolean
  readonly clockMillis: number
  readonly databaseName: string
}

const STATE = `
  select current_setting('fsync') as fsync,
         current_setting('full_page_writes') as full_page_writes,
         current_setting('synchronous_commit') as synchronous_commit,
         current_setting('server_encoding') as encoding,
         pg_is_in_recovery() as standby,
         (select reset_val = 'on' from pg_settings
           where name = 'default_transaction_read_only') as read_only,
         current_setting('max_connections')::integer
           - current_setting('superuser_reserved_connections')::integer
           - coalesce(current_setting('reserved_connections', true)::integer, 0) as connections_max,
         nullif(r.rolconnlimit, -1) as role_max,
         nullif(d.datconnlimit, -1) as database_max,
         (select count(*)::integer from pg_stat_activity where datid is not null) as used,
         (select count(*)::integer from pg_stat_activity
           where datid = d.oid and application_name like 'svc-server%'
             and pid <> pg_backend_pid()) as own,
         d.datcollversion as collation_recorded,
         pg_database_collation_actual_version(d.oid) as collation_actual,
         age(d.datfrozenxid) as transaction_age,
         (select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8
            from pg_stat_activity
           where backend_type = 'client backend' and pid <> pg_backend_pid()) as oldest_seconds,
         (select count(*)::integer from pg_prepared_xacts) as prepared,
         (select count(*)::integer from pg_replication_slots where not active) as idle_slots,
         coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as encrypted,
         (extract(epoch from clock_timestamp()) * 1000)::float8 as clock_millis,
         d.datname::text as name
    from pg_database d, pg_roles r
   where d.datname = current_database() and r.rolname = current_user`

/** Returns the version as a number, such as 160004, and as text. Throws QueryFailure. */
export async function readPostgresVersion(
  connection: Connection,
): Promise<{ readonly number: number; readonly text: string }> {
  const { rows } = await connection.query(
    `select current_setting('server_version_num')::integer as number,
            current_setting('server_version') as text`,
  )
  const row = rows[0] ?? {}
  return { number: readInteger(row, 'number'), text: readText(row, 'text') }
}

/** Reads the state of PostgreSQL 16 or newer. Throws QueryFailure. */
export async function readPostgresState(connection: Connection): Promise<PostgresState> {
  const { rows } = await connection.query(STATE)
  const row = rows[0] ?? {}
  return {
    fsync: readText(row, 'fsync'),
    fullPageWrites: readText(row, 'full_page_writes'),
    synchronousCommit: readText(row, 'synchronous_commit'),
    encoding: readText(row, 'encoding'),
    isStandby: readBoolean(row, 'standby'),
    isReadOnly: readBoolean(row, 'read_only'),
    connectionsMax: Math.min(
      readInteger(row, 'connections_max'),
      ...['role_max', 'database_max'].flatMap((name) =>
        row[name] === null ? [] : [readInteger(row, name)],
      ),
    ),
    connectionsUsed: readInteger(row, 'used'),
    connectionsOwn: readInteger(row, 'own'),
    collationRecorded: textOrNull(row, 'collation_recorded'),
    collationActual: textOrNull(row, 'collation_actual'),
    transactionAge: readInteger(row, 'transaction_age'),
    oldestTransactionSeconds: Number(row.oldest_seconds),
    preparedTransactions: readInteger(row, 'prepared'),
    idleSlots: readInteger(row, 'idle_slots'),
    isEncrypted: readBoolean(row, 'encrypted'),
    clockMillis: Number(row.clock_millis),
    databaseName: readText(row, 'name'),
  }
}

function textOrNull(row: RawRow, column: string): string | null {
  return row[column] === null ? null : readText(row, column)
}
