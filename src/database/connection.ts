/**
 * One checked-out connection. It maps failures and remembers whether it can be given back: one
 * that failed outside of the server's own answers is closed, never reused.
 */
import type { PoolClient, QueryResult } from 'pg'
import { QueryFailure, toQueryFailure } from './errors.ts'

/** A row as the driver gives it: bigint and numeric as text, bytea as Buffer. */
export type RawRow = { readonly [column: string]: unknown }
/** What a statement may be given. */
export type Parameter =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | readonly (string | number | boolean | Buffer | null)[]

export interface QueryOptions {
  /** Prepare the statement once for each connection. */
  readonly prepare?: boolean
  /** Milliseconds to wait for the answer; the pool's unless given. */
  readonly timeoutMs?: number
}

export class Connection {
  readonly #client: PoolClient
  #broken = false

  constructor(client: PoolClient) {
    this.#client = client
    // Without a listener a connection that dies between two statements ends the process.
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

  /** Whether a statement can still be sent. */
  get usable(): boolean {
    return !this.#broken
  }

  /** Gives the connection back, or closes it where it is not usable. */
  release(): void {
    this.#client.off('error', this.#onError)
    this.#client.release(this.#broken)
  }

  /** Closes it, whatever its state. */
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

/** Statements are constants of the source, so the map is as small as the source. */
function statementName(sql: string): string {
  let name = names.get(sql)
  if (name === undefined) {
    name = `s${names.size + 1}`
    names.set(sql, name)
  }
  return name
}
