/** A Release with its validators compiled and its tables bound to physical indexes. */
import type { PhysicalIndex, StoredDocument } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import { SeenFilter } from '../../system/seen-filter.ts'
import type { IndexManifest, TableManifest } from '../../value/manifest.ts'
import { compileResult, type EncodeResult, KeptTexts } from '../../value/result-encoding.ts'
import type { FieldsJson } from '../../value/validators.ts'
import { type Check, compileValidator } from '../../value/validators.ts'
import { returnedContent } from '../invocations/returned-documents.ts'
import { SpeculationPolicy } from '../speculation/speculation-policy.ts'
import type { Release } from './release.ts'

export interface PreparedFunction {
  /** Exact: arguments come from the wire, where every value has its type. */
  readonly checkArguments: Check
  /** Coerces: arguments of a call that another Function makes. */
  readonly coerceArguments: Check
  /** Coerces: a result comes from JavaScript. */
  readonly checkResult: Check
  /** From stored JSON to tagged JSON; null where `checkResult` says what is wrong. */
  readonly encodeResult: EncodeResult
  readonly pace: SpeculationPolicy
}

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
  /** Every document in creation order. */
  readonly creationOrder: PhysicalIndex
}

export interface PreparedRelease {
  readonly release: Release
  readonly functions: ReadonlyMap<string, PreparedFunction>
  readonly tables: ReadonlyMap<string, PreparedTable>
}

/** Of documents that a result named once: some of those that come between are forgotten. */
const RETURNED_PLACES = 32_768

/** `physical` holds every index that the Release declares, and the creation order of its tables. */
export function prepareRelease(
  release: Release,
  physical: readonly PhysicalIndex[],
): PreparedRelease {
  const functions = new Map<string, PreparedFunction>()
  const returned = new SeenFilter(RETURNED_PLACES)
  const kept = new KeptTexts((document) => {
    const { id, sequence } = document as StoredDocument
    return returned.hasSeen(id, sequence)
  })
  for (const [name, definition] of release.functions) {
    const json = { type: 'object', fields: definition.arguments } as const
    functions.set(name, {
      checkArguments: compileValidator(json, { coerce: false }),
      coerceArguments: compileValidator(json, { coerce: true }),
      checkResult: compileValidator(definition.returns, { coerce: true }),
      encodeResult: compileResult(
        definition.returns,
        (document) => returnedContent(document as StoredDocument),
        kept,
      ),
      pace: new SpeculationPolicy(),
    })
  }
  const tables = new Map<string, PreparedTable>()
  for (const [name, manifest] of release.tables) {
    tables.set(name, prepareTable(manifest, physical))
  }
  return { release, functions, tables }
}

function prepareTable(manifest: TableManifest, physical: readonly PhysicalIndex[]): PreparedTable {
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
