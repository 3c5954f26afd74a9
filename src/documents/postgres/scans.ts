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
import type {
  DocumentVersion,
  OperationRecord,
  ScanPage,
  ScanRequest,
  VersionsRequest,
} from '../store.ts'
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
     where ids.at < $4
  ), found as (
    select ids.id, v.sequence, v.created_at_micros, v.text,
           coalesce(octet_length(v.text), 0) as bytes
      from ids
      left join lateral (select d.sequence, d.created_at_micros, d.text from documents d
                          where d.id = ids.id and d.sequence <= $2
                          order by d.sequence desc limit 1) v
        on v.sequence > $3
  )
  select id, sequence, created_at_micros, text
    from (select found.*, sum(bytes) over (order by id) - bytes as bytes_before from found) page
   where bytes_before < $5
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

export class Scans {
  readonly #query: ReadQuery
  readonly #texts: CompactTexts
  readonly #tables = new CompactTables()

  constructor(query: ReadQuery, texts: CompactTexts) {
    this.#query = query
    this.#texts = texts
  }

  async versions(request: VersionsRequest): Promise<ScanPage<DocumentVersion>> {
    const { snapshot, above, rowsMax, textUnitsMax } = request
    const after = request.after === '' ? NOTHING : compactId(request.after)!
    const found = await this.#query(SCAN, [after, snapshot, above, rowsMax, textUnitsMax])
    const rows = found.flatMap((row) => this.#versionOf(row, above) ?? [])
    const last = found.at(-1)
    return { rows, after: last === undefined ? null : this.#idOf(bytes(last, 'id')).id }
  }

  #idOf(stored: Buffer): { readonly table: string; readonly id: string } {
    const table = tableOfBytes(stored)
    return { table, id: this.#tables.of(table).idAtEnd(stored) }
  }

  #versionOf(row: RawRow, above: number): DocumentVersion | null {
    const sequence = nullableNumber(row, 'sequence')
    const stored = nullableText(row, 'text')
    if (sequence === null || (stored === null && above === 0)) return null
    const compact = bytes(row, 'id')
    const { table, id } = this.#idOf(compact)
    const micros =
      nullableNumber(row, 'created_at_micros') ?? ulidMicros(compact, compact.length - ULID_BYTES)
    const text = stored === null ? null : this.#texts.expand(table, stored)
    return { id, createdAtMicros: BigInt(micros), sequence, text }
  }

  async operations(request: ScanRequest): Promise<ScanPage<OperationRecord>> {
    const { snapshot, rowsMax, textUnitsMax } = request
    const after = request.after === '' ? NOTHING : ulidBytes(request.after)!
    const found = await this.#query(OPERATION_SCAN, [after, rowsMax, textUnitsMax, snapshot])
    const idOf = (row: RawRow) => this.#tables.of('opn').idAtEnd(bytes(row, 'operation_id'))
    const rows = found.map((row) => toOperation(idOf(row), row))
    return { rows, after: rows.at(-1)?.operationId ?? null }
  }
}
