/** Removes versions and entries that no snapshot at or after the horizon sees, in chunks. */
import type { Database } from 'bun:sqlite'
import type { PruneResult } from '../store.ts'
import type { RetentionRequest } from '../store-state.ts'
import type { WriterState } from './writer-state.ts'

interface Version {
  readonly row: number
  readonly id: Uint8Array
  readonly sequence: number
  readonly deleted: 0 | 1
}

/** Pages that one call returns to the file system. */
const RETURNED_PAGES_MAX = 64
/** Free pages that stay for the next writes: 4 MiB, and a twentieth of a larger file. */
const KEPT_PAGES_MIN = 1_024
const KEPT_PART = 20

export class Retention {
  readonly #database
  readonly #pages
  readonly #versions
  readonly #deleteOlder
  readonly #deleteVersion
  readonly #setPruned
  readonly #deleteEntries
  readonly #deleteDroppedEntries
  readonly #deleteIndex
  readonly #deleteOperations
  readonly #deleteTimes

  constructor(database: Database) {
    this.#database = database
    this.#pages = database.query<{ free: number; all_pages: number }, []>(
      `select freelist_count as free, page_count as all_pages
         from pragma_freelist_count, pragma_page_count`,
    )
    // typeof() does not load the text, which may be a megabyte.
    this.#versions = database.query<Version, [number]>(
      `select row, id, sequence, typeof(text) = 'null' as deleted
         from documents
        where row > (select pruned_row from store)
        order by row limit ?1`,
    )
    this.#deleteOlder = database.query<null, [Uint8Array, number]>(
      'delete from documents where id = ?1 and sequence < ?2',
    )
    this.#deleteVersion = database.query<null, [number]>('delete from documents where row = ?1')
    this.#setPruned = database.query<null, [number]>('update store set pruned_row = ?1')
    this.#deleteEntries = database.query<null, [number, number]>(
      `delete from index_entries
        where (index_id, key, until_sequence) in
              (select index_id, key, until_sequence from index_entries
                where until_sequence > 0 and until_sequence <= ?1 limit ?2)`,
    )
    this.#deleteDroppedEntries = database.query<null, [number, number]>(
      `delete from index_entries
        where (index_id, key, until_sequence) in
              (select index_id, key, until_sequence from index_entries
                where index_id = ?1 limit ?2)`,
    )
    this.#deleteIndex = database.query<null, [number]>('delete from indexes where id = ?1')
    // Operations are appended in the order of time, so the oldest ones are the first rows.
    this.#deleteOperations = database.query<null, [number, number]>(
      `delete from operations
        where row in (select row from (select row, created_at_micros from operations
                                        order by row limit ?2)
                       where created_at_micros < ?1)`,
    )
    // The newest row at or before the horizon stays: it has the age of the horizon.
    this.#deleteTimes = database.query<null, [number]>(
      `delete from sequence_times
        where sequence < (select max(sequence) from sequence_times where sequence <= ?1)`,
    )
  }

  prune(state: WriterState, request: RetentionRequest): PruneResult {
    const { horizon, rowsMax } = request
    const counts = [this.#deleteEntries.run(horizon, rowsMax).changes]
    for (const index of state.indexes.rows()) {
      if (index.state !== 'dropped') continue
      const { changes } = this.#deleteDroppedEntries.run(index.id, rowsMax)
      counts.push(changes)
      if (changes === rowsMax) break
      this.#deleteIndex.run(index.id)
      state.indexes.delete(index.id)
    }
    const before = Number(request.operationsBeforeMicros)
    counts.push(this.#deleteOperations.run(before, rowsMax).changes)
    this.#deleteTimes.run(horizon)
    const versions = this.#pruneVersions(horizon, rowsMax)
    const morePages = this.#returnPages()
    return {
      removed: counts.reduce((sum, count) => sum + count, versions.removed),
      more: versions.read === rowsMax || counts.includes(rowsMax) || morePages,
    }
  }

  /** Returns some free pages to the file system. Returns whether more are left. */
  #returnPages(): boolean {
    const { free, all_pages: all } = this.#pages.get()!
    const excess = free - Math.max(KEPT_PAGES_MIN, Math.floor(all / KEPT_PART))
    if (excess <= 0) return false
    this.#database.run(`pragma incremental_vacuum(${Math.min(excess, RETURNED_PAGES_MAX)})`)
    return excess > RETURNED_PAGES_MAX
  }

  /** Reads each version once: it makes the older versions of its document garbage. */
  #pruneVersions(horizon: number, rowsMax: number): { read: number; removed: number } {
    let read = 0
    let removed = 0
    let last = 0
    for (const version of this.#versions.all(rowsMax)) {
      if (version.sequence > horizon) break
      read += 1
      last = version.row
      removed += this.#deleteOlder.run(version.id, version.sequence).changes
      if (version.deleted === 1) removed += this.#deleteVersion.run(version.row).changes
    }
    if (last > 0) this.#setPruned.run(last)
    return { read, removed }
  }
}
