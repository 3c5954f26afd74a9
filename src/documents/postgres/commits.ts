/** Writes a batch with one statement, or a very large one with several inside a transaction. */
import type { Connection, Parameter } from '../../database/connection.ts'
import type { BatchRows } from './batch-rows.ts'
import {
  bigintArray,
  booleanArray,
  byteaArray,
  bytesArray,
  integerArray,
  textArray,
} from './binary-arrays.ts'
import { EpochLost } from './failures.ts'
import { END_BYTES, number } from './rows.ts'

/**
 * The statement of a commit. It locks the row of the epoch, which a server that takes over updates:
 * that server waits for this statement, or this statement finds a newer epoch and stores nothing.
 * It also stores nothing if the previous batch is missing, such as after a failover to a standby
 * that was behind.
 */
const statement = (entries: string, checked: string): string => `
  with held as materialized (
    select from state
     where epoch = $1 and $2::bigint - 1 = (select coalesce(max(batch), 0) from batches)
       for share
  ), batch as (
    insert into batches (batch, latest_sequence, at_micros, written, recorded)
    select $2::bigint, $3::bigint, $4::bigint, $5::bytea[], $9::bytea[] from held
    returning batch
  ), versions as (
    insert into documents (id, sequence, created_at_micros, text)
    select d.* from held, unnest($5::bytea[], $6::bigint[], $7::bigint[], $8::text[]) d
  ), recorded as (
    insert into operations (operation_id, fingerprint, commit_sequence, release_id, function,
                            result, attempts, created_at_micros)
    select o.* from held, unnest($9::bytea[], $10::bytea[], $11::bigint[], $12::text[],
                                 $13::text[], $14::text[], $15::integer[], $16::bigint[]) o
  )${entries}
  select count(*) as stored${checked} from batch`

/** Used for changes of no indexed field, which are most: saves a twentieth of a commit of 25. */
const COMMIT = statement('', '')

/**
 * Ends entries before it starts others with the same key: the count of the ended ones is one row,
 * which PostgreSQL computes after all of them. If a ready index lacks an entry that ends, it is
 * corrupt: the division by zero fails, and nothing is stored.
 */
const COMMIT_WITH_ENTRIES = statement(
  `, ended as (
    update index_entries e
       set until_sequence = lost.sequence, key = e.key || int8send(lost.sequence)
      from held, unnest($17::integer[], $18::bytea[], $19::bigint[], $20::boolean[])
                 lost (index_id, key, sequence, ready)
     where e.index_id = lost.index_id and e.key = lost.key
    returning lost.ready
  ), counted as materialized (
    select count(*) filter (where ready) as ready from ended
  ), started as (
    insert into index_entries (index_id, key, from_sequence, until_sequence)
    select s.* from held, counted,
                    unnest($22::integer[], $23::bytea[], $24::bigint[], $25::bigint[]) s
  )`,
  ', 1 / (count(*) = 0 or (select ready from counted) = $21::bigint)::integer as checked',
)

export interface CommitPosition {
  readonly epoch: number
  /** Number of the last batch that is stored. */
  readonly batch: number
}

/** Stores all parts or none, as the batches after `position`. Throws EpochLost, QueryFailure. */
export async function writeParts(
  connection: Connection,
  position: CommitPosition,
  parts: readonly BatchRows[],
): Promise<void> {
  const single = parts.length === 1
  if (!single) await connection.query('begin isolation level read committed')
  for (const [i, part] of parts.entries()) {
    const parameters = parametersOf(part, position.epoch, position.batch + 1 + i)
    const entries = part.ended.index.length + part.started.index.length > 0
    if (entries) parameters.push(...entryParameters(part))
    const sql = entries ? COMMIT_WITH_ENTRIES : COMMIT
    const { rows } = await connection.query(sql, parameters, { prepare: true })
    if (rows[0] === undefined || number(rows[0], 'stored') !== 1) throw new EpochLost()
  }
  if (!single) await connection.query('commit')
}

function parametersOf(rows: BatchRows, epoch: number, batch: number): Parameter[] {
  const { documents, operations } = rows
  return [
    epoch,
    batch,
    rows.latestSequence,
    rows.atMicros,
    bytesArray(documents.id),
    bigintArray(documents.sequence),
    bigintArray(documents.createdAt),
    textArray(documents.text),
    bytesArray(operations.id),
    byteaArray(operations.fingerprint),
    bigintArray(operations.sequence),
    textArray(operations.releaseId),
    textArray(operations.function),
    textArray(operations.result),
    integerArray(operations.attempts),
    bigintArray(operations.createdAt),
  ]
}

/** The key as it is stored: one that is no longer in use is followed by its end. */
function endedKey(key: Buffer, until: number | null): Buffer {
  if (until === null) return key
  const end = Buffer.alloc(END_BYTES)
  end.writeBigInt64BE(BigInt(until))
  return Buffer.concat([key, end])
}

function entryParameters({ ended, started }: BatchRows): Parameter[] {
  return [
    integerArray(ended.index),
    bytesArray(ended.key),
    bigintArray(ended.sequence),
    booleanArray(ended.ready),
    ended.readyCount,
    integerArray(started.index),
    bytesArray(started.key.map((key, i) => endedKey(key, started.until[i]!))),
    bigintArray(started.from),
    bigintArray(started.until),
  ]
}
