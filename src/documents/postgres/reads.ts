/** Reads of the database. The caller checks before and after that the snapshot is readable. */
import type { Parameter, RawRow } from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { QueryFailure } from '../../database/errors.ts'
import { assert } from '../../errors/assert.ts'
import {
  type CompactTable,
  CompactTables,
  compactId,
  tableOf,
  ULID_BYTES,
  ulidBytes,
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
import type { StoreState } from '../store-state.ts'
import { BatchLoader } from './batch-loader.ts'
import { bytesArray } from './binary-arrays.ts'
import { bytes, END_BYTES, nullableNumber, number, storedDocument, text } from './rows.ts'

/** Rows of the first page of a range; each further page may have twice as many. */
const PAGE_ROWS_MIN = 64
const PAGE_ROWS_MAX = 1_024
/** Text of one page, estimated from the previous pages. */
const PAGE_TEXT_UNITS = 4 * 1024 * 1024

export const VERSIONS = `
  select requested.at, found.*
    from unnest($1::bytea[], $2::bigint[]) with ordinality requested (id, snapshot, at)
   cross join lateral (select v.sequence, v.created_at_micros, v.text
                         from documents v
                        where v.id = requested.id and v.sequence <= requested.snapshot
                        order by v.sequence desc limit 1) found`

const OPERATIONS = `
  select operation_id, fingerprint, commit_sequence, release_id, function, result, attempts,
         created_at_micros
    from operations
   where operation_id = any ($1::bytea[])`

const SEQUENCE_AT = `
  select latest_sequence from batches
   where at_micros <= $1
   order by at_micros desc, batch desc limit 1`

/**
 * The statements of a range. They walk index entries in the order of their primary key, so that the
 * limit ends them. A document is the newest version that the snapshot sees, found by its ID, with
 * which the key ends.
 */
export const RANGE = {
  asc: rangeStatement('asc'),
  desc: rangeStatement('desc'),
}

function rangeStatement(order: 'asc' | 'desc'): string {
  return `
    select e.key, e.until_sequence, d.*
      from index_entries e
      left join lateral (
        select v.sequence, v.created_at_micros, v.text
          from documents v
         where v.id = $6::bytea || substr(
                 e.key,
                 octet_length(e.key) - ${ULID_BYTES - 1}
                   - case when e.until_sequence is null then 0 else ${END_BYTES} end,
                 ${ULID_BYTES})
           and v.sequence <= $4
         order by v.sequence desc limit 1) d on true
     where e.index_id = $1 and e.key >= $2 and e.key < $3
       and e.from_sequence <= $4 and (e.until_sequence is null or e.until_sequence > $4)
     order by e.key ${order}
     limit $5`
}

/**
 * The statements of the keys of a range, in one row: in hexadecimal, with spaces between them. They
 * walk the entries as RANGE does.
 */
export const KEYS = {
  asc: keyStatement('asc'),
  desc: keyStatement('desc'),
}

function keyStatement(order: 'asc' | 'desc'): string {
  return `
    select string_agg(encode(case when found.until_sequence is null then found.key
                                  else substr(found.key, 1, octet_length(found.key) - ${END_BYTES})
                             end, 'hex'), ' ') as keys
      from (select e.key, e.until_sequence
              from index_entries e
             where e.index_id = $1 and e.key >= $2 and e.key < $3
               and e.from_sequence <= $4 and (e.until_sequence is null or e.until_sequence > $4)
             order by e.key ${order}
             limit $5) found`
}

/** Pages in a row whose documents were all in memory, after which only keys are read. */
const CACHED_PAGES = 4
/** The share of missing documents from which pages are read with their documents again. */
const MISSING_SHARE = 1 / 8

/** Decodes its key only when it is read: most lists read the key of their last entry alone. */
class Entry implements KeyedDocument {
  readonly #stored: Buffer
  readonly #table: CompactTable
  readonly document: StoredDocument

  constructor(stored: Buffer, table: CompactTable, document: StoredDocument) {
    this.#stored = stored
    this.#table = table
    this.document = document
  }

  get key(): string {
    return this.#table.keyOf(this.#stored)
  }
}

/** Runs a read, once more if its connection is lost. */
export type ReadQuery = (
  sql: string,
  parameters: readonly Parameter[],
) => Promise<readonly RawRow[]>

interface VersionRequest {
  readonly id: string
  readonly bytes: Buffer
  readonly snapshot: number
}

export class Reads {
  readonly #database: Database
  readonly #state: StoreState
  readonly #newest: NewestVersions
  readonly #texts: CompactTexts
  readonly #tables = new CompactTables()
  readonly #versions: BatchLoader<VersionRequest, StoredDocument | null>
  readonly #operations: BatchLoader<string, OperationRecord | null>
  /** Pages in a row, by index, whose documents were all in memory. */
  readonly #cachedPages = new Map<number, number>()

  constructor(database: Database, state: StoreState, texts: CompactTexts) {
    this.#database = database
    this.#state = state
    this.#newest = state.newest
    this.#texts = texts
    this.#versions = new BatchLoader((requests) => this.#readVersions(requests))
    this.#operations = new BatchLoader((ids) => this.#readOperations(ids))
  }

  async read(id: string, snapshot: number): Promise<StoredDocument | null> {
    const known = this.#knownSequence(snapshot)
    const bytes = compactId(id)
    if (bytes === null) return null
    const version = await this.#versions.load({ id, bytes, snapshot })
    return version === null ? null : this.#keepIfNewest(version, known)
  }

  operation(operationId: string): Promise<OperationRecord | null> {
    return this.#operations.load(operationId)
  }

  async range(request: RangeRequest, table: string): Promise<RangeResult> {
    const walk = new RangeWalk(request)
    const ids = this.#tables.of(table)
    for (let rowsMax = PAGE_ROWS_MIN; ; rowsMax = Math.min(rowsMax * 2, PAGE_ROWS_MAX)) {
      const { documents, textUnits } = walk
      const fitting = Math.ceil((PAGE_TEXT_UNITS * (documents.length || 1)) / (textUnits || 1))
      walk.limitPage(Math.min(rowsMax, fitting))
      const result = walk.add(await this.#page(walk, ids))
      if (result !== null) return result
    }
  }

  /** A sequence that was durable at this time; 0 if there is none. */
  async sequenceAt(micros: bigint): Promise<number> {
    const [row] = await this.#query(SEQUENCE_AT, [micros])
    return row === undefined ? 0 : number(row, 'latest_sequence')
  }

  /** The ID of the server that took the epoch last. */
  async currentWriter(): Promise<string> {
    const [row] = await this.#query('select writer from state', [])
    assert(row !== undefined, 'the state row is missing')
    return text(row, 'writer')
  }

  /**
   * The newest sequence that a read of the snapshot certainly includes when it starts. A snapshot
   * may be ahead of the commits that are acknowledged.
   */
  #knownSequence(snapshot: number): number {
    return Math.min(snapshot, this.#state.latestSequence)
  }

  /** Keeps the version unless a newer one may have been acknowledged during the read. */
  #keepIfNewest(version: StoredDocument, knownSequence: number): StoredDocument {
    return knownSequence >= this.#state.latestSequence ? this.#newest.keep(version) : version
  }

  async #readVersions(
    requested: readonly VersionRequest[],
  ): Promise<readonly (StoredDocument | null)[]> {
    const ids = bytesArray(requested.map(({ bytes }) => bytes))
    const snapshots = requested.map(({ snapshot }) => snapshot)
    const versions: (StoredDocument | null)[] = requested.map(() => null)
    for (const row of await this.#query(VERSIONS, [ids, snapshots])) {
      const at = number(row, 'at') - 1
      const { id, bytes } = requested[at]!
      versions[at] = storedDocument(row, { texts: this.#texts, table: tableOf(id), id, bytes })
    }
    return versions
  }

  async #readOperations(
    requested: readonly string[],
  ): Promise<readonly (OperationRecord | null)[]> {
    const ids = requested.map((operationId) => ulidBytes(operationId) ?? Buffer.alloc(0))
    const records = new Map<string, OperationRecord>()
    for (const row of await this.#query(OPERATIONS, [bytesArray(ids)])) {
      const operationId = this.#tables.of('opn').idAtEnd(bytes(row, 'operation_id'))
      records.set(operationId, toOperation(operationId, row))
    }
    return requested.map((operationId) => records.get(operationId) ?? null)
  }

  /**
   * Reads keys alone where the documents of earlier pages were in memory: to find, send and parse
   * them costs more than the walk. Otherwise one statement reads both, so a list is one round trip.
   */
  #page(request: PageRequest, table: CompactTable): Promise<KeyedDocument[]> {
    const { index, snapshot, limit } = request
    // An entry that is no longer in use comes after its key, and before 0xFF.
    const bounds = [table.bound(request.lower, '\xff'), table.bound(request.upper, '\xff')]
    const parameters = [index, ...bounds, snapshot, limit]
    const areCached = (this.#cachedPages.get(index) ?? 0) >= CACHED_PAGES
    return areCached
      ? this.#keyPage(request, table, parameters)
      : this.#joinedPage(request, table, parameters)
  }

  async #joinedPage(
    { index, snapshot, order }: PageRequest,
    table: CompactTable,
    parameters: readonly Parameter[],
  ): Promise<KeyedDocument[]> {
    const known = this.#knownSequence(snapshot)
    const rows = await this.#query(RANGE[order], [...parameters, Buffer.from(table.prefix)])
    let missing = 0
    const page = rows.map((row) => {
      const stored = bytes(row, 'key')
      const end = stored.length - (row.until_sequence === null ? 0 : END_BYTES)
      const key = stored.subarray(0, end)
      const of = { texts: this.#texts, table: table.name, id: table.idAtEnd(key), bytes: key }
      const version = storedDocument(row, of)
      assert(version !== null, 'an index entry has no document')
      const document = this.#keepIfNewest(version, known)
      if (document === version) missing += 1
      return { key: table.keyOf(key), document }
    })
    const before = this.#cachedPages.get(index) ?? 0
    if (page.length > 0) this.#cachedPages.set(index, missing === 0 ? before + 1 : 0)
    return page
  }

  async #keyPage(
    request: PageRequest,
    table: CompactTable,
    parameters: readonly Parameter[],
  ): Promise<KeyedDocument[]> {
    const { index, snapshot, order } = request
    const [row] = await this.#query(KEYS[order], parameters)
    assert(row !== undefined, 'an aggregate has one row')
    if (row.keys === null) return []
    const keys = text(row, 'keys')
      .split(' ')
      .map((hex) => Buffer.from(hex, 'hex'))
    let missing = 0
    const documents = keys.map((key) => {
      const id = table.idAtEnd(key)
      const cached = this.#newest.find(id, snapshot)
      if (cached === undefined) missing += 1
      return cached ?? this.read(id, snapshot)
    })
    if (missing > documents.length * MISSING_SHARE) this.#cachedPages.set(index, 0)
    const found = missing === 0 ? documents : await Promise.all(documents)
    // A snapshot may be ahead of the commits that are stored: one that deleted a document may have
    // been stored between the two statements. One statement reads both at the same moment.
    if (found.some((document) => document === null)) {
      return this.#joinedPage(request, table, parameters)
    }
    return found.map((document, i) => new Entry(keys[i]!, table, document as StoredDocument))
  }

  /** Runs a read. If its connection is lost, runs it once more on another one. */
  readonly query: ReadQuery = (sql, parameters) => this.#query(sql, parameters)

  async #query(sql: string, parameters: readonly Parameter[]): Promise<readonly RawRow[]> {
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#database.connect()
      try {
        return (await connection.query(sql, parameters, { prepare: true })).rows
      } catch (error) {
        const lost = error instanceof QueryFailure && error.kind === 'lost'
        if (!lost || attempt > 1) throw error
      } finally {
        connection.release()
      }
    }
  }
}

export function toOperation(operationId: string, row: RawRow): OperationRecord {
  return {
    operationId,
    fingerprint: new Uint8Array(bytes(row, 'fingerprint')),
    commitSequence: nullableNumber(row, 'commit_sequence'),
    releaseId: text(row, 'release_id'),
    function: text(row, 'function'),
    result: text(row, 'result'),
    attempts: number(row, 'attempts'),
    createdAtMicros: BigInt(number(row, 'created_at_micros')),
  }
}
