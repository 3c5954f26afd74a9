/**
 * Reads the rows of the identity database that changed, for the increments of a backup. Other
 * servers may write to the database, so a change is found by `xmin`, the transaction that wrote
 * the version of a row, not by a hook of this server.
 */
import type { Connection } from '../connection.ts'
import type { Database } from '../database.ts'
import { IDENTITY_TABLES, type IdentityTable, readColumns, readSnapshot } from './all-rows.ts'

export interface ChangedIdentityRow {
  readonly table: IdentityTable
  /** Each column as PostgreSQL casts it to text; null before all rows of the table. */
  readonly row: Readonly<Record<string, string | null>> | null
}

/** Rows of one round trip. */
const FETCH_ROWS = 500
/** Records of the audit are committed within this time after the one that they have. */
const AUDIT_DELAY_MICROS = 600_000_000n
/**
 * The only table that loses rows other than by retention, which would remove them again after a
 * restore. All of its rows are read when it changes.
 */
const WHOLE_TABLE: IdentityTable = 'service_operator_grants'
const AUDIT: IdentityTable = 'service_platform_audit'

/** The state up to which rows were read. */
interface Position {
  /** `pg_current_snapshot()` as text. */
  readonly snapshot: string
  readonly atMicros: bigint
  /** Stands for all rows of `WHOLE_TABLE`. */
  readonly digest: string
  /**
   * Versions of rows that were read, and whose transactions are not before all of the snapshot.
   * They are found again as long as another transaction runs.
   */
  readonly versions: ReadonlySet<string>
}

export class IdentityChanges {
  readonly #database: Database
  #confirmed: Position | null = null
  #read: Position | null = null
  readonly #auditFromMicros: bigint

  /** The first `read` has all rows, but of the audit those from `auditFromMicros` on. */
  constructor(database: Database, auditFromMicros: bigint) {
    this.#database = database
    this.#auditFromMicros = auditFromMicros
  }

  /** Returns false if no transaction of the database cluster has written since the last `read`. */
  async hasChanges(): Promise<boolean> {
    if (this.#confirmed === null) return true
    const [row] = await this.#database.rows('select pg_current_snapshot()::text as snapshot')
    return row?.snapshot !== this.#confirmed.snapshot
  }

  /** Holds one connection until it ends. Throws QueryFailure. */
  async *read(nowMicros: bigint): AsyncGenerator<ChangedIdentityRow> {
    const connection = await this.#database.connect()
    try {
      await readSnapshot(connection)
      const [current] = await rowsOf(
        connection,
        `select pg_current_snapshot()::text as snapshot,
                (select count(*) || ':' || coalesce(sum(hashtextextended(
                          grant_id::text || ':' || xmin::text, 0)), 0)
                   from ${WHOLE_TABLE}) as digest`,
      )
      const { snapshot, digest } = current as { snapshot: string; digest: string }
      const versions = new Set<string>()
      for (const table of IDENTITY_TABLES) {
        if (table === WHOLE_TABLE && digest === this.#confirmed?.digest) continue
        if (table === WHOLE_TABLE) yield { table, row: null }
        yield* this.#readTable(connection, table, versions)
      }
      await connection.query('commit')
      this.#read = { snapshot, digest, versions, atMicros: nowMicros }
    } finally {
      // A transaction that did not end must not reach the next user of the connection.
      await connection.query('rollback').catch(() => undefined)
      connection.release()
    }
  }

  /** The next `read` has what changes after the one that ended last. */
  confirm(): void {
    this.#confirmed = this.#read
  }

  async *#readTable(
    connection: Connection,
    table: IdentityTable,
    versions: Set<string>,
  ): AsyncGenerator<ChangedIdentityRow> {
    const columns = await readColumns(connection, table)
    if (columns === null) return
    const { condition, parameters } = this.#condition(table)
    await connection.query(
      `declare changed_rows no scroll cursor for
        select ctid::text || ':' || xmin::text as changed_version, ${columns}
          from ${table} where ${condition}`,
      parameters,
    )
    for (;;) {
      const page = await rowsOf(connection, `fetch ${FETCH_ROWS} from changed_rows`)
      for (const { changed_version: version, ...row } of page) {
        const id = `${table}:${version}`
        // At the first read the versions are those of all rows, and none of them is new.
        if (this.#confirmed !== null) versions.add(id)
        if (this.#confirmed?.versions.has(id) === true && table !== WHOLE_TABLE) continue
        yield { table, row: row as Record<string, string | null> }
      }
      if (page.length < FETCH_ROWS) break
    }
    await connection.query('close changed_rows')
  }

  #condition(table: IdentityTable) {
    const position = this.#confirmed
    const conditions: string[] = []
    const parameters: string[] = []
    if (table === AUDIT) {
      const from = position?.atMicros ?? this.#auditFromMicros
      parameters.push(String(from - AUDIT_DELAY_MICROS))
      conditions.push(`at_micros >= $${parameters.length}::bigint`)
    }
    if (position !== null && table !== WHOLE_TABLE) {
      // Not what the snapshot sees: it does not name the subtransactions that were running.
      parameters.push(position.snapshot.slice(0, position.snapshot.indexOf(':')))
      conditions.push(isAtLeast('xmin::text::bigint', `$${parameters.length}::bigint`))
    }
    return { condition: conditions.join(' and ') || 'true', parameters }
  }
}

/** SQL for whether a transaction, in 32 bits, is not before one in 64 bits. */
export function isAtLeast(transaction: string, bound: string): string {
  return `(${transaction} - ${bound} % 4294967296 + 4294967296) % 4294967296 < 2147483648`
}

async function rowsOf(connection: Connection, sql: string) {
  return (await connection.query(sql)).rows
}
