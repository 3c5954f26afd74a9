/** Prepared reads of the document file. The caller has checked that the snapshot is readable. */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import {
  CompactTable,
  CompactTables,
  compactId,
  tableOf,
  ULID_BYTES,
  ulidBytes,
  ulidMicros,
} from '../compact-ids.ts'
import type { CompactTexts } from '../compact-texts.ts'
import type { NewestVersions } from '../newest-versions.ts'
import { type PageRequest, RangeWalk } from '../range-walk.ts'
import type {
  KeyedDocument,
  OperationRecord,
  RangeRequest,
  RangeResult,
  StoredDocument,
} from '../store.ts'
import { type OperationRow, toOperation } from './operation-rows.ts'

interface VersionRow {
  /** Null where it is the time of the ID. */
  readonly created_at_micros: number | null
  readonly sequence: number
  readonly text: string | null
}

interface EntryRow extends VersionRow {
  readonly key: Uint8Array
}

interface KeyRow {
  readonly key: Uint8Array
}

type KeyParameters = [number, Uint8Array, Uint8Array, number, number]
type RangeParameters = [number, Uint8Array, Uint8Array, number, number, string]

/** Decodes its key only when it is read: most lists read the key of their last entry alone. */
class Entry implements KeyedDocument {
  readonly #table: CompactTable
  readonly #key: Uint8Array
  readonly document: StoredDocument

  constructor(table: CompactTable, key: Uint8Array, document: StoredDocument) {
    this.#table = table
    this.#key = key
    this.document = document
  }

  get key(): string {
    return this.#table.keyOf(this.#key)
  }
}

/** The IDs of operations. */
const OPERATIONS = new CompactTable('opn')

/** Rows of one statement: a generator costs more than the few rows that most reads take. */
const PAGE_ROWS = 64

/** Documents that are looked up one by one: for more of them one joined statement is faster. */
const LOOKUPS_MAX = 4

/**
 * The statements have a `+` before each parameter whose value SQLite would otherwise use to choose
 * a plan: it would plan again with every call, which costs four times the walk itself.
 */
export class Reads {
  readonly #newest: NewestVersions
  readonly #texts: CompactTexts
  readonly #tables = new CompactTables()
  readonly #begin
  readonly #end
  #isInTransaction = false
  readonly #version
  readonly #ascending
  readonly #descending
  readonly #keysAscending
  readonly #keysDescending
  readonly #operation
  readonly #sequenceAt

