/**
 * The only way to change identity state. It owns one connection, runs the rule again where the
 * server asks for it, and says exactly what is known about a commit.
 */
import { assert } from '../errors/assert.ts'
import { Fault } from '../errors/fault.ts'
import type { Connection, Parameter, RawRow } from './connection.ts'
import type { Database, Reader } from './database.ts'
import { QueryFailure } from './errors.ts'

/** Runs of one rule at most: deadlocks and serialization failures are rare and short. */
const ATTEMPTS_MAX = 5

/** A running transaction; valid until the rule returns. */
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

  /** Answers how many rows changed. */
  async execute(sql: string, parameters: readonly Parameter[]): Promise<number> {
    return (await this.#query(sql, parameters)).rowCount ?? 0
  }

  async #query(sql: string, parameters: readonly Parameter[]) {
    assert(!this.#ended, 'a transaction was used after its end')
    const result = await this.#connection.query(sql, parameters, { prepare: true })
    // Of the statements that rules run, a select changes nothing and the others count their rows.
    this.#wrote ||= result.command !== 'SELECT' && result.rowCount !== 0
    return result
  }

  /** Whether a commit has anything to store. */
  get wrote(): boolean {
    return this.#wrote
  }

  end(): void {
    this.#ended = true
  }
}

/**
 * Runs `rule` in one transaction (read committed; rules take the locks that they need) and commits.
 * The rule may run several times, so it has no effect outside that a rerun would not replace.
 * Throws PLATFORM_UNAVAILABLE where nothing was stored, PLATFORM_IDENTITY_RESULT_UNCERTAIN where
 * the connection was lost after COMMIT of a change was sent, and whatever the rule throws, with
 * nothing stored.
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
    if (!(error instanceof QueryFailure) || error.certainlyUndone || !wrote) throw error
    throw new Fault('PLATFORM_IDENTITY_RESULT_UNCERTAIN', { detail: `commit: ${error.message}` })
  }
  // The server answers ROLLBACK where a statement had failed and the rule went on regardless.
  assert(tag === 'COMMIT', 'a rule ignored a failed statement')
}

async function rollback(connection: Connection): Promise<void> {
  if (!connection.usable) return
  try {
    await connection.query('rollback')
  } catch {
    // The connection is closed instead of reused; the server undoes what is open on it.
  }
}

/** The row was found and locked by the same transaction, so any other count is our mistake. */
export function expectOneRow(changed: number, expectation: string): void {
  assert(changed === 1, expectation)
}
