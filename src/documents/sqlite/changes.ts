/** Reads what was stored after a sequence in pages, the last row first, for a backup. */
import type { Database } from 'bun:sqlite'
import type { CompactTexts } from '../compact-texts.ts'
import type {
  ChangesPage,
  ChangesRequest,
  DocumentVersion,
  OperationRecord,
  ScanPage,
} from '../store.ts'
import {
  OPERATION_COLUMNS,
  type OperationWithId,
  operationOf,
  ROWS_MAX,
  VersionRows,
} from './scans.ts'

interface ChangedRow {
  readonly row: number
  readonly id: Uint8Array
  readonly sequence: number
}

interface NewestRow {
  readonly created_at_micros: number | null
  readonly text: string | null
}

interface RetentionRow {
  readonly latest_sequence: number
  readonly pruned_row: number
  /** The sequence of `pruned_row`; null if retention removed it, which had a tombstone then. */
  readonly pruned_sequence: number | null
  /** The sequence of the first row that retention has not looked at. */
  readonly next_sequence: number | null
  /** The second of `sequence_times`. It is after each horizon of retention so far. */
  readonly next_time: number | null
}

/** No row is after it. */
const END = Number.MAX_SAFE_INTEGER

/**
 * The rows of documents ascend with their sequences, except those of a loader, none of which is
 * after the sequence of a request. The rows of operations are in the order of the commits.
 */
export class Changes {
  readonly #rows: VersionRows
  readonly #changed
  readonly #newest
  readonly #retention
  readonly #operations

  constructor(database: Database, texts: CompactTexts) {
    this.#rows = new VersionRows(texts)
    this.#changed = database.query<ChangedRow, [number, number]>(
      `select row, id, sequence from documents
        where row < ?1
        order by row desc limit ?2`,
    )
    this.#newest = database.query<NewestRow, [number, number]>(
      `select created_at_micros, text
         from documents d
        where row = ?1
          and not exists (select 1 from documents newer
                           where newer.id = d.id and newer.sequence > d.sequence
                             and newer.sequence <= ?2)`,
    )
    this.#retention = database.query<RetentionRow, []>(
      `select latest_sequence, pruned_row,
              (select sequence from documents where row = pruned_row) as pruned_sequence,
              (select sequence from documents where row > pruned_row
                order by row limit 1) as next_sequence,
              (select sequence from sequence_times order by sequence limit 1 offset 1) as next_time
         from store`,
    )
    this.#operations = database.query<OperationWithId, [number, number]>(
      `select ${OPERATION_COLUMNS}
         from operations
        where row < ?1
        order by row desc limit ?2`,
    )
  }

  versions({ after, snapshot, above, rowsMax, textUnitsMax }: ChangesRequest): ChangesPage {
    const most = Math.min(rowsMax, ROWS_MAX)
    const rows: DocumentVersion[] = []
    let last = after === '' ? END : Number(after)
    let textUnits = 0
    let looked = 0
    for (const { row, id, sequence } of this.#changed.all(last, most)) {
      if (sequence <= above || textUnits >= textUnitsMax) break
      last = row
      looked += 1
      const newest = sequence > snapshot ? null : this.#newest.get(row, snapshot)
      if (newest === null) continue
      rows.push(this.#rows.versionOf(id, { ...newest, sequence }))
      textUnits += newest.text?.length ?? 0
    }
    const isEnd = looked < most && textUnits < textUnitsMax
    // Looked at after the rows: what retention had not reached then, it had not reached before.
    return { rows, after: isEnd ? null : String(last), hasTombstones: this.#hasTombstones(above) }
  }

  /** Returns whether retention has certainly looked at no version after the sequence. */
  #hasTombstones(above: number): boolean {
    const row = this.#retention.get()!
    if (row.latest_sequence <= above || row.pruned_row === 0) return true
    if (row.pruned_sequence !== null) return row.pruned_sequence <= above
    if (row.next_sequence !== null && row.next_sequence <= above) return true
    return row.next_time !== null && row.next_time <= above + 1
  }

  operations(request: ChangesRequest): ScanPage<OperationRecord> {
    const { after, snapshot, above, rowsMax, textUnitsMax } = request
    const most = Math.min(rowsMax, ROWS_MAX)
    const rows: OperationRecord[] = []
    let last = after === '' ? END : Number(after)
    let textUnits = 0
    let looked = 0
    for (const row of this.#operations.iterate(last, most)) {
      const sequence = row.commit_sequence
      if (sequence !== null && sequence <= above) return { rows, after: null }
      last = row.row
      looked += 1
      if (sequence !== null && sequence > snapshot) continue
      const record = operationOf(row)
      rows.push(record)
      textUnits += record.result.length
      if (textUnits >= textUnitsMax) return { rows, after: String(last) }
    }
    return { rows, after: looked < most ? null : String(last) }
  }
}