  constructor(database: Database, newest: NewestVersions, texts: CompactTexts) {
    this.#newest = newest
    this.#texts = texts
    this.#begin = database.query('begin')
    this.#end = database.query('commit')
    this.#version = database.query<VersionRow, [Uint8Array, number]>(
      `select created_at_micros, sequence, text
         from documents
        where id = +?1 and sequence <= ?2
        order by sequence desc limit 1`,
    )
    this.#ascending = database.query<EntryRow, RangeParameters>(rangeStatement('asc'))
    this.#descending = database.query<EntryRow, RangeParameters>(rangeStatement('desc'))
    this.#keysAscending = database.query<KeyRow, KeyParameters>(keyStatement('asc'))
    this.#keysDescending = database.query<KeyRow, KeyParameters>(keyStatement('desc'))
    this.#operation = database.query<OperationRow, [Uint8Array]>(
      `select fingerprint, commit_sequence, release_id, function, result, attempts,
              created_at_micros
         from operations
        where operation_id = ?1`,
    )
    this.#sequenceAt = database.query<{ sequence: number | null }, [number]>(
      'select max(sequence) as sequence from sequence_times where at_micros <= ?1',
    )
  }

  /**
   * Begins a transaction that the following reads share, since taking and releasing the locks of
   * the file costs as much as a read. It must end before a write, or the write-ahead log could
   * never shrink.
   */
  beginTransaction(): void {
    if (this.#isInTransaction) return
    this.#begin.run()
    this.#isInTransaction = true
  }

  endTransaction(): void {
    if (!this.#isInTransaction) return
    this.#isInTransaction = false
    this.#end.run()
  }

  /** `latest` means that no newer sequence is durable, so a version that is found is the newest. */
  read(id: string, snapshot: number, latest: boolean): StoredDocument | null {
    return this.#newest.find(id, snapshot) ?? this.#readVersion(id, snapshot, latest)
  }

  #readVersion(id: string, snapshot: number, latest: boolean): StoredDocument | null {
    const bytes = compactId(id)
    const row = bytes === null ? null : this.#version.get(bytes, snapshot)
    if (bytes === null || row === null || row.text === null) return null
    const version = this.#versionOf(tableOf(id), id, bytes, row)
    return latest ? this.#newest.keep(version) : version
  }

  /** The version in a row. The ULID of its ID ends `bytes`. */
  #versionOf(table: string, id: string, bytes: Uint8Array, row: VersionRow): StoredDocument {
    const micros = row.created_at_micros ?? ulidMicros(bytes, bytes.length - ULID_BYTES)
    const text = this.#texts.expand(table, row.text!)
    return { id, createdAtMicros: BigInt(micros), sequence: row.sequence, text }
  }

  range(request: RangeRequest, table: string, latest: boolean): RangeResult {
    const walk = new RangeWalk(request)
    const ids = this.#tables.of(table)
    for (;;) {
      walk.limitPage(PAGE_ROWS)
      const result = walk.add(this.#page(walk, ids, latest))
      if (result !== null) return result
    }
  }

  /** Reads keys alone: most documents are in memory, and the few others are looked up. */
  #page(request: PageRequest, table: CompactTable, latest: boolean): KeyedDocument[] {
    const { index, snapshot, limit } = request
    const lower = table.bound(request.lower)
    const upper = table.bound(request.upper)
    const statement = request.order === 'asc' ? this.#keysAscending : this.#keysDescending
    const documents: KeyedDocument[] = []
    let lookups = 0
    for (const row of statement.all(index, lower, upper, snapshot, limit)) {
      const id = table.idAtEnd(row.key)
      const known = this.#newest.find(id, snapshot)
      if (known === undefined && ++lookups > LOOKUPS_MAX) {
        const parameters: RangeParameters = [index, lower, upper, snapshot, limit, table.prefix]
        return this.#joined(request, parameters, table, latest)
      }
      const document = known ?? this.#readVersion(id, snapshot, latest)
      assert(document !== null, 'an index entry has no document')
      documents.push(new Entry(table, row.key, document))
    }
    return documents
  }

  #joined(
    request: PageRequest,
    parameters: RangeParameters,
    table: CompactTable,
    latest: boolean,
  ): KeyedDocument[] {
    const statement = request.order === 'asc' ? this.#ascending : this.#descending
    return statement.all(...parameters).map((row) => {
      assert(row.text !== null, 'an index entry has no document')
      const version = this.#versionOf(table.name, table.idAtEnd(row.key), row.key, row)
      return new Entry(table, row.key, latest ? this.#newest.keep(version) : version)
    })
  }

  operation(operationId: string): OperationRecord | null {
    const bytes = ulidBytes(operationId)
    const row = bytes === null ? null : this.#operation.get(bytes)
    return row === null ? null : toOperation(operationId, row)
  }

  /**
   * A sequence that was durable at this time or up to about a second before it; 0 if there is none.
   */
  sequenceAt(micros: bigint): number {
    return this.#sequenceAt.get(Number(micros))?.sequence ?? 0
  }
}

/** The greatest operation ID that has a record; empty where none has. */
export function findNewestOperationId(database: Database): string {
  const row = database
    .query<{ id: Uint8Array | null }, []>('select max(operation_id) as id from operations')
    .get()
  return row === null || row.id === null ? '' : OPERATIONS.idAtEnd(row.id)
}

/**
 * The statement of a range. It walks index entries in the order of their primary key, so that the
 * limit ends it. A document is the newest version that the snapshot sees, found by its ID, with
 * which the key ends.
 */
export function rangeStatement(order: 'asc' | 'desc'): string {
  return `
    select e.key, d.created_at_micros, d.sequence, d.text
      from index_entries e
      left join documents d
        on d.row = (select v.row from documents v
                     where v.id = cast(?6 || substr(e.key, -${ULID_BYTES}) as blob)
                       and v.sequence <= ?4
                     order by v.sequence desc limit 1)
     where e.index_id = +?1 and e.key >= ?2 and e.key < ?3
       and e.from_sequence <= ?4 and (e.until_sequence = 0 or e.until_sequence > ?4)
     order by e.key ${order}
     limit +?5`
}

function keyStatement(order: 'asc' | 'desc'): string {
  return `
    select key from index_entries
     where index_id = +?1 and key >= ?2 and key < ?3
       and from_sequence <= ?4 and (until_sequence = 0 or until_sequence > ?4)
     order by key ${order}
     limit +?5`
}
