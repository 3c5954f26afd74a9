/** Reads every table of the identity database at one snapshot, as texts, for a backup. */
import type { Connection } from '../connection.ts'
import type { Database } from '../database.ts'

/** All tables, each after those that it refers to. A test compares them with the schema. */
export const IDENTITY_TABLES = [
  'service_platform_meta',
  'service_platform_migrations',
  'service_platform_pepper_checks',
  'service_operators',
  'service_operator_invitations',
  'service_operator_invitation_operations',
  'service_operator_managed_sources',
  'service_operator_managed_revisions',
  'service_operator_grants',
  'service_operator_identities',
  'service_operator_sessions',
  'service_operator_token_uses',
  'service_operator_operations',
  'service_platform_audit',
] as const
export type IdentityTable = (typeof IDENTITY_TABLES)[number]

export interface IdentityRow {
  readonly table: IdentityTable
  /** Each column as PostgreSQL casts it to text. */
  readonly row: Readonly<Record<string, string | null>>
}

/** Rows of one round trip. */
const FETCH_ROWS = 500
/** A backup of millions of audit records waits for its target between two of them. */
const IDLE_MILLIS_MAX = 10 * 60 * 1_000

/** Holds one connection until it ends. Throws QueryFailure. */
export async function* readIdentityRows(database: Database): AsyncGenerator<IdentityRow> {
  const connection = await database.connect()
  try {
    await readSnapshot(connection)
    for (const table of IDENTITY_TABLES) {
      const columns = await readColumns(connection, table)
      if (columns === null) continue
      await connection.query(
        `declare all_rows no scroll cursor for select ${columns} from ${table}`,
      )
      for (;;) {
        const page = await connection.query(`fetch ${FETCH_ROWS} from all_rows`)
        for (const row of page.rows) yield { table, row: row as Record<string, string | null> }
        if (page.rows.length < FETCH_ROWS) break
      }
      await connection.query('close all_rows')
    }
    await connection.query('commit')
  } finally {
    // A transaction that did not end must not reach the next user of the connection.
    await connection.query('rollback').catch(() => undefined)
    connection.release()
  }
}

/** Begins a transaction that reads one snapshot, for a backup that waits for its target. */
export async function readSnapshot(connection: Connection): Promise<void> {
  await connection.query('begin transaction isolation level repeatable read read only')
  await connection.query(`set local idle_in_transaction_session_timeout = ${IDLE_MILLIS_MAX}`)
}

/** Returns the columns of a table as a list of SQL in which each is text; null without a table. */
export async function readColumns(
  connection: Connection,
  table: IdentityTable,
): Promise<string | null> {
  const { rows } = await connection.query(
    `select string_agg(format('%1$I::text', column_name), ', ' order by ordinal_position)
              as columns
       from information_schema.columns
      where table_schema = current_schema() and table_name = $1`,
    [table],
  )
  const columns = rows[0]?.columns
  return typeof columns === 'string' ? columns : null
}
