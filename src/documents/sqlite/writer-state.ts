/** State of the file in the memory of the writer thread. A failed job causes it to be reloaded. */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import { type IndexRow, IndexTable } from '../index-rows.ts'

export interface WriterState {
  latestSequence: number
  /** Row number of the next version. Rows ascend with sequences. */
  nextRow: number
  /** Time of the newest row of sequence_times; null before the first. */
  timeMicros: number | null
  readonly indexes: IndexTable
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
    indexes: new IndexTable(loadIndexes(database)),
  }
}

/** Loads all index rows in the order of their IDs, dropped ones included. */
function loadIndexes(database: Database): IndexRow[] {
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
    // The assertion below reports it.
  }
  assert(
    Array.isArray(json) && json.every((field) => typeof field === 'string'),
    'the fields of an index are not a list of names',
  )
  return json
}
