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
  /** The compaction of each table, with the fields that its documents may have when it ends. */
  readonly #compactions = new Map<string, { readonly id: string; shape: FieldShape }>()
  #pendingChanges = 0
  /** Changes are made one after the other, since each adds to the shapes of the one before. */
  readonly #changes = new SerialQueue(1, 'BUSY')

  constructor(store: Pick<DocumentStore, 'fieldShapes' | 'setFieldShapes'>) {
    this.#store = store
  }

  /** Returns the fields of a table, always the same object. */
  of(table: string): TableFields {
    return this.#fieldsOf(table)
  }

  /** Takes over the shapes that another process of the server has stored. */
  follow(): void {
    for (const [table, fields] of this.#tables) {
      fields.shape = this.#store.fieldShapes().get(table) ?? EMPTY_SHAPE
    }
  }

  /** Resolves when the fields that the tables declare are durable among those of the store. */
  async extend(tables: Iterable<TableManifest>): Promise<void> {
    const declared = [...tables].map(({ name, fields }) => [name, shapeOf(fields)] as const)
    for (const [table, shape] of declared) this.#note(table, shape)
    // A compaction that ends now may remove fields that are declared here.
    if (this.#pendingChanges === 0 && this.#extended(declared).size === 0) return
    await this.#change(() => this.#extended(declared))
  }

  /**
   * Starts a compaction of a table, in place of an earlier one. From then on all fields that a
   * Release declares are noted, since its documents may have them when the compaction ends.
   */
  beginCompaction(table: string, id: string): void {
    this.#compactions.set(table, { id, shape: EMPTY_SHAPE })
  }

  /** Returns the compaction of a table that was started and has not ended; null without one. */
  compactionOf(table: string): string | null {
    return this.#compactions.get(table)?.id ?? null
  }

  /** Notes the fields that a compaction keeps. Returns false if it is not that of the table. */
  keep(table: string, id: string, shape: FieldShape): boolean {
    if (this.compactionOf(table) !== id) return false
    this.#note(table, shape)
    return true
  }

  /**
   * Ends a compaction, which has read every document: the table has the noted fields alone. Does
   * nothing for another compaction than that of the table.
   */
  async endCompaction(table: string, id: string): Promise<void> {
    await this.#change(() => {
      const compaction = this.#compactions.get(table)
      return new Map(compaction?.id === id ? [[table, compaction.shape]] : [])
    })
    if (this.compactionOf(table) === id) this.#compactions.delete(table)
  }

  #note(table: string, shape: FieldShape): void {
    const compaction = this.#compactions.get(table)
    if (compaction !== undefined) compaction.shape = mergeShapes(compaction.shape, shape)
  }

  async #change(shapesOf: () => ReadonlyMap<string, FieldShape>): Promise<void> {
    this.#pendingChanges += 1
    try {
      await this.#changes.runUnbounded(() => this.#set(shapesOf()))
    } finally {
      this.#pendingChanges -= 1
    }
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
