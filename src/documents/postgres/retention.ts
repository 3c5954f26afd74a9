/** Removes versions and entries that no snapshot at or after the horizon sees, in chunks. */
import type { Connection } from '../../database/connection.ts'
import type { PruneResult } from '../store.ts'
import type { RetentionRequest } from '../store-state.ts'
import { number } from './rows.ts'
import type { Term } from './terms.ts'

export interface RetentionResult extends PruneResult {
  /** IDs of dropped indexes whose last entry was removed. */
  readonly deletedIndexes: readonly number[]
}

/** Batches of one call. Each is a row, which may name thousands of documents. */
const BATCHES_MAX = 100

const ENDED = `
  delete from index_entries
   where ctid = any (array(select ctid from index_entries
                            where until_sequence <= $1
                            order by until_sequence limit $2))`

const DROPPED = `
  delete from index_entries
   where ctid = any (array(select ctid from index_entries where index_id = $1
                            order by key limit $2))`

/**
 * Removes old operation records together with their batches. The last batch stays, since its number
 * is read back, and so do batches whose documents retention has not processed.
 */
export const OPERATIONS = `
  with old as materialized (
    select ctid, batch, recorded from batches
     where at_micros < $1 and batch <= (select pruned_batch from state)
     order by at_micros limit ${BATCHES_MAX}
  ), forgotten as (
    delete from operations
     where operation_id = any (array(select unnest(recorded) from old))
    returning operation_id
  ), gone as (
    delete from batches
     where ctid = any (array(select ctid from old
                              where batch < (select max(batch) from batches)))
  )
  select (select count(*) from old) as batches, (select count(*) from forgotten) as removed`

/**
 * The batches whose documents were not all processed, and how many documents of the first one were.
 * The limit is inside the subquery, so that batches after the horizon are not read.
 */
export const PENDING = `
  select b.batch, cardinality(b.written) as documents, s.pruned_documents
    from state s,
         (select batch, latest_sequence, written from batches
           where batch > (select pruned_batch from state)
           order by batch limit ${BATCHES_MAX}) b
   where b.latest_sequence <= $1
   order by b.batch`

/**
 * Processes each version once, through the batch that wrote it: it makes the older versions of its
 * document garbage, and a tombstone makes itself garbage too.
 */
export const VERSIONS = `
  with seen as materialized (
    select newest.id, newest.sequence, newest.deleted
      from batches b
     cross join unnest(b.written[case when b.batch = $1 then $2::integer + 1 else 1 end :
                                 case when b.batch = $3 then $4 else cardinality(b.written) end])
           written (id)
     cross join lateral (select v.id, v.sequence, v.text is null as deleted
                           from documents v
                          where v.id = written.id and v.sequence <= b.latest_sequence
                          order by v.sequence desc limit 1) newest
     where b.batch between $1 and $3
  ), garbage as (
    delete from documents d using seen s
     where d.id = s.id and d.sequence <= s.sequence and (d.sequence < s.sequence or s.deleted)
    returning d.id
  )
  select count(*) as removed from garbage`

export async function prune(
  connection: Connection,
  term: Term,
  { horizon, operationsBeforeMicros, rowsMax }: RetentionRequest,
): Promise<RetentionResult> {
  const remove = async (sql: string, bound: number): Promise<number> =>
    (await connection.query(sql, [bound, rowsMax], { prepare: true })).rowCount ?? 0
  const counts = [await remove(ENDED, horizon)]
  const deletedIndexes: number[] = []
  for (const { id, state } of term.indexes.rows()) {
    if (state !== 'dropped') continue
    const count = await remove(DROPPED, id)
    counts.push(count)
    if (count === rowsMax) break
    await connection.query('delete from indexes where id = $1', [id])
    deletedIndexes.push(id)
  }
  const versions = await pruneVersions(connection, horizon, rowsMax)
  const operations = await removeOperations(connection, operationsBeforeMicros)
  const removed = counts.reduce((sum, count) => sum + count, versions.removed + operations.removed)
  const more = counts.includes(rowsMax) || versions.more || operations.more
  return { removed, more, deletedIndexes }
}

async function removeOperations(
  connection: Connection,
  beforeMicros: bigint,
): Promise<PruneResult> {
  const { rows } = await connection.query(OPERATIONS, [beforeMicros], { prepare: true })
  const row = rows[0]!
  return { removed: number(row, 'removed'), more: number(row, 'batches') === BATCHES_MAX }
}

async function pruneVersions(
  connection: Connection,
  horizon: number,
  rowsMax: number,
): Promise<PruneResult> {
  const pending = await connection.query(PENDING, [horizon], { prepare: true })
  const [first] = pending.rows
  if (first === undefined) return { removed: 0, more: false }
  const processed = number(first, 'pruned_documents')
  // As many whole batches as fit into the limit, or a part of one that is larger.
  let left = rowsMax + processed
  let last = { batch: 0, documents: 0, of: 0 }
  for (const row of pending.rows) {
    if (left === 0) break
    const of = number(row, 'documents')
    last = { batch: number(row, 'batch'), documents: Math.min(of, left), of }
    left -= last.documents
  }
  const range = [number(first, 'batch'), processed, last.batch, last.documents]
  const { rows } = await connection.query(VERSIONS, range, { prepare: true })
  const whole = last.documents === last.of
  await connection.query(
    'update state set pruned_batch = $1, pruned_documents = $2',
    whole ? [last.batch, 0] : [last.batch - 1, last.documents],
    { prepare: true },
  )
  return {
    removed: number(rows[0]!, 'removed'),
    more: left === 0 || pending.rows.length === BATCHES_MAX,
  }
}
