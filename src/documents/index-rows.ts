/** Physical indexes as both stores record them. A dropped one stays until its entries are gone. */
import { assert } from '../errors/assert.ts'
import { decodeStored } from '../value/stored.ts'
import type { ValueObject } from '../value/values.ts'
import { encodeTrailer, encodeValue, KEY_BYTES_MAX } from './key-encoding.ts'
import type { IndexDefinition, PhysicalIndex } from './store.ts'

export interface IndexRow extends IndexDefinition {
  readonly id: number
  readonly state: 'building' | 'ready' | 'dropped'
  /** The oldest snapshot that can read the index; null unless it is ready. */
  readonly readySequence: number | null
}

/** The index rows of a store by ID. */
export class IndexTable {
  readonly #rows = new Map<number, IndexRow>()
  /** Cached, since every commit lists the indexes and they only change with a Release. */
  #visible: readonly PhysicalIndex[] | null = null

  constructor(rows: Iterable<IndexRow>) {
    for (const row of rows) this.#rows.set(row.id, row)
  }

  get(id: number): IndexRow | undefined {
    return this.#rows.get(id)
  }

  rows(): Iterable<IndexRow> {
    return this.#rows.values()
  }

  /** Adds the row, or replaces the one with its ID. Returns it. */
  set(row: IndexRow): IndexRow {
    this.#rows.set(row.id, row)
    this.#visible = null
    return row
  }

  delete(id: number): void {
    this.#rows.delete(id)
    this.#visible = null
  }

  /** The indexes that commits have to maintain, in the order of their IDs. */
  listVisible(): readonly PhysicalIndex[] {
    this.#visible ??= [...this.#rows.values()].flatMap((row) => visible(row) ?? [])
    return this.#visible
  }
}

/** Finds the index with this definition that is not dropped. */
export function findIndex(
  indexes: Iterable<IndexRow>,
  { table, fields }: IndexDefinition,
): IndexRow | undefined {
  const fieldsText = JSON.stringify(fields)
  for (const index of indexes) {
    const isEqual = index.table === table && JSON.stringify(index.fields) === fieldsText
    if (isEqual && index.state !== 'dropped') return index
  }
  return undefined
}

/** The index as commits see it; null once it is dropped. */
export function visible({ id, table, fields, state }: IndexRow): PhysicalIndex | null {
  return state === 'dropped' ? null : { id, table, fields, state }
}

/** The key of a stored document, a binary string; null if it is longer than KEY_BYTES_MAX. */
export function storedKey(
  index: IndexDefinition,
  document: { readonly id: string; readonly createdAtMicros: bigint; readonly text: string },
): string | null {
  const fields = decodeStored(document.text)
  assert(fields instanceof Map, 'a document is not an object')
  let key = ''
  for (const field of index.fields) key += encodeValue((fields as ValueObject).get(field))
  key += encodeTrailer(document)
  return key.length > KEY_BYTES_MAX ? null : key
}

/** Bounds of the IDs of a table, "<table>_<ULID>": "`" is the character after "_". */
export function idsOfTable(table: string): { readonly after: string; readonly before: string } {
  return { after: `${table}_`, before: `${table}\`` }
}

/** Length of the IDs of a table, with which its index keys end: the table, "_" and a ULID. */
export function idLength(table: string): number {
  return table.length + 27
}
