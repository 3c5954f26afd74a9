/** Reads pages of the hot store. */
import type { Database } from 'bun:sqlite'
import { nextTurn } from '../../system/event-loop.ts'
import { openOwnDatabase } from '../../system/own-databases.ts'
import type { RecordColumns } from './log-rows.ts'

export interface LogFilter {
  readonly release?: string | undefined
  readonly function?: string | undefined
  readonly request?: string | undefined
  readonly stream?: RecordColumns['stream'] | undefined
  /** The lowest level: 0 debug, 1 info, 2 warn, 3 error. */
  readonly level?: number | undefined
  /** Microseconds; only records of this time and later. */
  readonly since?: number | undefined
}

export interface ReadRecord {
  readonly sequence: number
  readonly record: string
}

/** Rows that one statement looks at, so that it holds up the event loop for some milliseconds. */
const WINDOW_ROWS = 10_000
/** Windows of one page. A page is shorter than its limit where more would have to be read. */
const WINDOWS_MAX = 100

export interface Found {
  /** Ascending. */
  readonly records: readonly ReadRecord[]
  /** Every matching record up to this sequence was returned, or is before `after`. */
  readonly end: number
}

export class LogReads {
  readonly #database: Database

  /** The writer thread created the file and its tables. */
  constructor(path: string) {
    this.#database = openOwnDatabase(path)
    this.#database.run('pragma busy_timeout = 5000')
    this.#database.run('pragma trusted_schema = off')
    this.#database.run('pragma query_only = on')
  }

  close(): void {
    this.#database.close()
  }

  /** Sequences of the oldest and the newest record; null if there is none. */
  range(): { readonly oldest: number; readonly newest: number } | null {
    const row = this.#database
      .query<{ oldest: number | null; newest: number | null }, []>(
        `select (select min(sequence) from log_records) as oldest,
                (select max(sequence) from log_records) as newest`,
      )
      .get()
    const { oldest = null, newest = null } = row ?? {}
    return oldest === null || newest === null ? null : { oldest, newest }
  }

  /** The oldest record and its time in microseconds; null if there is none. */
  oldest(): { readonly sequence: number; readonly at: number } | null {
    return this.#database
      .query<{ sequence: number; at: number }, []>(
        'select sequence, at from log_records order by sequence limit 1',
      )
      .get()
  }

  /** Returns the matching records after a sequence, the oldest first, up to `limit`. */
  async after(after: number, filter: LogFilter, limit: number): Promise<Found> {
    const records: ReadRecord[] = []
    let end = this.#start(after, filter)
    for (let windows = 0; windows < WINDOWS_MAX; windows++) {
      const range = this.range()
      if (range === null || end >= range.newest) return { records, end }
      const from = Math.max(end, range.oldest - 1)
      const to = Math.min(from + WINDOW_ROWS, range.newest)
      const found = this.#select(filter, from, to, 'asc', limit - records.length)
      records.push(...found)
      if (records.length >= limit) return { records, end: records.at(-1)!.sequence }
      end = to
      if (end < range.newest) await nextTurn()
    }
    return { records, end }
  }

  /** Returns the newest `limit` matching records, the oldest of them first. */
  async newest(filter: LogFilter, limit: number): Promise<Found> {
    const range = this.range()
    if (range === null) return { records: [], end: 0 }
    const least = Math.max(range.oldest - 1, this.#start(0, filter))
    const records: ReadRecord[] = []
    for (let to = range.newest, windows = 0; to > least && windows < WINDOWS_MAX; windows++) {
      const from = Math.max(least, to - WINDOW_ROWS)
      records.push(...this.#select(filter, from, to, 'desc', limit - records.length))
      if (records.length >= limit) break
      to = from
      await nextTurn()
    }
    return { records: records.reverse(), end: range.newest }
  }

  /** Returns the sequence after which records can match. */
  #start(after: number, { since }: LogFilter): number {
    if (since === undefined) return after
    // Before the search: a record that the writer adds meanwhile comes after it.
    const newest = this.range()?.newest ?? 0
    const row = this.#database
      .query<{ first: number | null }, [number]>(
        'select min(sequence) as first from log_records where at >= ?1',
      )
      .get(since)
    return Math.max(after, row?.first == null ? newest : row.first - 1)
  }

  #select(
    filter: LogFilter,
    from: number,
    to: number,
    order: 'asc' | 'desc',
    limit: number,
  ): ReadRecord[] {
    const terms = ['sequence > ?1', 'sequence <= ?2']
    const values: (string | number)[] = [from, to, limit]
    const equals = (column: 'release' | 'function' | 'request' | 'stream') => {
      const value = filter[column]
      if (value === undefined) return
      values.push(value)
      terms.push(`${column} = ?${values.length}`)
    }
    for (const column of ['release', 'function', 'request', 'stream'] as const) equals(column)
    // A literal: only then is the index of severe records considered.
    if (filter.level !== undefined) terms.push(`level >= ${Math.trunc(filter.level)}`)
    if (filter.since !== undefined) {
      values.push(filter.since)
      terms.push(`at >= ?${values.length}`)
    }
    return this.#database
      .query<ReadRecord, (string | number)[]>(
        `select sequence, record from log_records where ${terms.join(' and ')}
         order by sequence ${order} limit ?3`,
      )
      .all(...values)
  }
}
