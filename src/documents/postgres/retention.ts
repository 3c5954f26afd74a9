/** Removes what no snapshot at or after a horizon can see, some rows at a time. */
import type { Connection } from '../../database/connection.ts'
import { number } from './rows.ts'
import type { Term } from './terms.ts'

export interface RetentionRequest {
  /** Snapshots before it are gone. At most the latest sequence. */
  readonly horizon: number
  /** Nobody asks any more which sequence was durable before this time. */
  readonly beforeMicros: bigint
  readonly operationsBeforeMicros: bigint
  /** Of each table that one call may look at. */
  readonly rowsMax: number
}

export interface RetentionResult {
  readonly removed: number
  readonly more: boolean
  /** Dropped indexes whose last entry is gone. */
  readonly forgotten: readonly number[]
}

const ENDED = `
  delete from index_entries
   where ctid = any (array(select ctid from index_entries
                            where until_sequence < 9007199254740991 and until_sequence <= $1
                            order by until_sequence limit $2))`

const DROPPED = `
  delete from index_entries
   where ctid = any (array(select ctid from index_entries where index_id = $1
                            order by key limit $2))`

const OPERATIONS = `
  delete from operations
   where ctid = any (array(select ctid from operations where created_at_micros < $1
                            order by created_at_micros limit $2))`

/** The newest one of that time or before tells what was durable then; the last one is read back. */
const BATCHES = `
  delete from batches
   where ctid = any (array(select ctid from batches
                            where at_micros < (select max(at_micros) from batches
                                                where at_micros <= $1)
                              and batch < (select max(batch) from batches)
                            order by at_micros limit $2))`

/** Each version is looked at once: it makes the older ones of its document garbage. */
const VERSIONS = `
  with seen as materialized (
    select id, sequence, text is null as deleted
      from documents
     where sequence <= $1
       and sequence >= (select pruned_sequence from state)
       and (sequence > (select pruned_sequence from state) or id > (select pruned_id from state))
     order by sequence, id limit $2
  ), garbage as (
    delete from documents d using seen s
     where d.id = s.id
       and (d.sequence < s.sequence or (d.sequence = s.sequence and s.deleted))
    returning d.id
  ), progress as (
    update state set pruned_sequence = last.sequence, pruned_id = last.id
      from (select sequence, id from seen order by sequence desc, id desc limit 1) last
    returning state.pruned_sequence
  )
  select (select count(*) from seen) as seen, (select count(*) from garbage) as removed,
         (select count(*) from progress) as moved`

export async function prune(
  connection: Connection,
  term: Term,
  { horizon, beforeMicros, operationsBeforeMicros, rowsMax }: RetentionRequest,
): Promise<RetentionResult> {
  const remove = async (sql: string, bound: number | bigint): Promise<number> =>
    (await connection.query(sql, [bound, rowsMax], { prepare: true })).rowCount ?? 0
  const counts = [await remove(ENDED, horizon)]
  const forgotten: number[] = []
  for (const { id, state } of term.indexes.values()) {
    if (state !== 'dropped') continue
    const count = await remove(DROPPED, id)
    counts.push(count)
    if (count === rowsMax) break
    await connection.query('delete from indexes where id = $1', [id])
    forgotten.push(id)
  }
  counts.push(await remove(OPERATIONS, operationsBeforeMicros))
  // They are not what the caller counts.
  const batches = await remove(BATCHES, beforeMicros)
  const { rows } = await connection.query(VERSIONS, [horizon, rowsMax], { prepare: true })
  const versions = { seen: number(rows[0]!, 'seen'), removed: number(rows[0]!, 'removed') }
  return {
    removed: counts.reduce((sum, count) => sum + count, versions.removed),
    more: [...counts, batches, versions.seen].includes(rowsMax),
    forgotten,
  }
}
