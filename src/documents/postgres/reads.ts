/** The reads of the database. Whether a snapshot may be read is decided before, and again after. */
import type { Parameter, RawRow } from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { QueryFailure } from '../../database/errors.ts'
import { assert } from '../../errors/assert.ts'
import { binaryBytes, binaryString } from '../../system/binary-strings.ts'
import { keySuccessor } from '../keys.ts'
import { NewestVersions } from '../newest-versions.ts'
import type {
  KeyedDocument,
  OperationRecord,
  RangeRequest,
  RangeResult,
  StoredDocument,
} from '../store.ts'
import { Gathering } from './gathering.ts'
import { bytes, nullableNumber, number, storedDocument, text } from './rows.ts'

/** Rows of a range's first statement; each further one may have twice as many. */
const PAGE_ROWS_MIN = 64
const PAGE_ROWS_MAX = 1_024
/** Text of one page, as far as the pages before tell. */
const PAGE_TEXT_UNITS = 4 * 1024 * 1024

export const VERSIONS = `
  select asked.at, found.*
    from unnest($1::text[], $2::bigint[]) with ordinality asked (id, snapshot, at)
   cross join lateral (select v.id, v.sequence, v.created_at_micros, v.text
                         from documents v
                        where v.id = asked.id and v.sequence <= asked.snapshot
                        order by v.sequence desc limit 1) found`

const OPERATIONS = `
  select operation_id, fingerprint, commit_sequence, release_id, function, result, attempts,
         created_at_micros
    from operations
   where operation_id = any ($1::text[])`

const SEQUENCE_AT = `
  select latest_sequence from batches
   where at_micros <= $1
   order by at_micros desc, batch desc limit 1`

/**
 * Walks the entries of the index in the order of its primary key, so that it ends with the limit;
 * each document is the newest version that the snapshot sees, found by its ID at the key's end.
 */
export const RANGE = {
  asc: rangeStatement('asc'),
  desc: rangeStatement('desc'),
}

function rangeStatement(order: 'asc' | 'desc'): string {
  return `
    select e.key, d.*
      from index_entries e
      left join lateral (
        select v.id, v.sequence, v.created_at_micros, v.text
          from documents v
         where v.id = convert_from(substr(e.key, octet_length(e.key) - $6::integer + 1), 'UTF8')
           and v.sequence <= $4
         order by v.sequence desc limit 1) d on true
     where e.index_id = $1 and e.key >= $2 and e.key < $3
       and e.from_sequence <= $4 and e.until_sequence > $4
     order by e.key ${order}
     limit $5`
}

interface Version {
  readonly id: string
  readonly snapshot: number
}

export class Reads {
  readonly newest = new NewestVersions()
  readonly #database: Database
  readonly #latestSequence: () => number
  readonly #versions: Gathering<Version, StoredDocument | null>
  readonly #operations: Gathering<string, OperationRecord | null>

  /** `latestSequence` is the newest one that was acknowledged, at any time. */
  constructor(database: Database, latestSequence: () => number) {
    this.#database = database
    this.#latestSequence = latestSequence
    this.#versions = new Gathering((asked) => this.#readVersions(asked))
    this.#operations = new Gathering((asked) => this.#readOperations(asked))
  }

  async read(id: string, snapshot: number): Promise<StoredDocument | null> {
    const seen = this.#seen(snapshot)
    const version = await this.#versions.ask({ id, snapshot })
    return version === null ? null : this.#kept(version, seen)
  }

  operation(operationId: string): Promise<OperationRecord | null> {
    return this.#operations.ask(operationId)
  }

  async range(request: RangeRequest, table: string): Promise<RangeResult> {
    const { limit, textUnitsMax } = request
    const documents: KeyedDocument[] = []
    let { lower, upper } = request
    let units = 0
    for (let rowsMax = PAGE_ROWS_MIN; ; rowsMax = Math.min(rowsMax * 2, PAGE_ROWS_MAX)) {
      const fitting = Math.ceil((PAGE_TEXT_UNITS * (documents.length || 1)) / (units || 1))
      const asked = Math.min(limit - documents.length, rowsMax, fitting)
      const page = await this.#page({ ...request, lower, upper, limit: asked }, table)
      for (const keyed of page) {
        documents.push(keyed)
        units += keyed.document.text.length
        if (units >= textUnitsMax) return { documents, exhausted: false }
      }
      if (page.length < asked) return { documents, exhausted: true }
      if (documents.length === limit) return { documents, exhausted: false }
      const { key } = documents.at(-1)!
      if (request.order === 'asc') lower = keySuccessor(key)
      else upper = key
    }
  }

  /** A sequence that was durable at this time; 0 if none was. */
  async sequenceAt(micros: bigint): Promise<number> {
    const [row] = await this.#ask(SEQUENCE_AT, [micros])
    return row === undefined ? 0 : number(row, 'latest_sequence')
  }

  /** Who took the epoch last. */
  async writer(): Promise<string> {
    const [row] = await this.#ask('select writer from state', [])
    assert(row !== undefined, 'the state row is missing')
    return text(row, 'writer')
  }

  /** A snapshot may be ahead: what is acknowledged up to it later is not in what is read now. */
  #seen(snapshot: number): number {
    return Math.min(snapshot, this.#latestSequence())
  }

  /** While it was on its way a newer version may have been acknowledged. */
  #kept(version: StoredDocument, seen: number): StoredDocument {
    return seen >= this.#latestSequence() ? this.newest.keep(version) : version
  }

  async #readVersions(asked: readonly Version[]): Promise<readonly (StoredDocument | null)[]> {
    const ids = asked.map(({ id }) => id)
    const snapshots = asked.map(({ snapshot }) => snapshot)
    const answers: (StoredDocument | null)[] = asked.map(() => null)
    for (const row of await this.#ask(VERSIONS, [ids, snapshots])) {
      answers[number(row, 'at') - 1] = storedDocument(row)
    }
    return answers
  }

  async #readOperations(asked: readonly string[]): Promise<readonly (OperationRecord | null)[]> {
    const rows = await this.#ask(OPERATIONS, [asked])
    const records = new Map(rows.map((row) => [text(row, 'operation_id'), operationOf(row)]))
    return asked.map((operationId) => records.get(operationId) ?? null)
  }

  async #page(request: RangeRequest, table: string): Promise<KeyedDocument[]> {
    const { index, snapshot, limit, order } = request
    const bounds = [binaryBytes(request.lower), binaryBytes(request.upper)]
    // An ID is its table, "_" and 26 characters.
    const parameters = [index, ...bounds, snapshot, limit, table.length + 27]
    const seen = this.#seen(snapshot)
    const rows = await this.#ask(RANGE[order], parameters)
    return rows.map((row) => {
      assert(row.id !== null, 'an index entry has no document')
      const version = storedDocument(row)
      assert(version !== null, 'an index entry has no document')
      const document = this.#kept(version, seen)
      return { key: binaryString(bytes(row, 'key')), document }
    })
  }

  /** A lost connection is tried once more on another one: reads can be repeated. */
  async #ask(sql: string, parameters: readonly Parameter[]): Promise<readonly RawRow[]> {
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

function operationOf(row: RawRow): OperationRecord {
  return {
    operationId: text(row, 'operation_id'),
    fingerprint: new Uint8Array(bytes(row, 'fingerprint')),
    commitSequence: nullableNumber(row, 'commit_sequence'),
    releaseId: text(row, 'release_id'),
    function: text(row, 'function'),
    result: text(row, 'result'),
    attempts: number(row, 'attempts'),
    createdAtMicros: BigInt(number(row, 'created_at_micros')),
  }
}
