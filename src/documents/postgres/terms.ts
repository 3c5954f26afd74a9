/**
 * The right to write: one server has the epoch. Whoever takes it waits for the statement that runs
 * under the epoch before, and every later statement under that one stores nothing.
 */
import type { Connection, RawRow } from '../../database/connection.ts'
import { Fault } from '../../errors/fault.ts'
import type { IndexRow } from '../index-rows.ts'
import { EpochLost } from './failures.ts'
import { nullableNumber, number, text } from './rows.ts'

/** What the writer knows of the database while nobody else writes. */
export interface Term {
  readonly epoch: number
  /** Number of the last batch. */
  batch: number
  latestSequence: number
  /** Dropped ones too, until their entries are gone. */
  readonly indexes: Map<number, IndexRow>
}

export interface Claim {
  readonly environmentId: string
  /** Null where this Environment was not opened with any database before. */
  readonly databaseId: string | null
  /** Names the database where it is new. */
  readonly newDatabaseId: string
  /** Names this server until it ends. */
  readonly writer: string
}

/**
 * Takes the epoch from whoever has it; answers the database's ID. Throws
 * SERVER_DOCUMENT_DATABASE_UNAVAILABLE, having changed nothing, where it belongs to another
 * Environment or is not the database that this one was opened with before.
 */
export async function beginTerm(
  connection: Connection,
  claim: Claim,
): Promise<{ term: Term; databaseId: string }> {
  const databaseId = (await bound(connection, claim)) ?? (await bind(connection, claim))
  const { rows } = await connection.query(
    'update state set epoch = epoch + 1, writer = $1 returning epoch',
    [claim.writer],
  )
  return { databaseId, term: await loadTerm(connection, number(rows[0]!, 'epoch')) }
}

/** A new epoch of the same server: no statement that was lost on the way can still store. */
export async function renewTerm(connection: Connection, writer: string): Promise<Term> {
  const { rows } = await connection.query(
    'update state set epoch = epoch + 1 where writer = $1 returning epoch',
    [writer],
  )
  if (rows[0] === undefined) throw new EpochLost()
  return loadTerm(connection, number(rows[0], 'epoch'))
}

/** The database's ID if it is ours; null if it is nobody's. */
async function bound(connection: Connection, claim: Claim): Promise<string | null> {
  const { rows } = await connection.query('select environment_id, database_id from state')
  if (rows[0] === undefined) {
    if (claim.databaseId !== null) throw refused('it holds no documents, but this Environment has')
    return null
  }
  if (text(rows[0], 'environment_id') !== claim.environmentId) {
    throw refused('it belongs to another Environment')
  }
  const databaseId = text(rows[0], 'database_id')
  if (claim.databaseId !== null && claim.databaseId !== databaseId) {
    throw refused('it is not the one that holds the documents of this Environment')
  }
  return databaseId
}

async function bind(connection: Connection, claim: Claim): Promise<string> {
  await connection.query(
    `insert into state (environment_id, database_id, writer, epoch) values ($1, $2, $3, 1)
     on conflict do nothing`,
    [claim.environmentId, claim.newDatabaseId, claim.writer],
  )
  return (await bound(connection, claim))!
}

function refused(detail: string): Fault {
  return new Fault('SERVER_DOCUMENT_DATABASE_UNAVAILABLE', { detail })
}

/** In statements behind the one that took the epoch, so that they see what it waited for. */
async function loadTerm(connection: Connection, epoch: number): Promise<Term> {
  const last = await connection.query(
    'select batch, latest_sequence from batches order by batch desc limit 1',
  )
  const indexes = await connection.query(
    'select id, table_name, fields, state, ready_sequence from indexes order by id',
  )
  const row = last.rows[0]
  return {
    epoch,
    batch: row === undefined ? 0 : number(row, 'batch'),
    latestSequence: row === undefined ? 0 : number(row, 'latest_sequence'),
    indexes: new Map(indexes.rows.map((each) => [number(each, 'id'), indexRow(each)])),
  }
}

function indexRow(row: RawRow): IndexRow {
  return {
    id: number(row, 'id'),
    table: text(row, 'table_name'),
    fields: row.fields as string[],
    state: text(row, 'state') as IndexRow['state'],
    readySequence: nullableNumber(row, 'ready_sequence'),
  }
}
