/** The stored documents of a prepared Release, for checks that read all of them. */
import { keyInterval, keySuccessor } from '../../documents/keys.ts'
import type { DocumentStore, PhysicalIndex, StoredDocument } from '../../documents/store.ts'
import { nextTurn } from '../../system/event-loop.ts'
import type { PreparedTable } from './prepared-tables.ts'

/** The tables of a Release over one snapshot of the documents. */
export interface StoredTables {
  readonly tables: ReadonlyMap<string, PreparedTable>
  /** Yields the documents of an index of these tables in the order of its keys. */
  scan(index: PhysicalIndex): AsyncIterable<StoredDocument>
}

const PAGE_DOCUMENTS = 500
const PAGE_TEXT_UNITS = 4 * 1024 * 1024

/** Binds the tables to the documents at the sequence `snapshot`. */
export function storedTables(
  store: DocumentStore,
  tables: StoredTables['tables'],
  snapshot: number,
): StoredTables {
  return { tables, scan: (index) => scanIndex(store, index, snapshot) }
}

/** Reads page by page and yields to the event loop in between, so that calls continue. */
async function* scanIndex(
  store: DocumentStore,
  index: PhysicalIndex,
  snapshot: number,
): AsyncGenerator<StoredDocument> {
  let { lower, upper } = keyInterval(index, { equals: [] })
  for (;;) {
    const page = await store.range({
      index: index.id,
      lower,
      upper,
      order: 'asc',
      limit: PAGE_DOCUMENTS,
      textUnitsMax: PAGE_TEXT_UNITS,
      snapshot,
    })
    for (const { document } of page.documents) yield document
    if (page.exhausted) return
    lower = keySuccessor(page.documents.at(-1)!.key)
    await nextTurn()
  }
}
