/**
 * The term of a writer: one server has the epoch and may write. A server that takes the epoch waits
 * for the statement that runs under the previous epoch; later statements under it store nothing.
 */
import type { Connection, RawRow } from '../../database/connection.ts'
import { Fault } from '../../errors/fault.ts'
import { IndexTable, parseDefaults } from '../index-rows.ts'
import type { IndexRow } from '../store.ts'
import { EpochLost } from './failures.ts'
import { nullableNumber, nullableText, number, text } from './rows.ts'

/** State of the database that the writer has in memory while no other server writes. */
export interface Term {
  readonly epoch: number
  /** Number of the last batch. */
  batch: number
  latestSequence: number
  readonly indexes: IndexTable
}

export interface Claim {
  readonly environmentId: string
  /** The database that this Environment was opened with before, or null. */
  readonly databaseId: string | null
  /** ID for a database that is new. */
  readonly newDatabaseId: string
  /** ID of this server process. */
  readonly writer: string
}

/**
 * Takes the epoch from the server that has it, and returns the ID of the database. Throws
 * SERVER_DOCUMENT_DATABASE_UNAVAILABLE without a change where the database belongs to another
 * Environment or is not the one that this Environment was opened with before.
 */
export async function beginTerm(
  connection: Connection,
  claim: Claim,
): Promise<{ term: Term; databaseId: string }> {
  const databaseId =
    (await readBinding(connection, claim)) ?? (await bindDatabase(connection, claim))
  const { rows } = await connection.query(
    'update state set epoch = epoch + 1, writer = $1 returning epoch',
    [claim.writer],
  )
  return { databaseId, term: await loadTerm(connection, number(rows[0]!, 'epoch')) }
}

/** Takes a new epoch for the same server, so that no lost statement can store anything later. */
export async function renewTerm(connection: Connection, writer: string): Promise<Term> {
  const { rows } = await connection.query(
    'update state set epoch = epoch + 1 where writer = $1 returning epoch',
    [writer],
  )
  if (rows[0] === undefined) throw new EpochLost()
  return loadTerm(connection, number(rows[0], 'epoch'))
}

/** Returns the ID of the database; null if it does not belong to any Environment yet. */
async function readBinding(connection: Connection, claim: Claim): Promise<string | null> {
  const { rows } = await connection.query('select environment_id, database_id from state')
  if (rows[0] === undefined) {
    if (claim.databaseId !== null) throw rejected('it holds no documents, but this Environment has')
    return null
  }
  if (text(rows[0], 'environment_id') !== claim.environmentId) {
    throw rejected('it belongs to another Environment')
  }
  const databaseId = text(rows[0], 'database_id')
  if (claim.databaseId !== null && claim.databaseId !== databaseId) {
    throw rejected('it is not the one that holds the documents of this Environment')
  }
  return databaseId
}

async function bindDatabase(connection: Connection, claim: Claim): Promise<string> {
  await connection.query(
    `insert into state (environment_id, database_id, writer, epoch) values ($1, $2, $3, 1)
     on conflict do nothing`,
    [claim.environmentId, claim.newDatabaseId, claim.writer],
  )
  return (await readBinding(connection, claim))!
}

function rejected(detail: string): Fault {
  return new Fault('SERVER_DOCUMENT_DATABASE_UNAVAILABLE', { detail })
}

/**
 * Loads the state in statements after the one that took the epoch, so that they see the changes
 * that it waited for.
 */
export async function loadTerm(connection: Connection, epoch: number): Promise<Term> {
  const last = await connection.query(
    'select batch, latest_sequence from batches order by batch desc limit 1',
  )
  const indexes = await connection.query(
    'select id, table_name, fields, defaults, state, ready_sequence from indexes order by id',
  )
  const row = last.rows[0]
  return {
    epoch,
    batch: row === undefined ? 0 : number(row, 'batch'),
    latestSequence: row === undefined ? 0 : number(row, 'latest_sequence'),
    indexes: new IndexTable(indexes.rows.map(indexRow)),
  }
}

function indexRow(row: RawRow): IndexRow {
  const fields = row.fields as string[]
  return {
    id: number(row, 'id'),
    table: text(row, 'table_name'),
    fields,
    defaults: parseDefaults(nullableText(row, 'defaults'), fields),
    state: text(row, 'state') as IndexRow['state'],
    readySequence: nullableNumber(row, 'ready_sequence'),
  }
}
