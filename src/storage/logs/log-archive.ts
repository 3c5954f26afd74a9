/**
 * Archives log records, verifies the archive and removes archived records from the hot store. It
 * reads and writes segments in the Product root; the main thread moves them to the S3-compatible
 * store and reads them there.
 */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import { sha256 } from '../../system/digests.ts'
import type {
  ArchiveRequest,
  ArchiveState,
  Expired,
  Frontier,
  PruneRequest,
  PruneResult,
  SegmentRef,
} from './log-rows.ts'
import {
  encodeSegment,
  isUnfinished,
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
  readonly name: string
  readonly place: 'root' | 's3' | 'none'
  readonly removed: 0 | 1
}

interface StoredRecord {
  readonly sequence: number
  readonly at: number
  readonly record: string
}

/** Records that one DELETE removes: a batch of new records waits for no more of them. */
const DELETE_RECORDS = 5_000
/** Segments that are moved before old records are removed again. */
const MOVED_SEGMENTS_MAX = 100

export interface LogArchiveOptions {
  readonly database: Database
  readonly files: SegmentFiles
  readonly environmentId: string
  /** True if segments are moved to the S3-compatible store. */
  readonly isRemote: boolean
}

export class LogArchive {
  readonly #database: Database
  readonly #files: SegmentFiles
  readonly #environmentId: string
  readonly #isRemote: boolean
  /** Characters of the records that are in no segment. */
  #pending: number

  constructor({ database, files, environmentId, isRemote }: LogArchiveOptions) {
    this.#database = database
    this.#files = files
    this.#environmentId = environmentId
    this.#isRemote = isRemote
    const last = this.#newest()?.last ?? 0
    const sql = 'select sum(length(record)) as value from log_records where sequence > ?1'
    this.#pending = this.#first(sql, last) ?? 0
    this.#removeLeftFiles()
  }

  /** Counts records that were inserted. */
  added(characters: number): void {
    this.#pending += characters
  }

  /**
   * Writes and verifies one segment if the records that are not archived fill one, or the oldest
   * of them is old enough. Throws if the segment cannot be stored or is not read back whole.
   */
  archive({ now, bytesMax, ageMax }: ArchiveRequest): ArchiveState {
    const previous = this.#newest()
    const archived = previous?.last ?? 0
    // Not `iterate`: a statement that is not at its end keeps the write-ahead log from restarting.
    const oldest = this.#first(
      'select at as value from log_records where sequence > ?1 order by sequence limit 1',
      archived,
    )
    if (oldest === null) return this.state()
    if (this.#pending < bytesMax && now - oldest < ageMax) return this.state()
    const rows: StoredRecord[] = []
    let bytes = 0
    for (const row of this.#recordsAfter(archived)) {
      bytes += Buffer.byteLength(row.record) + 1
      if (rows.length > 0 && bytes > bytesMax) break
      rows.push(row)
    }
    this.#write(rows, previous, now)
    this.#pending -= rows.reduce((sum, { record }) => sum + record.length, 0)
    return this.state()
  }

  /** Checks that every segment in the root is there with its length, without reading it. */
  state(): ArchiveState {
    const segments = this.#segments()
    let frontier: Frontier | null = null
    let damaged: string | null = null
    let isMoved = true
    let bytes = 0
    for (const segment of segments) {
      bytes += segment.bytes
      const { name, place } = segment
      const isThere = place === 's3' || this.#files.size(name) === segment.bytes
      if (!isThere || segment.verified_at === null) damaged ??= name
      if (this.#isRemote && place === 'root') isMoved = false
      if (damaged !== null || !isMoved) continue
      const { last: sequence, at, verified_at } = segment
      frontier = { sequence, at, verifiedAt: verified_at! }
    }
    return { frontier, segments: segments.length, bytes, damaged }
  }

  /**
   * Removes records that are old enough and in segments that are whole, the oldest first. Each
   * segment that holds one of them is read again before; those in `whole` were read.
   */
  prune({ before, maximum, apply, now, whole }: PruneRequest): PruneResult {
    const last = this.#lastPrunable(before)
    for (const segment of this.#concerned(last)) {
      const isVerified =
        segment.place === 's3' ? whole.includes(segment.number) : this.#isWhole(segment)
      this.#database.run('update log_segments set verified_at = ?1 where number = ?2', [
        isVerified ? now : null,
        segment.number,
      ])
    }
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

  /** Returns the segments in the S3-compatible store that `prune` has to verify. */
  concerned(before: number): readonly SegmentRef[] {
    const segments = this.#concerned(this.#lastPrunable(before))
    return segments.filter(({ place }) => place === 's3').map(toSegmentRef)
  }

