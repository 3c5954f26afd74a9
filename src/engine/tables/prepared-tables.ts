/** Prepared tables: their validators are compiled, their indexes bound to physical ones. */
import { definitionKey } from '../../documents/index-rows.ts'
import type { PhysicalIndex } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import type { IndexManifest, TableManifest } from '../../value/manifest.ts'
import {
  type Check,
  type CompileOptions,
  compileValidator,
  type FieldsJson,
} from '../../value/validators.ts'
import {
  CurrentProjection,
  type DocumentProjection,
  type ProjectedDocuments,
} from './document-projection.ts'
import { indexDefinition } from './physical-indexes.ts'
import type { TableFields } from './stored-fields.ts'

export interface PreparedIndex {
  readonly manifest: IndexManifest
  readonly physical: PhysicalIndex
}

export interface PreparedTable {
  readonly manifest: TableManifest
  /** Coerces a whole document's fields, as a Function writes them. */
  readonly check: Check
  /** Checks the fields of a stored document as the Release sees them. */
  readonly checkStored: Check
  /** Coerces one field that is written, by name; absent for an undeclared one. */
  readonly checkWritten: ReadonlyMap<string, Check>
  /** Coerces a value that one field is compared with, by name; absent for an undeclared one. */
  readonly checkField: ReadonlyMap<string, Check>
  /**
   * The stored documents as the Release sees them; null while it sees all of every document. It
   * changes when another Release is prepared, so each read looks it up.
   */
  readonly projection: DocumentProjection | null
  readonly indexes: ReadonlyMap<string, PreparedIndex>
  readonly uniqueIndexes: readonly PreparedIndex[]
  /** The index of all documents in creation order. */
  readonly creationOrder: PhysicalIndex
}

/** The fields of a table in the store, and the documents of all tables of one Release. */
interface SharedDocuments {
  readonly stored: TableFields
  readonly projected: ProjectedDocuments
}

/** `shared` is null for a table of the server, whose documents have the declared fields alone. */
export function prepareTable(
  manifest: TableManifest,
  physical: readonly PhysicalIndex[],
  shared: SharedDocuments | null,
): PreparedTable {
  const find = (fields: readonly string[]): PhysicalIndex => {
    const key = definitionKey(indexDefinition(manifest, fields))
    const found = physical.find((index) => definitionKey(index) === key)
    assert(found !== undefined, `no physical index of ${manifest.name}(${fields.join()})`)
    return found
  }
  const indexes = new Map<string, PreparedIndex>()
  for (const index of manifest.indexes) {
    indexes.set(index.name, { manifest: index, physical: find(index.fields) })
  }
  const { fields } = manifest
  const projection = shared && new CurrentProjection(fields, shared.stored, shared.projected)
  const compile = (options: CompileOptions) => compileValidator({ type: 'object', fields }, options)
  return {
    manifest,
    check: compile({ coerce: true, unknown: 'as-kept' }),
    checkStored: compile({ coerce: false, unknown: 'as-read' }),
    checkWritten: fieldChecks(fields, { coerce: true, unknown: 'as-kept' }),
    checkField: fieldChecks(fields, { coerce: true, unknown: 'rejected' }),
    get projection() {
      return projection === null ? null : projection.current
    },
    indexes,
    uniqueIndexes: [...indexes.values()].filter((index) => index.manifest.unique),
    creationOrder: find([]),
  }
}

function fieldChecks(fields: FieldsJson, options: CompileOptions): Map<string, Check> {
  return new Map(
    Object.entries(fields).map(([name, json]) => [
      name,
      compileValidator(json.type === 'optional' ? json.inner : json, options),
    ]),
  )
}
