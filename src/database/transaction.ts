/**
 * Runs the transactions that change identity. Each has one connection, is retried after deadlocks
 * and serialization failures, and reports exactly what is known about its commit.
 */
import { assert } from '../errors/assert.ts'
import { Fault } from '../errors/fault.ts'
import type { Connection, Parameter, RawRow } from './connection.ts'
import type { Database, Reader } from './database.ts'
import { QueryFailure } from './errors.ts'

/** Attempts of one transaction: deadlocks and serialization failures are rare and short. */
const ATTEMPTS_MAX = 5

/** A running transaction. It is valid until its rule returns. */
export class Tx implements Reader {
  readonly #connection: Connection
  #ended = false
  #wrote = false

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async rows(sql: string, parameters: readonly Parameter[]): Promise<RawRow[]> {
    return (await this.#query(sql, parameters)).rows
  }

  /** Returns the number of changed rows. */
  async execute(sql: string, parameters: readonly Parameter[]): Promise<number> {
    return (await this.#query(sql, parameters)).rowCount ?? 0
  }

  async #query(sql: string, parameters: readonly Parameter[]) {
    assert(!this.#ended, 'a transaction was used after its end')
    const result = await this.#connection.query(sql, parameters, { prepare: true })
    // Rules run selects, which change nothing, and statements whose row count is that of changes.
    this.#wrote ||= result.command !== 'SELECT' && result.rowCount !== 0
    return result
  }

  /** True once the transaction has changed anything. */
  get wrote(): boolean {
    return this.#wrote
  }

  end(): void {
    this.#ended = true
  }
}

/**
 * Runs `rule` in one transaction (read committed; rules take the locks that they need) and commits.
 * The rule may run several times, so its effects outside of the transaction must be replaceable.
 * Throws PLATFORM_UNAVAILABLE where nothing was stored and PLATFORM_IDENTITY_RESULT_UNCERTAIN where
 * the connection was lost after the COMMIT of a change was sent. Errors of the rule are thrown
 * after a rollback.
 */
export async function transaction<T>(database: Database, rule: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptOnce(database, rule)
    } catch (error) {
      if (!(error instanceof QueryFailure)) throw error
      if (error.kind !== 'retry' || attempt === ATTEMPTS_MAX) throw error.toFault()
    }
  }
}

async function attemptOnce<T>(database: Database, rule: (tx: Tx) => Promise<T>): Promise<T> {
  const connection = await database.connect()
  const tx = new Tx(connection)
  try {
    await connection.query('begin isolation level read committed')
    const result = await rule(tx)
    tx.end()
    await commit(connection, tx.wrote)
    return result
  } catch (error) {
    tx.end()
    await rollback(connection)
    throw error
  } finally {
    connection.release()
  }
}

async function commit(connection: Connection, wrote: boolean): Promise<void> {
  if (!connection.usable) throw new QueryFailure('lost', 'connection: ended before commit', null)
  let tag: string
  try {
    tag = (await connection.query('commit')).command
  } catch (error) {
    if (!(error instanceof QueryFailure) || error.isRolledBack || !wrote) throw error
    throw new Fault('PLATFORM_IDENTITY_RESULT_UNCERTAIN', { detail: `commit: ${error.message}` })
  }
  // PostgreSQL replies with ROLLBACK where a statement failed and the rule continued.
  assert(tag === 'COMMIT', 'a rule ignored a failed statement')
}

async function rollback(connection: Connection): Promise<void> {
  if (!connection.usable) return
  try {
    await connection.query('rollback')
  } catch {
    // The connection is closed, and PostgreSQL rolls its transaction back.
  }
}

/** Asserts that one row changed, which the same transaction has found and locked before. */
export function expectOneRow(changed: number, expectation: string): void {
  assert(changed === 1, expectation)
}
