/**
 * Finds a connection pooler before PostgreSQL that lends a session to each transaction or statement
 * anew, such as pgbouncer with `pool_mode = transaction`. Settings, prepared statements and locks
 * of a session would then reach others, and the server would work by chance.
 */
import { Fault } from '../errors/fault.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import { type StartupCode, toStartupFault } from './errors.ts'
import { readInteger, readText } from './rows.ts'

const REASON =
  'pooler: the connection pooler before PostgreSQL shares sessions between connections; set ' +
  'pool_mode = session there, or name PostgreSQL itself in the URL'
/** Poolers lend the session that was returned last, or each in turn; other clients use some too. */
const ROUNDS = 4

/**
 * Throws `code` where connections do not keep their sessions, and where PostgreSQL does not answer.
 * Costs one statement without a pooler, and needs two connections with one.
 */
export async function requireSessions(database: Database, code: StartupCode): Promise<void> {
  try {
    const connection = await database.connect()
    try {
      if (await isDirect(connection)) return
      if (await sharesSessions(connection, database)) throw new Fault(code, { detail: REASON })
    } finally {
      connection.release()
    }
  } catch (error) {
    throw toStartupFault(error, code)
  }
}

/** Returns whether the peer is PostgreSQL itself: a pooler reports a process ID of its own. */
async function isDirect(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query('select pg_backend_pid() as pid')
  return readInteger(rows[0] ?? {}, 'pid') === connection.processId
}

async function sharesSessions(first: Connection, database: Database): Promise<boolean> {
  const second = await database.connect()
  try {
    const [own, other] = [await sessionOf(first), await sessionOf(second)]
    if (own === other) return true
    for (let round = 0; round < ROUNDS; round++) {
      // Each connection queries twice in a row: a pooler that alternates between two sessions would
      // otherwise look like two fixed sessions.
      for (const [connection, session] of [
        [second, other],
        [first, own],
        [first, own],
      ] as const) {
        if ((await sessionOf(connection)) !== session) return true
      }
      if ((await sessionOf(second)) !== other) return true
    }
    return false
  } finally {
    second.release()
  }
}

/** Returns an identifier of a PostgreSQL session that is unique across servers. */
async function sessionOf(connection: Connection): Promise<string> {
  const { rows } = await connection.query(
    `select pg_backend_pid() || ' ' || pg_postmaster_start_time() as session`,
  )
  return readText(rows[0] ?? {}, 'session')
}
