/** State of the file in the memory of the writer thread. A failed job causes it to be reloaded. */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import { CompactTexts, parseNames } from '../compact-texts.ts'
import { IndexTable, parseDefaults, parsed, parseFieldShape } from '../index-rows.ts'
import type { IndexRow } from '../store.ts'

export interface WriterState {
  latestSequence: number
  /** Row number of the next version. Rows ascend with sequences. */
  nextRow: number
  /** Time of the newest row of sequence_times; null before the first. */
  timeMicros: number | null
  readonly indexes: IndexTable
  readonly texts: CompactTexts
}

interface IndexColumns {
  readonly id: number
  readonly table_name: string
  readonly fields: string
  readonly defaults: string | null
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
    texts: loadTexts(database),
  }
}

/** Loads all index rows in the order of their IDs, dropped ones included. */
function loadIndexes(database: Database): IndexRow[] {
  return database
    .query<IndexColumns, []>(
      'select id, table_name, fields, defaults, state, ready_sequence from indexes order by id',
    )
    .all()
    .map((row) => {
      const fields = parseFields(row.fields)
      return {
        id: row.id,
        table: row.table_name,
        fields,
        defaults: parseDefaults(row.defaults, fields),
        state: row.state,
        readySequence: row.ready_sequence,
      }
    })
}

function parseFields(text: string): string[] {
  const json = parsed(text)
  assert(
    Array.isArray(json) && json.every((field) => typeof field === 'string'),
    'the fields of an index are not a list of names',
  )
  return json
}

/** Loads the field names of all tables that stored texts have as codes. */
export function loadTexts(database: Database): CompactTexts {
  const texts = new CompactTexts()
  const rows = database
    .query<{ table_name: string; names: string }, []>('select table_name, names from field_shapes')
    .all()
  for (const row of rows) texts.set(row.table_name, parseNames(row.names))
  return texts
}

/** Loads the field shapes of all tables. */
export function loadFieldShapes(database: Database): Map<string, FieldShape> {
  const rows = database
    .query<{ table_name: string; shape: string }, []>('select table_name, shape from field_shapes')
    .all()
  return new Map(rows.map((row) => [row.table_name, parseFieldShape(row.shape)]))
}
