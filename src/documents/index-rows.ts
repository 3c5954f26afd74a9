/** Physical indexes as both stores record them. A dropped one stays until its entries are gone. */
import { assert } from '../errors/assert.ts'
import { type FieldShape, isFieldShape } from '../value/schema/field-shapes.ts'
import type { IndexDefinition, IndexRow, PhysicalIndex } from './store.ts'

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

/** Returns a text that is equal for equal definitions, in which Releases share an index. */
export function definitionKey({ table, fields, defaults = [] }: IndexDefinition): string {
  return JSON.stringify([table, fields, defaults])
}

/** Returns the column with the defaults of an index; null if no field has one. */
export function defaultsColumn({ defaults }: IndexDefinition): string | null {
  return defaults === undefined ? null : JSON.stringify(defaults)
}

/** Reads the column with the defaults of the fields of an index. */
export function parseDefaults(
  text: string | null,
  fields: readonly string[],
): IndexDefinition['defaults'] {
  if (text === null) return undefined
  const json = parsed(text)
  assert(
    Array.isArray(json) &&
      json.length === fields.length &&
      json.every((value) => value === null || typeof value === 'string'),
    'the defaults of an index are not a list of values',
  )
  return json
}

/** Reads the shape of the fields of a table. */
export function parseFieldShape(text: string): FieldShape {
  const json = parsed(text)
  assert(isFieldShape(json), 'the fields of a table are not a shape')
  return json
}

/** Returns the parsed JSON; undefined for a text that is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Finds the index with this definition that is not dropped. */
export function findIndex(
  indexes: Iterable<IndexRow>,
  definition: IndexDefinition,
): IndexRow | undefined {
  const key = definitionKey(definition)
  for (const index of indexes) {
    if (index.state !== 'dropped' && definitionKey(index) === key) return index
  }
  return undefined
}

/** The index as commits see it; null once it is dropped. */
export function visible(index: IndexRow): PhysicalIndex | null {
  const { id, table, fields, defaults, state } = index
  if (state === 'dropped') return null
  return defaults === undefined
    ? { id, table, fields, state }
    : { id, table, fields, defaults, state }
}

/** Bounds of the IDs of a table, "<table>_<ULID>": "`" is the character after "_". */
export function idsOfTable(table: string): { readonly after: string; readonly before: string } {
  return { after: `${table}_`, before: `${table}\`` }
}

/** Length of the IDs of a table, with which its index keys end: the table, "_" and a ULID. */
export function idLength(table: string): number {
  return table.length + 27
}
