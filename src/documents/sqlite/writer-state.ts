/** What the writing thread keeps in memory of its own file; read again after a failed job. */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import type { IndexRow } from '../index-rows.ts'

/** End of an entry whose key is in use. */
export const IN_USE = Number.MAX_SAFE_INTEGER

export interface WriterState {
  latestSequence: number
  /** Of the next version; rows ascend with sequences. */
  nextRow: number
  /** Of the newest row of sequence_times; null before the first. */
  timeMicros: number | null
  /** Dropped ones too, until their entries are gone. */
  readonly indexes: Map<number, IndexRow>
}

interface IndexColumns {
  readonly id: number
  readonly table_name: string
  readonly fields: string
  readonly state: IndexRow['state']
  readonly ready_sequence: number | null
}

export function loadState(database: Database): WriterState {
  const row = database
    .query<{ latest_sequence: number; next_row: number; time: number | null }, []>(
      `select latest_sequence,
              1 + max(pruned_row, coalesce((select max(row) from documents), 0)) as next_row,
              (select at_micros from sequence_times order by sequence desc limit 1) as time
         from store`,
    )
    .get()
  assert(row !== null, 'the store row is missing')
  return {
    latestSequence: row.latest_sequence,
    nextRow: row.next_row,
    timeMicros: row.time,
    indexes: new Map(loadIndexes(database).map((index) => [index.id, index])),
  }
}

/** In the order of their IDs; dropped ones too. */
export function loadIndexes(database: Database): IndexRow[] {
  return database
    .query<IndexColumns, []>(
      'select id, table_name, fields, state, ready_sequence from indexes order by id',
    )
    .all()
    .map((row) => ({
      id: row.id,
      table: row.table_name,
      fields: parseFields(row.fields),
      state: row.state,
      readySequence: row.ready_sequence,
    }))
}

function parseFields(text: string): string[] {
  let json: unknown = null
  try {
    json = JSON.parse(text)
  } catch {
    // Told by the assertion below.
  }
  assert(
    Array.isArray(json) && json.every((field) => typeof field === 'string'),
    'the fields of an index are not a list of names',
  )
  return json
}
