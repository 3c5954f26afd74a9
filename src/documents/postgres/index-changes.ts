/** Creates, fills and drops physical indexes, inside the transactions of the writer. */
import type { Connection } from '../../database/connection.ts'
import { Fault } from '../../errors/fault.ts'
import { CompactTable } from '../compact-ids.ts'
import type { CompactTexts } from '../compact-texts.ts'
import { defaultsColumn, findIndex, idsOfTable } from '../index-rows.ts'
import { storedKey } from '../keys.ts'
import type { IndexDefinition, IndexRow } from '../store.ts'
import { bytes, number, storedDocument } from './rows.ts'
import type { Term } from './terms.ts'

/** Bounds of a chunk. Commits wait for it: about 10 ms with these. */
const CHUNK_DOCUMENTS = 500
const CHUNK_BYTES = 1024 * 1024

const INSERT = `
  insert into indexes (table_name, fields, defaults, state) values ($1, $2, $3, 'building')
  returning id`

/** The newest versions after the last chunk. The first version is taken regardless of its size. */
const CHUNK = `
  select id, sequence, created_at_micros, text
    from (select newest.*,
                 sum(octet_length(text)) over (order by id rows between unbounded preceding
                                                                    and 1 preceding) as before
            from (select distinct on (d.id) d.id, d.sequence, d.created_at_micros, d.text
                    from documents d
                   where d.id > (select greatest(built_id, $2) from indexes where id = $1)
                     and d.id < $3
                   order by d.id, d.sequence desc
                   limit ${CHUNK_DOCUMENTS}) newest) chunk
   where coalesce(before, 0) < ${CHUNK_BYTES}
   order by id`

/** Adds the entries of a chunk. A commit may have added some of them already. */
const FILL = `
  insert into index_entries (index_id, key, from_sequence)
  select $1::integer, e.key, e.sequence
    from unnest($2::bytea[], $3::bigint[]) e (key, sequence)
  on conflict do nothing`

const PROGRESS = 'update indexes set built_id = $2 where id = $1'

const READY = `update indexes set state = 'ready', ready_sequence = $2 where id = $1`

const DROP = `update indexes set state = 'dropped', ready_sequence = null where id = $1`

/** Returns the index of each definition, and creates those that do not exist. */
export async function ensureIndexes(
  connection: Connection,
  term: Term,
  definitions: readonly IndexDefinition[],
): Promise<readonly IndexRow[]> {
  const rows: IndexRow[] = []
  for (const definition of definitions) {
    const known = findIndex([...term.indexes.rows(), ...rows], definition)
    if (known !== undefined) {
      rows.push(known)
      continue
    }
    const { table, fields, defaults } = definition
    const column = defaultsColumn(definition)
    const inserted = await connection.query(INSERT, [table, fields, column])
    const id = number(inserted.rows[0]!, 'id')
    rows.push({ id, table, fields, defaults, state: 'building', readySequence: null })
  }
  return rows
}

/**
 * Fills one chunk, in the order of document IDs. Returns the row after it, null for a dropped
 * index. Throws LIMIT_EXCEEDED where a key is longer than KEY_BYTES_MAX.
 */
export async function fillIndex(
  connection: Connection,
  term: Term,
  texts: CompactTexts,
  id: number,
): Promise<IndexRow | null> {
  const index = term.indexes.get(id)
  if (index === undefined || index.state === 'dropped') return null
  if (index.state === 'ready') return index
  const { after, before } = idsOfTable(index.table)
  const { rows } = await connection.query(CHUNK, [id, Buffer.from(after), Buffer.from(before)], {
    prepare: true,
  })
  const last = rows.at(-1)
  if (last === undefined) {
    await connection.query(READY, [id, term.latestSequence])
    return { ...index, state: 'ready', readySequence: term.latestSequence }
  }
  const table = new CompactTable(index.table)
  const keys: Buffer[] = []
  const sequences: number[] = []
  for (const row of rows) {
    const idBytes = bytes(row, 'id')
    const of = { texts, table: index.table, id: table.idAtEnd(idBytes), bytes: idBytes }
    const document = storedDocument(row, of)
    if (document === null) continue
    const key = storedKey(index, document)
    if (key === null) {
      const detail = 'an index key of a stored document is too long'
      throw new Fault('LIMIT_EXCEEDED', { detail })
    }
    keys.push(table.key(key))
    sequences.push(document.sequence)
  }
  await connection.query(FILL, [id, keys, sequences], { prepare: true })
  await connection.query(PROGRESS, [id, bytes(last, 'id')])
  return index
}

/** Returns the row of the dropped index; null if it was dropped before. */
export async function dropIndex(
  connection: Connection,
  term: Term,
  id: number,
): Promise<IndexRow | null> {
  const index = term.indexes.get(id)
  if (index === undefined || index.state === 'dropped') return null
  await connection.query(DROP, [id])
  return { ...index, state: 'dropped', readySequence: null }
}
