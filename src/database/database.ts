/**
 * A pool of connections to a PostgreSQL database, with single statements for identity. Changes of
 * more than one row of identity use transaction.ts.
 */
import { Client, type ClientBase, Pool } from 'pg'
import type { Secret } from '../value/secret.ts'
import { connectReason } from './connect-failures.ts'
import { Connection, type Parameter, type RawRow } from './connection.ts'
import { QueryFailure, toQueryFailure } from './errors.ts'

/** Runs reads: a transaction, or the pool with one statement per read. */
export interface Reader {
  rows(sql: string, parameters: readonly Parameter[]): Promise<RawRow[]>
}

export interface DatabaseOptions {
  readonly url: Secret
  /** Maximum of connections; CONNECTIONS_MAX by default. */
  readonly connectionsMax?: number
  /** Settings of each connection that are applied after SESSION_SETTINGS. */
  readonly settings?: string
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string
  /** Called when an idle connection is lost. The pool replaces it. */
  readonly onIdleLoss?: (detail: string) => void
  /** Milliseconds; tests shorten it. */
  readonly connectTimeoutMs?: number
}

/** Default maximum of the connections of a pool. */
export const CONNECTIONS_MAX = 10
const CONNECT_TIMEOUT_MS = 5_000
/** Slightly longer than `statement_timeout`, for a network that does not respond. */
const QUERY_TIMEOUT_MS = 12_000
/** pg_temp is last in the path: a temporary table must never shadow a table of the schema. */
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
      Client: ClosingClient,
      connectionString: options.url.reveal(),
      max: options.connectionsMax ?? CONNECTIONS_MAX,
      application_name: options.applicationName ?? 'svc-server',
      connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      idleTimeoutMillis: 60_000,
      maxLifetimeSeconds: 3_600,
      keepAlive: true,
      // The pool waits for the promise, although its types do not declare it.
      onConnect: (client: ClientBase) => client.query(settings) as unknown as undefined,
    })
    this.#pool.on('error', (error) => options.onIdleLoss?.(toQueryFailure(error).message))
  }

  /** Checks a connection out, which the caller has to release. Throws QueryFailure. */
  async connect(): Promise<Connection> {
    try {
      return new Connection(await this.#pool.connect())
    } catch (error) {
      const failure = toQueryFailure(error)
      const reason = connectReason(error) ?? failure.message
      throw new QueryFailure('unavailable', reason, failure.sqlstate)
    }
  }

  /** Runs one statement that commits by itself: a read, or a write whose loss is harmless. */
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

  /** Waits for checked-out connections, then closes all. */
  async close(): Promise<void> {
    await this.#pool.end()
  }
}

type ConnectCallback = Extract<Parameters<Client['connect']>[0], (error: Error) => void>

/**
 * Ends a connection that could not be opened. Where the client itself gave up, such as without a
 * password, pg leaves the socket open, and PostgreSQL keeps its process for a minute.
 */
class ClosingClient extends Client {
  override connect(): Promise<Client>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<Client> | undefined {
    if (callback === undefined) return super.connect()
    super.connect((error: Error | null) => {
      if (error) void this.end()
      ;(callback as (error: Error | null, client: Client) => void)(error, this)
    })
    return undefined
  }
}
