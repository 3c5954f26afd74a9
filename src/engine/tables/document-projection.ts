/** The documents of a table as one Release sees them. */
import type { StoredDocument } from '../../documents/store.ts'
import { DEFAULT_PLAN } from '../../system/memory/memory-plan.ts'
import { flatText } from '../../value/memory/flat-text.ts'
import { changesReads, compileProjection, type Projection } from '../../value/projection.ts'
import { isCovered } from '../../value/schema/field-shapes.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import type { FieldsJson } from '../../value/validators.ts'
import type { ValueObject } from '../../value/values.ts'
import type { TableFields } from './stored-fields.ts'

/** Characters added for the objects of a document. */
const CHARACTERS_EACH = 128

/**
 * The documents that one Release read, as it sees them. A document that is read again is the same
 * object: caches of runners and of results recognize it by that.
 */
export class ProjectedDocuments {
  /** The projected documents by their stored ones, with which they end. */
  #projected = new WeakMap<StoredDocument, StoredDocument>()
  readonly #charactersMax: number
  #characters = 0

  /** `charactersMax` bounds the texts. */
  constructor(charactersMax = DEFAULT_PLAN.projectedCharacters) {
    this.#charactersMax = charactersMax
  }

  get(stored: StoredDocument): StoredDocument | undefined {
    return this.#projected.get(stored)
  }

  set(stored: StoredDocument, projected: StoredDocument): void {
    this.#characters += CHARACTERS_EACH + (projected === stored ? 0 : projected.text.length)
    if (this.#characters > this.#charactersMax) {
      this.#projected = new WeakMap()
      this.#characters = 0
    }
    this.#projected.set(stored, projected)
  }
}

export class DocumentProjection {
  readonly fields: Projection
  readonly #projected: ProjectedDocuments

  constructor(fields: FieldsJson, projected: ProjectedDocuments) {
    this.fields = compileProjection(fields)
    this.#projected = projected
  }

  /** Returns the stored document itself where the Release sees all of it. */
  read(stored: StoredDocument): StoredDocument {
    let projected = this.#projected.get(stored)
    if (projected === undefined) {
      projected = this.#project(stored)
      this.#projected.set(stored, projected)
    }
    return projected
  }

  /** Counts the fields of the stored document that the Release does not see. */
  countHidden(stored: StoredDocument): number {
    return this.fields.countHidden(decodeStored(stored.text) as ValueObject)
  }

  #project(stored: StoredDocument): StoredDocument {
    const fields = decodeStored(stored.text) as ValueObject
    const visible = this.fields.read(fields)
    return visible === fields ? stored : { ...stored, text: flatText(encodeStored(visible)) }
  }
}

/** The projection of a table, while one is needed. */
export class CurrentProjection {
  readonly #declared: FieldsJson
  readonly #stored: TableFields
  readonly #projected: ProjectedDocuments
  readonly #isAlwaysNeeded: boolean
  /** The shape that `#current` was decided for. */
  #shape: TableFields['shape'] | null = null
  #current: DocumentProjection | null = null
  #compiled: DocumentProjection | null = null

  constructor(declared: FieldsJson, stored: TableFields, projected: ProjectedDocuments) {
    this.#declared = declared
    this.#stored = stored
    this.#projected = projected
    this.#isAlwaysNeeded = changesReads(declared)
  }

  /** The projection; null while Releases read what is stored. */
  get current(): DocumentProjection | null {
    const { shape } = this.#stored
    if (shape !== this.#shape) {
      const isNeeded = this.#isAlwaysNeeded || !isCovered(this.#declared, shape)
      if (isNeeded) this.#compiled ??= new DocumentProjection(this.#declared, this.#projected)
      this.#current = isNeeded ? this.#compiled : null
      this.#shape = shape
    }
    return this.#current
  }
}
