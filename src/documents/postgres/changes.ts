/** Reads what was stored after a sequence in pages, the last batch first, for a backup. */
import type { RawRow } from '../../database/connection.ts'
import type { CompactTexts } from '../compact-texts.ts'
import type { ChangesPage, ChangesRequest, OperationRecord, ScanPage } from '../store.ts'
import type { ReadQuery } from './reads.ts'
import { number } from './rows.ts'
import { ScannedRows } from './scans.ts'

/** No batch, and no place in one, is after it. */
const END = Number.MAX_SAFE_INTEGER

/**
 * The places of the page: the IDs that batches list, in descending order from before the place
 * ($1, $2). A batch that lists none has one row, so that the limit ends the walk over batches too.
 */
const places = (list: 'written' | 'recorded', bound: '>' | '>='): string => `
  select b.batch, b.latest_sequence, b.previous, coalesce(listed.at, 0) as at, listed.id
    from (select last.*, lead(latest_sequence, 1, 0) over (order by batch desc) as previous
            from (select batch, latest_sequence, ${list} from batches
                   where batch <= $1
                   order by batch desc limit $5 + 2) last) b
    left join lateral unnest(b.${list}) with ordinality listed (id, at) on true
   where b.latest_sequence ${bound} $4
     and (b.batch < $1 or coalesce(listed.at, 0) < $2)
   order by b.batch desc, at desc
   limit $5`

/**
 * Finds the newest version of a document at the batch that wrote it, and none at the others that
 * list the document. The texts beyond the limit are not read.
 */
export const CHANGED_VERSIONS = `
  select batch, at, id, sequence, created_at_micros, text
    from (select found.*, sum(bytes) over (order by batch desc, at desc) - bytes as bytes_before
            from (select listed.batch, listed.at, listed.id, v.sequence, v.created_at_micros,
                         v.text, coalesce(octet_length(v.text), 0) as bytes
                    from (${places('written', '>')}) listed
                    left join lateral (select d.sequence, d.created_at_micros, d.text
                                         from documents d
                                        where d.id = listed.id and d.sequence <= $3
                                        order by d.sequence desc limit 1) v
                      on v.sequence > greatest($4, listed.previous)
                     and v.sequence <= listed.latest_sequence) found) page
   where bytes_before < $6
   order by batch desc, at desc`

/**
 * The batch of the sequence may list records that were stored after the one of its operation, which
 * ends the walk.
 */
export const NEW_OPERATIONS = `
  select batch, at, operation_id, fingerprint, commit_sequence, release_id, function, result,
         attempts, created_at_micros
    from (select found.*, sum(bytes) over (order by batch desc, at desc) - bytes as bytes_before
            from (select listed.batch, listed.at, o.*,
                         coalesce(octet_length(o.result), 0) as bytes
                    from (${places('recorded', '>=')}) listed
                    left join operations o
                      on o.operation_id = listed.id
                     and (o.commit_sequence is null or o.commit_sequence <= $3)) found) page
   where bytes_before < $6
   order by batch desc, at desc`

/**
 * Finds whether the batches after the sequence are all there, and whether retention has looked at
 * documents of none of them.
 */
export const KNOWN = `
  select (oldest.batch = 1 or oldest.latest_sequence <= $1)::integer as listed,
         (newest.latest_sequence <= $1 or looked.batch = 0
            or (select latest_sequence from batches
                 where batch >= looked.batch
                 order by batch limit 1) <= $1)::integer as tombstones
    from (select pruned_batch + least(pruned_documents, 1) as batch from state) looked,
         (select batch, latest_sequence from batches order by batch limit 1) oldest,
         (select latest_sequence from batches order by batch desc limit 1) newest`

export class Changes {
  readonly #query: ReadQuery
  readonly #rows: ScannedRows

  constructor(query: ReadQuery, texts: CompactTexts) {
    this.#query = query
    this.#rows = new ScannedRows(texts)
  }

  async versions(request: ChangesRequest): Promise<ChangesPage | null> {
    const found = await this.#page(CHANGED_VERSIONS, request)
    const rows = found.flatMap((row) => this.#rows.versionOf(row) ?? [])
    const page = { rows, after: placeOf(found.at(-1)) }
    // Looked at after the rows: what retention had not reached then, it had not reached before.
    const [known] = await this.#query(KNOWN, [request.above])
    if (known === undefined) return { ...page, hasTombstones: true }
    if (number(known, 'listed') === 0) return null
    return { ...page, hasTombstones: number(known, 'tombstones') === 1 }
  }

  async operations(request: ChangesRequest): Promise<ScanPage<OperationRecord>> {
    const found = await this.#page(NEW_OPERATIONS, request)
    const rows: OperationRecord[] = []
    for (const row of found) {
      if (row.operation_id === null) continue
      const record = this.#rows.operationOf(row)
      if ((record.commitSequence ?? END) <= request.above) return { rows, after: null }
      rows.push(record)
    }
    return { rows, after: placeOf(found.at(-1)) }
  }

  #page(
    sql: string,
    { after, snapshot, above, rowsMax, textUnitsMax }: ChangesRequest,
  ): Promise<readonly RawRow[]> {
    const place = after === '' ? [END, END] : after.split(' ').map(Number)
    return this.#query(sql, [...place, snapshot, above, rowsMax, textUnitsMax])
  }
}

/** Returns the place of the last row, from which the next page goes down; null if there is none. */
function placeOf(last: RawRow | undefined): string | null {
  return last === undefined ? null : `${number(last, 'batch')} ${number(last, 'at')}`
}
