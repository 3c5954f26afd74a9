/** Archives log records, verifies the archive and removes archived records from the hot store. */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import type {
  ArchiveRequest,
  ArchiveState,
  Frontier,
  PruneRequest,
  PruneResult,
} from './log-rows.ts'
import {
  digestOf,
  encodeSegment,
  isWhole,
  type SegmentFiles,
  type SegmentHead,
  segmentName,
} from './log-segments.ts'

interface SegmentRow {
  readonly number: number
  readonly first: number
  readonly last: number
  readonly at: number
  readonly records: number
  readonly bytes: number
  readonly digest: Uint8Array
  readonly verified_at: number | null
}

interface StoredRecord {
  readonly sequence: number
  readonly at: number
  readonly record: string
}

/** Records that one DELETE removes: a batch of new records waits for no more of them. */
const DELETE_RECORDS = 5_000

export class LogArchive {
  readonly #database: Database
  readonly #files: SegmentFiles
  readonly #environmentId: string
  /** Characters of the records that are in no segment. */
  #pending: number

  constructor(database: Database, files: SegmentFiles, environmentId: string) {
    this.#database = database
    this.#files = files
    this.#environmentId = environmentId
    const last = this.#newest()?.last ?? 0
    const sql = 'select sum(length(record)) as value from log_records where sequence > ?1'
    this.#pending = this.#first(sql, last) ?? 0
  }

  /** Counts records that were inserted. */
  added(characters: number): void {
    this.#pending += characters
  }

  /**
   * Writes and verifies one segment where the records that are not archived fill one, or the oldest
   * of them is old enough. Throws where the segment cannot be stored or is not read back whole.
   */
  archive({ now, bytesMax, ageMax }: ArchiveRequest): ArchiveState {
    const previous = this.#newest()
    const oldest = this.#recordsAfter(previous?.last ?? 0).next().value
    if (oldest === undefined) return this.state()
    if (this.#pending < bytesMax && now - oldest.at < ageMax) return this.state()
    const rows: StoredRecord[] = []
    let bytes = 0
    for (const row of this.#recordsAfter(previous?.last ?? 0)) {
      bytes += Buffer.byteLength(row.record) + 1
      if (rows.length > 0 && bytes > bytesMax) break
      rows.push(row)
    }
    this.#write(rows, previous, now)
    this.#pending -= rows.reduce((sum, { record }) => sum + record.length, 0)
    return this.state()
  }

  /** Checks that every segment is there with its length, without reading it. */
  state(): ArchiveState {
    const segments = this.#segments()
    let frontier: Frontier | null = null
    let damaged: string | null = null
    let bytes = 0
    for (const segment of segments) {
      bytes += segment.bytes
      const name = segmentName(segment.number)
      const isThere = this.#files.size(name) === segment.bytes
      if (!isThere || segment.verified_at === null) damaged ??= name
      if (damaged !== null) continue
      const { last: sequence, at, verified_at } = segment
      frontier = { sequence, at, verifiedAt: verified_at! }
    }
    return { frontier, segments: segments.length, bytes, damaged }
  }

  /**
   * Removes records that are old enough and in segments that are whole, the oldest first. Each
   * segment that holds one of them is read again before.
   */
  prune({ before, maximum, apply, now }: PruneRequest): PruneResult {
    const last = this.#lastPrunable(before)
    const oldest = this.#first('select min(sequence) as value from log_records') ?? 1
    this.#verify(oldest, last, now)
    const archive = this.state()
    const end = Math.min(last, archive.frontier?.sequence ?? 0)
    const eligible = this.#first(
      `select count(*) as value from
         (select 1 from log_records where sequence <= ?1 limit ?2)`,
      end,
      maximum,
    )!
    return { eligible, pruned: apply ? this.#remove(end, eligible) : 0, archive }
  }

  #remove(end: number, records: number): number {
    let removed = 0
    while (removed < records) {
      const limit = Math.min(DELETE_RECORDS, records - removed)
      const { changes } = this.#database.run(
        `delete from log_records where sequence in
           (select sequence from log_records where sequence <= ?1 order by sequence limit ?2)`,
        [end, limit],
      )
      if (changes === 0) break
      removed += changes
    }
    return removed
  }

  /** The last record that has no record of `before` or later in front of it. */
  #lastPrunable(before: number): number {
    const newer = this.#first(
      'select min(sequence) as value from log_records where at >= ?1',
      before,
    )
    if (newer !== null) return newer - 1
    return this.#first('select max(sequence) as value from log_records') ?? 0
  }

  /** Reads the segments that overlap with these records, and those that were found damaged. */
  #verify(first: number, last: number, now: number): void {
    let previous: SegmentRow | null = null
    for (const segment of this.#segments()) {
      const isConcerned = segment.first <= last && segment.last >= first
      if (isConcerned || segment.verified_at === null) {
        const bytes = this.#files.get(segmentName(segment.number))
        const head = this.#headOf(segment, previous)
        const verifiedAt = bytes !== null && isWhole(bytes, segment.digest, head) ? now : null
        this.#database.run('update log_segments set verified_at = ?1 where number = ?2', [
          verifiedAt,
          segment.number,
        ])
      }
      previous = segment
    }
  }

  #write(rows: readonly StoredRecord[], previous: SegmentRow | null, now: number): void {
    const number = (previous?.number ?? 0) + 1
    const [first, last] = [rows[0]!.sequence, rows.at(-1)!.sequence]
    const at = rows.reduce((newest, row) => Math.max(newest, row.at), 0)
    const shape = { number, first, last, records: rows.length }
    const head = this.#headOf(shape, previous)
    const bytes = encodeSegment(
      head,
      rows.map(({ sequence, record }) => `{"sequence":${sequence},${record.slice(1)}`),
    )
    const digest = digestOf(bytes)
    this.#files.put(segmentName(number), bytes)
    const stored = this.#files.get(segmentName(number))
    const isReadBack = stored !== null && isWhole(stored, digest, head)
    assert(isReadBack, `${segmentName(number)} was not read back as it was written`)
    this.#database.run(
      `insert into log_segments (number, first, last, at, records, bytes, digest, verified_at)
       values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
      [number, first, last, at, rows.length, bytes.length, digest, now],
    )
  }

  #headOf(
    { number, first, last, records }: Pick<SegmentRow, 'number' | 'first' | 'last' | 'records'>,
    previous: SegmentRow | null,
  ): SegmentHead {
    const environmentId = this.#environmentId
    const digest = previous === null ? null : Buffer.from(previous.digest).toString('hex')
    return { version: 1, environmentId, number, first, last, records, previous: digest }
  }

  #recordsAfter(sequence: number): IterableIterator<StoredRecord> {
    return this.#database
      .query<StoredRecord, [number]>(
        'select sequence, at, record from log_records where sequence > ?1 order by sequence',
      )
      .iterate(sequence)
  }

  #newest(): SegmentRow | null {
    return this.#database
      .query<SegmentRow, []>('select * from log_segments order by number desc limit 1')
      .get()
  }

  #segments(): SegmentRow[] {
    return this.#database.query<SegmentRow, []>('select * from log_segments order by number').all()
  }

  #first(sql: string, ...parameters: number[]): number | null {
    return this.#database.query<{ value: number | null }, number[]>(sql).get(...parameters)!.value
  }
}
