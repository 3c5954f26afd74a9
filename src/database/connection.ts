/**
 * A connection that was checked out of the pool. It classifies failures, and is closed instead of
 * reused after a failure that is not an error response of PostgreSQL.
 */
import type { PoolClient, QueryResult } from 'pg'
import { QueryFailure, toQueryFailure } from './errors.ts'

/** A row as the driver returns it: bigint and numeric as text, bytea as Buffer. */
export type RawRow = { readonly [column: string]: unknown }
/** A parameter of a statement. */
export type Parameter =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | readonly (string | number | boolean | Buffer | null)[]

export interface QueryOptions {
  /** Prepares the statement once per connection. */
  readonly prepare?: boolean
  /** Milliseconds to wait for the response; by default the timeout of the pool. */
  readonly timeoutMs?: number
}

export class Connection {
  readonly #client: PoolClient
  #broken = false

  constructor(client: PoolClient) {
    this.#client = client
    // Without a listener a connection that is lost between two statements ends the process.
    client.on('error', this.#onError)
  }

  readonly #onError = (): void => {
    this.#broken = true
  }

  /** Throws QueryFailure. */
  async query(
    sql: string,
    parameters: readonly Parameter[] = [],
    options: QueryOptions = {},
  ): Promise<QueryResult<RawRow>> {
    if (this.#broken) throw new QueryFailure('lost', 'connection: ended before the statement', null)
    const config = {
      text: sql,
      values: parameters.map(toDriver),
      ...(options.prepare === true && { name: statementName(sql) }),
      ...(options.timeoutMs !== undefined && { query_timeout: options.timeoutMs }),
    }
    try {
      return await this.#client.query<RawRow>(config)
    } catch (error) {
      const failure = toQueryFailure(error)
      if (failure.kind === 'lost') this.#broken = true
      throw failure
    }
  }

  /** The process of PostgreSQL as named when the connection was opened; null if it was not. */
  get processId(): number | null {
    // The types of pg do not declare it.
    return (this.#client as { readonly processID?: number | null }).processID ?? null
  }

  /** True while further statements can be sent. */
  get usable(): boolean {
    return !this.#broken
  }

  /** Returns the connection to the pool, or closes it if it is not usable. */
  release(): void {
    this.#client.off('error', this.#onError)
    this.#client.release(this.#broken)
  }

  /** Closes the connection in any case. */
  discard(): void {
    this.#broken = true
    this.release()
  }
}

function toDriver(parameter: Parameter): unknown {
  if (typeof parameter === 'bigint') return parameter.toString()
  if (parameter instanceof Uint8Array && !Buffer.isBuffer(parameter)) return Buffer.from(parameter)
  return parameter
}

const names = new Map<string, string>()

/** The name of a prepared statement. Statements are constants, so the map is bounded. */
function statementName(sql: string): string {
  let name = names.get(sql)
  if (name === undefined) {
    name = `s${names.size + 1}`
    names.set(sql, name)
  }
  return name
}
