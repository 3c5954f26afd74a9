/** Creates, fills and drops physical indexes, inside the SQLite transaction of the caller. */
import type { Database } from 'bun:sqlite'
import { CompactTables, checkedCompactId, ULID_BYTES, ulidMicros } from '../compact-ids.ts'
import { defaultsColumn, findIndex, idsOfTable } from '../index-rows.ts'
import { storedKey } from '../keys.ts'
import type { IndexDefinition, IndexRow } from '../store.ts'
import { LIVE } from './batch-writer.ts'
import type { WriterState } from './writer-state.ts'

/** Bounds of a chunk. Commits wait for it: about 5 ms with these. */
const CHUNK_DOCUMENTS = 256
const CHUNK_TEXT_UNITS = 1024 * 1024

interface NewestVersion {
  readonly id: Uint8Array
  readonly sequence: number
  readonly created_at_micros: number | null
  readonly text: string | null
}

export class IndexChanges {
  readonly #tables = new CompactTables()
  readonly #insert
  readonly #builtId
  readonly #newest
  readonly #insertEntry
  readonly #progress
  readonly #ready
  readonly #drop

  constructor(database: Database) {
    this.#insert = database.query<{ id: number }, [string, string, string | null]>(
      `insert into indexes (table_name, fields, defaults, state, built_id)
       values (?1, ?2, ?3, 'building', '') returning id`,
    )
    this.#builtId = database.query<{ built_id: string }, [number]>(
      'select built_id from indexes where id = ?1',
    )
    this.#newest = database.query<NewestVersion, [Uint8Array, Uint8Array, number]>(
      `select d.id, d.sequence, d.created_at_micros, d.text
         from (select id, max(sequence) as sequence
                 from documents indexed by documents_by_version
                where id > ?1 and id < ?2
                group by id order by id limit ?3) newest
         cross join documents d on d.id = newest.id and d.sequence = newest.sequence
        order by newest.id`,
    )
    // A commit may have added the key already.
    this.#insertEntry = database.query<null, [number, Uint8Array, number]>(
      `insert into index_entries (index_id, key, from_sequence, until_sequence)
       values (?1, ?2, ?3, ${LIVE}) on conflict do nothing`,
    )
    this.#progress = database.query<null, [number, string]>(
      'update indexes set built_id = ?2 where id = ?1',
    )
    this.#ready = database.query<null, [number, number]>(
      `update indexes set state = 'ready', ready_sequence = ?2 where id = ?1`,
    )
    this.#drop = database.query<null, [number]>(
      `update indexes set state = 'dropped', ready_sequence = null where id = ?1`,
    )
  }

  ensure(state: WriterState, definitions: readonly IndexDefinition[]): IndexRow[] {
    return definitions.map((definition) => {
      const known = findIndex(state.indexes.rows(), definition)
      if (known !== undefined) return known
      const { table, fields, defaults } = definition
      const column = defaultsColumn(definition)
      const { id } = this.#insert.get(table, JSON.stringify(fields), column)!
      const row = { id, table, fields, defaults, state: 'building', readySequence: null } as const
      return state.indexes.set(row)
    })
  }

  /**
   * Fills one chunk, in the order of document IDs. Returns the row after it, null for a dropped
   * index, or 'too-long' where a key is longer than KEY_BYTES_MAX.
   */
  build(state: WriterState, id: number): IndexRow | null | 'too-long' {
    const index = state.indexes.get(id)
    if (index === undefined || index.state === 'dropped') return null
    if (index.state === 'ready') return index
    const from = this.#builtId.get(id)!.built_id
    let last = from
    let units = 0
    let documents = 0
    const table = this.#tables.of(index.table)
    const { after, before } = idsOfTable(index.table)
    const start = from === '' ? Buffer.from(after) : checkedCompactId(from)
    for (const row of this.#newest.iterate(start, Buffer.from(before), CHUNK_DOCUMENTS)) {
      last = table.idAtEnd(row.id)
      documents += 1
      if (row.text === null) continue
      const micros = row.created_at_micros ?? ulidMicros(row.id, row.id.length - ULID_BYTES)
      const text = state.texts.expand(index.table, row.text)
      const key = storedKey(index, { id: last, createdAtMicros: BigInt(micros), text })
      if (key === null) return 'too-long'
      this.#insertEntry.run(id, table.key(key), row.sequence)
      units += text.length
      if (units >= CHUNK_TEXT_UNITS) break
    }
    if (documents === CHUNK_DOCUMENTS || units >= CHUNK_TEXT_UNITS) {
      this.#progress.run(id, last)
      return index
    }
    this.#ready.run(id, state.latestSequence)
    return state.indexes.set({ ...index, state: 'ready', readySequence: state.latestSequence })
  }

  drop(state: WriterState, id: number): void {
    const index = state.indexes.get(id)
    if (index === undefined || index.state === 'dropped') return
    this.#drop.run(id)
    state.indexes.set({ ...index, state: 'dropped', readySequence: null })
  }
}
