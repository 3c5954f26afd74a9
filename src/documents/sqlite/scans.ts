/** Reads all documents and operation records of a snapshot in pages, for a backup. */
import type { Database } from 'bun:sqlite'
import {
  CompactTable,
  CompactTables,
  compactId,
  tableOfBytes,
  ULID_BYTES,
  ulidMicros,
} from '../compact-ids.ts'
import type { CompactTexts } from '../compact-texts.ts'
import type {
  DocumentVersion,
  OperationRecord,
  ScanPage,
  ScanRequest,
  VersionsRequest,
} from '../store.ts'
import { type OperationRow, toOperation } from './operation-rows.ts'

interface VersionRow {
  readonly created_at_micros: number | null
  readonly sequence: number
  readonly text: string | null
}

interface OperationWithId extends OperationRow {
  readonly row: number
  readonly operation_id: Uint8Array
}

const NOTHING = new Uint8Array()
const OPERATIONS = new CompactTable('opn')
/** Rows of a page at most: calls wait while it is read. */
const ROWS_MAX = 16

/**
 * The statements look at one document each: a document with thousands of versions costs as much as
 * one with a single version.
 */
export class Scans {
  readonly #texts: CompactTexts
  readonly #tables = new CompactTables()
  readonly #nextId
  readonly #version
  readonly #newestOperation
  readonly #operations

  constructor(database: Database, texts: CompactTexts) {
    this.#texts = texts
    this.#nextId = database.query<{ id: Uint8Array }, [Uint8Array]>(
      'select id from documents where id > +?1 order by id limit 1',
    )
    this.#version = database.query<VersionRow, [Uint8Array, number, number]>(
      `select created_at_micros, sequence, text
         from (select created_at_micros, sequence, text from documents
                where id = +?1 and sequence <= ?2
                order by sequence desc limit 1)
        where sequence > ?3`,
    )
    this.#newestOperation = database.query<{ row: number | null }, []>(
      'select max(row) as row from operations',
    )
    this.#operations = database.query<OperationWithId, [number, number, number]>(
      `select row, operation_id, fingerprint, commit_sequence, release_id, function, result,
              attempts, created_at_micros
         from operations
        where row > ?1 and row <= ?2
        order by row
        limit ?3`,
    )
  }

  versions(request: VersionsRequest): ScanPage<DocumentVersion> {
    const { snapshot, above, rowsMax, textUnitsMax } = request
    const rows: DocumentVersion[] = []
    let after: Uint8Array = request.after === '' ? NOTHING : compactId(request.after)!
    let textUnits = 0
    const most = Math.min(rowsMax, ROWS_MAX)
    for (let looked = 0; looked < most && textUnits < textUnitsMax; looked++) {
      const next = this.#nextId.get(after)
      if (next === null) return { rows, after: null }
      after = next.id
      const row = this.#version.get(after, snapshot, above)
      if (row === null || (row.text === null && above === 0)) continue
      const version = this.#versionOf(after, row)
      textUnits += version.text?.length ?? 0
      rows.push(version)
    }
    return { rows, after: this.#tables.of(tableOfBytes(after)).idAtEnd(after) }
  }

  #versionOf(id: Uint8Array, row: VersionRow): DocumentVersion {
    const table = tableOfBytes(id)
    return {
      id: this.#tables.of(table).idAtEnd(id),
      createdAtMicros: BigInt(row.created_at_micros ?? ulidMicros(id, id.length - ULID_BYTES)),
      sequence: row.sequence,
      text: row.text === null ? null : this.#texts.expand(table, row.text),
    }
  }

  /** Reads them in the order in which they were stored, up to the newest one at the first page. */
  operations({ after, snapshot, rowsMax, textUnitsMax }: ScanRequest): ScanPage<OperationRecord> {
    const [from, end] = after === '' ? [0, this.#newestOperation.get()!.row ?? 0] : placeOf(after)
    const most = Math.min(rowsMax, ROWS_MAX)
    const rows: OperationRecord[] = []
    let looked = 0
    let textUnits = 0
    let last = from
    for (const row of this.#operations.iterate(from, end, most)) {
      looked += 1
      last = row.row
      if (row.commit_sequence !== null && row.commit_sequence > snapshot) continue
      const record = toOperation(OPERATIONS.idAtEnd(row.operation_id), row)
      rows.push(record)
      textUnits += record.result.length
      if (textUnits >= textUnitsMax) return { rows, after: `${last} ${end}` }
    }
    return { rows, after: looked < most ? null : `${last} ${end}` }
  }
}

function placeOf(after: string): [row: number, end: number] {
  const [row, end] = after.split(' ').map(Number)
  return [row!, end!]
}
