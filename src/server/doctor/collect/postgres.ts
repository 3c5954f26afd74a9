/** Readings of a PostgreSQL database, by at most two connections of their own. */

import type { Connection } from '../../../database/connection.ts'
import { CONNECTIONS_MAX, type Database } from '../../../database/database.ts'
import { readPostgresState, readPostgresVersion } from '../../../database/inspection.ts'
import { requireSessions } from '../../../database/poolers.ts'
import { isFault } from '../../../errors/fault.ts'
import type { DatabaseAddress } from '../../../settings/addresses.ts'
import type { System } from '../../../system/system.ts'
import { type PostgresReading, type PostgresVersion, type Reading, skip } from '../readings.ts'
import { readingOf, reasonOf } from './reading-of.ts'

/** Connections of the document store of the main process, and of each application process. */
const DOCUMENT_CONNECTIONS = 9
const PROCESS_CONNECTIONS = 4
const VERSION_MIN = 160_000

/** The most connections that a server with these settings opens. */
export function wantedConnections(
  which: 'identity' | 'documents',
  applicationProcesses: number,
): number {
  if (which === 'identity') return CONNECTIONS_MAX
  const others = applicationProcesses > 1 ? applicationProcesses : 0
  return DOCUMENT_CONNECTIONS + others * PROCESS_CONNECTIONS
}

export interface DatabaseReadings<T> {
  readonly version: Reading<PostgresVersion>
  readonly state: Reading<PostgresReading>
  readonly more: Reading<T>
}

export interface DatabaseOptions<T> {
  readonly database: Database
  readonly address: DatabaseAddress
  readonly connectionsWanted: number
  readonly system: System
  /** Reads that need a connection to a supported PostgreSQL. */
  readonly read: (connection: Connection) => Promise<T>
}

/** Reads what a database says of itself. Closes the database. */
export async function readDatabase<T>(options: DatabaseOptions<T>): Promise<DatabaseReadings<T>> {
  const { database, address, read } = options
  try {
    const connection = await database.connect()
    try {
      const version = await readPostgresVersion(connection)
      if (version.number < VERSION_MIN) {
        const none = skip('PostgreSQL is too old')
        return { version: { value: version }, state: none, more: none }
      }
      const state = await readingOf(() => readState(connection, options))
      const more = await readingOf(() => read(connection))
      return { version: { value: version }, state, more }
    } finally {
      connection.release()
    }
  } catch (error) {
    const { host, port } = address
    const version = { failed: reasonOf(error), command: `pg_isready -h ${host} -p ${port}` }
    const none = skip('the database cannot be reached')
    return { version, state: none, more: none }
  } finally {
    await database.close()
  }
}

async function readState<T>(
  connection: Connection,
  { database, address, connectionsWanted, system }: DatabaseOptions<T>,
): Promise<PostgresReading> {
  const { clockMillis, ...state } = await readPostgresState(connection)
  const clockAheadMillis = clockMillis - system.nowMillis()
  const sharedSessions = await sharing(database)
  return {
    ...state,
    connectionsWanted,
    host: address.host,
    port: address.port,
    isLocal: isLocal(address.host),
    clockAheadMillis,
    sharedSessions,
  }
}

async function sharing(database: Database): Promise<string | null> {
  try {
    await requireSessions(database, 'SERVER_PLATFORM_DATABASE_UNAVAILABLE')
    return null
  } catch (error) {
    return isFault(error) ? (error.detail ?? error.code) : 'it cannot be told'
  }
}

function isLocal(host: string): boolean {
  return (
    host === 'localhost' ||
    host === '[::1]' ||
    host === '::1' ||
    /^127\./.test(host) ||
    host.startsWith('/')
  )
}
