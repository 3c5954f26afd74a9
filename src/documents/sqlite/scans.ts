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
import type { DocumentVersion, OperationRecord, ScanPage, ScanRequest } from '../store.ts'
import { type OperationRow, toOperation } from './operation-rows.ts'

export interface VersionRow {
  readonly created_at_micros: number | null
  readonly sequence: number
  readonly text: string | null
}

export interface OperationWithId extends OperationRow {
  readonly row: number
  readonly operation_id: Uint8Array
}

const NOTHING = new Uint8Array()
const OPERATIONS = new CompactTable('opn')
/** Rows of a page at most: calls wait while it is read. */
export const ROWS_MAX = 16

/** The columns of an OperationWithId. */
export const OPERATION_COLUMNS = `row, operation_id, fingerprint, commit_sequence, release_id,
              function, result, attempts, created_at_micros`

/** Converts rows to versions. */
export class VersionRows {
  readonly #texts: CompactTexts
  readonly #tables = new CompactTables()

  constructor(texts: CompactTexts) {
    this.#texts = texts
  }

  idOf(id: Uint8Array): string {
    return this.#tables.of(tableOfBytes(id)).idAtEnd(id)
  }

  versionOf(id: Uint8Array, row: VersionRow): DocumentVersion {
    return {
      id: this.idOf(id),
      createdAtMicros: BigInt(row.created_at_micros ?? ulidMicros(id, id.length - ULID_BYTES)),
      sequence: row.sequence,
      text: row.text === null ? null : this.#texts.expand(tableOfBytes(id), row.text),
    }
  }
}

/**
 * The statements look at one document each: a document with thousands of versions costs as much as
 * one with a single version.
 */
export class Scans {
  readonly #rows: VersionRows
  readonly #nextId
  readonly #version
  readonly #newestOperation
  readonly #operations

  constructor(database: Database, texts: CompactTexts) {
    this.#rows = new VersionRows(texts)
    this.#nextId = database.query<{ id: Uint8Array }, [Uint8Array]>(
      'select id from documents where id > +?1 order by id limit 1',
    )
    this.#version = database.query<VersionRow, [Uint8Array, number]>(
      `select created_at_micros, sequence, text
         from documents
        where id = +?1 and sequence <= ?2
        order by sequence desc limit 1`,
    )
    this.#newestOperation = database.query<{ row: number | null }, []>(
      'select max(row) as row from operations',
    )
    this.#operations = database.query<OperationWithId, [number, number, number]>(
      `select ${OPERATION_COLUMNS}
         from operations
        where row > ?1 and row <= ?2
        order by row
        limit ?3`,
    )
  }

  versions(request: ScanRequest): ScanPage<DocumentVersion> {
    const { snapshot, rowsMax, textUnitsMax } = request
    const rows: DocumentVersion[] = []
    let after: Uint8Array = request.after === '' ? NOTHING : compactId(request.after)!
    let textUnits = 0
    const most = Math.min(rowsMax, ROWS_MAX)
    for (let looked = 0; looked < most && textUnits < textUnitsMax; looked++) {
      const next = this.#nextId.get(after)
      if (next === null) return { rows, after: null }
      after = next.id
      const row = this.#version.get(after, snapshot)
      if (row === null || row.text === null) continue
      const version = this.#rows.versionOf(after, row)
      textUnits += version.text?.length ?? 0
      rows.push(version)
    }
    return { rows, after: this.#rows.idOf(after) }
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
      const record = operationOf(row)
      rows.push(record)
      textUnits += record.result.length
      if (textUnits >= textUnitsMax) return { rows, after: `${last} ${end}` }
    }
    return { rows, after: looked < most ? null : `${last} ${end}` }
  }
}

export function operationOf(row: OperationWithId): OperationRecord {
  return toOperation(OPERATIONS.idAtEnd(row.operation_id), row)
}

function placeOf(after: string): [row: number, end: number] {
  const [row, end] = after.split(' ').map(Number)
  return [row!, end!]
}
