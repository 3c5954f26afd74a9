/** Reads all documents and operation records of a snapshot in pages, for a backup. */
import type { RawRow } from '../../database/connection.ts'
import {
  CompactTables,
  compactId,
  tableOfBytes,
  ULID_BYTES,
  ulidBytes,
  ulidMicros,
} from '../compact-ids.ts'
import type { CompactTexts } from '../compact-texts.ts'
import type { DocumentVersion, OperationRecord, ScanPage, ScanRequest } from '../store.ts'
import { type ReadQuery, toOperation } from './reads.ts'
import { bytes, nullableNumber, nullableText } from './rows.ts'

const NOTHING = Buffer.alloc(0)

/**
 * Finds the next ID from the one before, so a document with thousands of versions costs as much as
 * one with a single version. The length of a text is known without reading it, so the texts beyond
 * the limit are not read.
 */
export const SCAN = `
  with recursive ids (id, at) as (
    (select id, 1 from documents where id > $1 order by id limit 1)
    union all
    select next.id, ids.at + 1
      from ids
     cross join lateral (select d.id from documents d
                          where d.id > ids.id
                          order by d.id limit 1) next
     where ids.at < $3
  ), found as (
    select ids.id, v.sequence, v.created_at_micros, v.text,
           coalesce(octet_length(v.text), 0) as bytes
      from ids
      left join lateral (select d.sequence, d.created_at_micros, d.text from documents d
                          where d.id = ids.id and d.sequence <= $2
                          order by d.sequence desc limit 1) v
        on true
  )
  select id, sequence, created_at_micros, text
    from (select found.*, sum(bytes) over (order by id) - bytes as bytes_before from found) page
   where bytes_before < $4
   order by id`

/** Newer records are left out by the server: added faster than pages are read, they had no end. */
export const OPERATION_SCAN = `
  select operation_id, fingerprint, commit_sequence, release_id, function, result, attempts,
         created_at_micros
    from (select found.*,
                 sum(octet_length(result)) over (order by operation_id) - octet_length(result)
                   as bytes_before
            from (select * from operations
                   where operation_id > $1 and (commit_sequence is null or commit_sequence <= $4)
                   order by operation_id limit $2) found) page
   where bytes_before < $3
   order by operation_id`

/** Converts rows to versions and records. */
export class ScannedRows {
  readonly #texts: CompactTexts
  readonly #tables = new CompactTables()

  constructor(texts: CompactTexts) {
    this.#texts = texts
  }

  idOf(row: RawRow): string {
    const stored = bytes(row, 'id')
    return this.#tables.of(tableOfBytes(stored)).idAtEnd(stored)
  }

  /** Returns null if no version was found. */
  versionOf(row: RawRow): DocumentVersion | null {
    const sequence = nullableNumber(row, 'sequence')
    if (sequence === null) return null
    const id = bytes(row, 'id')
    const micros =
      nullableNumber(row, 'created_at_micros') ?? ulidMicros(id, id.length - ULID_BYTES)
    const stored = nullableText(row, 'text')
    const text = stored === null ? null : this.#texts.expand(tableOfBytes(id), stored)
    return { id: this.idOf(row), createdAtMicros: BigInt(micros), sequence, text }
  }

  operationOf(row: RawRow): OperationRecord {
    return toOperation(this.#tables.of('opn').idAtEnd(bytes(row, 'operation_id')), row)
  }
}

export class Scans {
  readonly #query: ReadQuery
  readonly #rows: ScannedRows

  constructor(query: ReadQuery, texts: CompactTexts) {
    this.#query = query
    this.#rows = new ScannedRows(texts)
  }

  async versions(request: ScanRequest): Promise<ScanPage<DocumentVersion>> {
    const { snapshot, rowsMax, textUnitsMax } = request
    const after = request.after === '' ? NOTHING : compactId(request.after)!
    const found = await this.#query(SCAN, [after, snapshot, rowsMax, textUnitsMax])
    const rows = found.flatMap((row) => {
      const version = this.#rows.versionOf(row)
      return version === null || version.text === null ? [] : [version]
    })
    const last = found.at(-1)
    return { rows, after: last === undefined ? null : this.#rows.idOf(last) }
  }

  async operations(request: ScanRequest): Promise<ScanPage<OperationRecord>> {
    const { snapshot, rowsMax, textUnitsMax } = request
    const after = request.after === '' ? NOTHING : ulidBytes(request.after)!
    const found = await this.#query(OPERATION_SCAN, [after, rowsMax, textUnitsMax, snapshot])
    const rows = found.map((row) => this.#rows.operationOf(row))
    return { rows, after: rows.at(-1)?.operationId ?? null }
  }
}
