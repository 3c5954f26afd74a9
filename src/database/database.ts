/**
 * A pool of connections to a PostgreSQL database, and single statements of identity on it. What
 * changes more than one row of identity belongs into transaction.ts.
 */
import { type ClientBase, Pool } from 'pg'
import type { Secret } from '../value/secret.ts'
import { Connection, type Parameter, type RawRow } from './connection.ts'
import { QueryFailure, toQueryFailure } from './errors.ts'

/** What a read needs: a transaction, or the pool for one statement of its own. */
export interface Reader {
  rows(sql: string, parameters: readonly Parameter[]): Promise<RawRow[]>
}

export interface DatabaseOptions {
  readonly url: Secret
  /** Connections at most; CONNECTIONS_MAX unless given. */
  readonly connectionsMax?: number
  /** More settings of each connection, after those of all. */
  readonly settings?: string
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string
  /** Called when an idle connection dies; the pool replaces it by itself. */
  readonly onIdleLoss?: (detail: string) => void
  /** Milliseconds; tests shorten it. */
  readonly connectTimeoutMs?: number
}

/** Connections of one pool at most, unless its owner says otherwise. */
export const CONNECTIONS_MAX = 10
const CONNECT_TIMEOUT_MS = 5_000
/** A little longer than the server's own limit, so that a silent network ends a wait too. */
const QUERY_TIMEOUT_MS = 12_000
/** pg_temp last: a temporary table must never stand in for one of ours. */
const SESSION_SETTINGS = `
  set search_path = public, pg_temp;
  set statement_timeout = '10s';
  set lock_timeout = '5s';
  set idle_in_transaction_session_timeout = '15s';
  set default_transaction_isolation = 'read committed';
  set default_transaction_read_only = off`

export class Database implements Reader {
  readonly #pool: Pool

  constructor(options: DatabaseOptions) {
    const settings = `${SESSION_SETTINGS};\n${options.settings ?? ''}`
    this.#pool = new Pool({
      connectionString: options.url.reveal(),
      max: options.connectionsMax ?? CONNECTIONS_MAX,
      application_name: options.applicationName ?? 'svc-server',
      connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      idleTimeoutMillis: 60_000,
      maxLifetimeSeconds: 3_600,
      keepAlive: true,
      // The pool waits for the promise; its types do not say so.
      onConnect: (client: ClientBase) => client.query(settings) as unknown as undefined,
    })
    this.#pool.on('error', (error) => options.onIdleLoss?.(toQueryFailure(error).message))
  }

  /** Throws QueryFailure. The caller releases the connection. */
  async connect(): Promise<Connection> {
    try {
      return new Connection(await this.#pool.connect())
    } catch (error) {
      const failure = toQueryFailure(error)
      throw new QueryFailure('unavailable', failure.message, failure.sqlstate)
    }
  }

  /** One statement, committed by itself: reads, and writes whose loss nobody would notice. */
  async rows(sql: string, parameters: readonly Parameter[] = []): Promise<RawRow[]> {
    let connection: Connection | undefined
    try {
      connection = await this.connect()
      return (await connection.query(sql, parameters, { prepare: true })).rows
    } catch (error) {
      throw error instanceof QueryFailure ? error.toFault() : error
    } finally {
      connection?.release()
    }
  }

  /** Waits for what is checked out. */
  async close(): Promise<void> {
    await this.#pool.end()
  }
}
