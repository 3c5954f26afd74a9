/** Prepared tables: their validators are compiled, their indexes bound to physical ones. */
import type { PhysicalIndex } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import type { IndexManifest, TableManifest } from '../../value/manifest.ts'
import { type Check, compileValidator, type FieldsJson } from '../../value/validators.ts'

export interface PreparedIndex {
  readonly manifest: IndexManifest
  readonly physical: PhysicalIndex
}

export interface PreparedTable {
  readonly manifest: TableManifest
  /** Coerces a whole document's fields. */
  readonly check: Check
  /** Coerces one field, by name; absent for an undeclared one. */
  readonly checkField: ReadonlyMap<string, Check>
  readonly indexes: ReadonlyMap<string, PreparedIndex>
  readonly uniqueIndexes: readonly PreparedIndex[]
  /** The index of all documents in creation order. */
  readonly creationOrder: PhysicalIndex
}

export function prepareTable(
  manifest: TableManifest,
  physical: readonly PhysicalIndex[],
): PreparedTable {
  const find = (fields: readonly string[]): PhysicalIndex => {
    const found = physical.find(
      (index) => index.table === manifest.name && index.fields.join() === fields.join(),
    )
    assert(found !== undefined, `no physical index of ${manifest.name}(${fields.join()})`)
    return found
  }
  const indexes = new Map<string, PreparedIndex>()
  for (const index of manifest.indexes) {
    indexes.set(index.name, { manifest: index, physical: find(index.fields) })
  }
  return {
    manifest,
    check: compileValidator({ type: 'object', fields: manifest.fields }, { coerce: true }),
    checkField: new Map(
      Object.entries(manifest.fields).map(([field, json]) => [field, fieldCheck(json)]),
    ),
    indexes,
    uniqueIndexes: [...indexes.values()].filter((index) => index.manifest.unique),
    creationOrder: find([]),
  }
}

function fieldCheck(json: FieldsJson[string]): Check {
  return compileValidator(json.type === 'optional' ? json.inner : json, { coerce: true })
}