  /** Returns the oldest segments that are in the root and belong into the S3-compatible store. */
  unmoved(): readonly SegmentRef[] {
    const segments = this.#segments().filter(({ place }) => place === 'root')
    return segments.slice(0, MOVED_SEGMENTS_MAX).map(toSegmentRef)
  }

  /** The segment was read in the S3-compatible store and found whole. */
  moved(number: number, now: number): void {
    this.#database.run(`update log_segments set place = 's3', verified_at = ?1 where number = ?2`, [
      now,
      number,
    ])
    this.#removeLeftFiles()
  }

  /**
   * Removes the oldest segments whose newest record is before this time and has left the hot store.
   * A segment is marked before its bytes are removed, so that it is never taken for missing.
   */
  expire(before: number): Expired {
    const oldest = this.#first('select min(sequence) as value from log_records')
    const segments = this.#segments()
    const isKept = ({ at, last }: SegmentRow) => at >= before || (oldest !== null && last >= oldest)
    const kept = segments.findIndex(isKept)
    const removed = kept === -1 ? segments : segments.slice(0, kept)
    for (const { number } of removed) {
      this.#database.run('update log_segments set removed = 1 where number = ?1', [number])
    }
    this.#removeLeftFiles()
    const rows = this.#removedRows()
    const start = rows.at(-1)
    return {
      newlyRemoved: removed.length,
      chainStart: start === undefined ? null : toSegmentRef(start),
      remote: rows.filter(({ place }) => place === 's3').map(toSegmentRef),
    }
  }

  /** The object of a removed segment is gone. */
  expired(number: number): void {
    this.#forget(number)
  }

  #removedRows(): SegmentRow[] {
    return this.#database
      .query<SegmentRow, []>('select * from log_segments where removed = 1 order by number')
      .all()
  }

  /** Keeps the newest removed segment, after whose digest the chain continues. */
  #forget(number: number): void {
    this.#database.run(`update log_segments set place = 'none' where number = ?1`, [number])
    this.#database.run(
      `delete from log_segments where removed = 1 and place = 'none'
         and number < (select max(number) from log_segments where removed = 1)`,
    )
  }

  /** Removes files of segments that are elsewhere or removed, and files that were not finished. */
  #removeLeftFiles(): void {
    const rows = this.#database
      .query<SegmentRow, []>(`select * from log_segments where removed = 1 or place <> 'root'`)
      .all()
    const left = new Set(rows.map(({ name }) => name))
    for (const name of this.#files.names()) {
      if (left.has(name) || isUnfinished(name)) this.#files.remove(name)
    }
    for (const { number, removed, place } of rows) {
      if (removed === 1 && place === 'root') this.#forget(number)
    }
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

  /** Segments with records of the hot store up to `last`, and those that were found damaged. */
  #concerned(last: number): SegmentRow[] {
    const oldest = this.#first('select min(sequence) as value from log_records') ?? 1
    return this.#segments().filter((segment) => {
      return (segment.first <= last && segment.last >= oldest) || segment.verified_at === null
    })
  }

  #isWhole(segment: SegmentRow): boolean {
    const bytes = this.#files.get(segment.name)
    const head = this.#headOf(segment, this.#segmentBefore(segment.number))
    return bytes !== null && isWhole(bytes, segment.digest, head)
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
    const digest = sha256(bytes)
    const name = segmentName(number, digest)
    this.#files.put(name, bytes)
    const stored = this.#files.get(name)
    const isReadBack = stored !== null && isWhole(stored, digest, head)
    assert(isReadBack, `${name} was not read back as it was written`)
    this.#database.run(
      `insert into log_segments
         (number, first, last, at, records, bytes, digest, verified_at, name)
       values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`,
      [number, first, last, at, rows.length, bytes.length, digest, now, name],
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

  #segmentBefore(number: number): SegmentRow | null {
    return this.#database
      .query<SegmentRow, [number]>('select * from log_segments where number = ?1 - 1')
      .get(number)
  }

  /** The segments that are not removed. */
  #segments(): SegmentRow[] {
    return this.#database
      .query<SegmentRow, []>('select * from log_segments where removed = 0 order by number')
      .all()
  }

  /** Returns the column `value` of the first row; null if there is none. */
  #first(sql: string, ...parameters: number[]): number | null {
    const row = this.#database.query<{ value: number | null }, number[]>(sql).get(...parameters)
    return row?.value ?? null
  }
}

function toSegmentRef({ number, name, bytes: size, digest }: SegmentRow): SegmentRef {
  return { number, name, size, sha256: Buffer.from(digest).toString('hex') }
}
