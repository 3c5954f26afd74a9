/** Makes, fills and drops physical indexes. The caller owns the SQLite transaction around it. */
import type { Database } from 'bun:sqlite'
import { binaryBytes } from '../../system/binary-strings.ts'
import { findIndex, type IndexRow, idsOfTable, storedKey } from '../index-rows.ts'
import type { IndexDefinition } from '../store.ts'
import { IN_USE, type WriterState } from './writer-state.ts'

/** Commits wait behind a chunk: about 5 ms for these. */
const CHUNK_DOCUMENTS = 256
const CHUNK_TEXT_UNITS = 1024 * 1024

interface NewestVersion {
  readonly id: string
  readonly sequence: number
  readonly created_at_micros: number
  readonly text: string | null
}

export class IndexDefinitions {
  readonly #insert
  readonly #builtId
  readonly #newest
  readonly #insertEntry
  readonly #progress
  readonly #ready
  readonly #drop

  constructor(database: Database) {
    this.#insert = database.prepare<{ id: number }, [string, string]>(
      `insert into indexes (table_name, fields, state, built_id) values (?1, ?2, 'building', '')
       returning id`,
    )
    this.#builtId = database.prepare<{ built_id: string }, [number]>(
      'select built_id from indexes where id = ?1',
    )
    this.#newest = database.prepare<NewestVersion, [string, string, number]>(
      `select d.id, d.sequence, d.created_at_micros, d.text
         from (select id, max(sequence) as sequence
                 from documents indexed by documents_by_version
                where id > ?1 and id < ?2
                group by id order by id limit ?3) newest
         cross join documents d on d.id = newest.id and d.sequence = newest.sequence
        order by newest.id`,
    )
    // A commit may have put the key in already.
    this.#insertEntry = database.prepare<null, [number, Uint8Array, number]>(
      `insert into index_entries (index_id, key, from_sequence, until_sequence)
       values (?1, ?2, ?3, ${IN_USE}) on conflict do nothing`,
    )
    this.#progress = database.prepare<null, [number, string]>(
      'update indexes set built_id = ?2 where id = ?1',
    )
    this.#ready = database.prepare<null, [number, number]>(
      `update indexes set state = 'ready', ready_sequence = ?2 where id = ?1`,
    )
    this.#drop = database.prepare<null, [number]>(
      `update indexes set state = 'dropped', ready_sequence = null where id = ?1`,
    )
  }

  ensure(state: WriterState, definitions: readonly IndexDefinition[]): IndexRow[] {
    return definitions.map((definition) => {
      const known = findIndex(state.indexes.values(), definition)
      if (known !== undefined) return known
      const { table, fields } = definition
      const { id } = this.#insert.get(table, JSON.stringify(fields))!
      return set(state, { id, table, fields, state: 'building', readySequence: null })
    })
  }

  /** One chunk, in the order of document IDs. */
  build(state: WriterState, id: number): IndexRow | 'gone' | 'too-long' {
    const index = state.indexes.get(id)
    if (index === undefined || index.state === 'dropped') return 'gone'
    if (index.state === 'ready') return index
    const from = this.#builtId.get(id)!.built_id
    let last = from
    let units = 0
    let seen = 0
    const { after, before } = idsOfTable(index.table)
    const rows = this.#newest.iterate(from === '' ? after : from, before, CHUNK_DOCUMENTS)
    for (const row of rows) {
      last = row.id
      seen += 1
      if (row.text === null) continue
      const createdAtMicros = BigInt(row.created_at_micros)
      const key = storedKey(index, { id: row.id, createdAtMicros, text: row.text })
      if (key === null) return 'too-long'
      this.#insertEntry.run(id, binaryBytes(key), row.sequence)
      units += row.text.length
      if (units >= CHUNK_TEXT_UNITS) break
    }
    if (seen === CHUNK_DOCUMENTS || units >= CHUNK_TEXT_UNITS) {
      this.#progress.run(id, last)
      return index
    }
    this.#ready.run(id, state.latestSequence)
    return set(state, { ...index, state: 'ready', readySequence: state.latestSequence })
  }

  drop(state: WriterState, id: number): void {
    const index = state.indexes.get(id)
    if (index === undefined || index.state === 'dropped') return
    this.#drop.run(id)
    set(state, { ...index, state: 'dropped', readySequence: null })
  }
}

function set(state: WriterState, index: IndexRow): IndexRow {
  state.indexes.set(index.id, index)
  return index
}
