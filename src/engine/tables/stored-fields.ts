/**
 * The fields that documents of each table may have in the store. A Release is prepared only after
 * its own fields are among them, so that other Releases know of them before the first write.
 */
import type { DocumentStore } from '../../documents/store.ts'
import { SerialQueue } from '../../system/concurrency.ts'
import type { TableManifest } from '../../value/manifest.ts'
import {
  EMPTY_SHAPE,
  type FieldShape,
  mergeShapes,
  shapeOf,
} from '../../value/schema/field-shapes.ts'

/** The fields that documents of one table may have. They change while Releases run. */
export interface TableFields {
  readonly shape: FieldShape
}

/** The fields of a table of which nothing is known. */
export const UNKNOWN_FIELDS: TableFields = { shape: 'any' }

export class StoredFields {
  readonly #store: Pick<DocumentStore, 'fieldShapes' | 'setFieldShapes'>
  readonly #tables = new Map<string, { shape: FieldShape }>()
  /** Changes are made one after the other, since each adds to the shapes of the one before. */
  readonly #changes = new SerialQueue(1, 'BUSY')

  constructor(store: Pick<DocumentStore, 'fieldShapes' | 'setFieldShapes'>) {
    this.#store = store
  }

  /** Returns the fields of a table, always the same object. */
  of(table: string): TableFields {
    return this.#fieldsOf(table)
  }

  /** Resolves when the fields that the tables declare are durable among those of the store. */
  async extend(tables: Iterable<TableManifest>): Promise<void> {
    const declared = [...tables].map(({ name, fields }) => [name, shapeOf(fields)] as const)
    if (this.#extended(declared).size === 0) return
    await this.#changes.runUnbounded(async () => this.#set(this.#extended(declared)))
  }

  /** Returns the shapes that have to change for the declared fields. */
  #extended(declared: readonly (readonly [string, FieldShape])[]): Map<string, FieldShape> {
    const extended = new Map<string, FieldShape>()
    for (const [table, shape] of declared) {
      const known = this.#fieldsOf(table).shape
      const merged = mergeShapes(known, shape)
      if (merged !== known) extended.set(table, merged)
    }
    return extended
  }

  async #set(shapes: ReadonlyMap<string, FieldShape>): Promise<void> {
    if (shapes.size === 0) return
    await this.#store.setFieldShapes(shapes)
    for (const [table, shape] of shapes) this.#fieldsOf(table).shape = shape
  }

  #fieldsOf(table: string): { shape: FieldShape } {
    let fields = this.#tables.get(table)
    if (fields === undefined) {
      fields = { shape: this.#store.fieldShapes().get(table) ?? EMPTY_SHAPE }
      this.#tables.set(table, fields)
    }
    return fields
  }
}
