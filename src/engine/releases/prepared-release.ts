/** A prepared Release: its validators are compiled, its tables bound to physical indexes. */
import type { PhysicalIndex, StoredDocument } from '../../documents/store.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
import { SeenFilter } from '../../system/seen-filter.ts'
import { type Caching, cachingOf, isHttpResponse } from '../../value/http/response-rules.ts'
import {
  compileResult,
  EncodedTextCache,
  type EncodeResult,
} from '../../value/schema/result-encoding.ts'
import { type Check, compileValidator } from '../../value/validators.ts'
import { RETURNED_DOCUMENTS } from '../calls/returned-documents.ts'
import { PlaceholderPolicy } from '../speculation/placeholder-policy.ts'
import { ReadPredictions } from '../speculation/read-predictions.ts'
import { SpeculationPolicy } from '../speculation/speculation-policy.ts'
import { ProjectedDocuments } from '../tables/document-projection.ts'
import { type PreparedTable, prepareTable } from '../tables/prepared-tables.ts'
import { type TableFields, UNKNOWN_FIELDS } from '../tables/stored-fields.ts'
import type { SystemTables } from '../tables/system-tables.ts'
import type { Release } from './executable-release.ts'

export interface PreparedFunction {
  /** Checks arguments from the wire exactly, since every value there has its type. */
  readonly checkArguments: Check
  /** Coerces the arguments of a call by another Function. */
  readonly coerceArguments: Check
  /** Coerces a result, which comes from JavaScript. */
  readonly checkResult: Check
  /** Converts a result from stored to tagged JSON; null if `checkResult` throws. */
  readonly encodeResult: EncodeResult
  /** Copies that may be kept of the response that it decides; null if it decides none. */
  readonly response: Caching | null
  readonly speculation: SpeculationPolicy
  readonly placeholders: PlaceholderPolicy
  readonly reads: ReadPredictions
}

export interface PreparedRelease {
  readonly release: Release
  readonly functions: ReadonlyMap<string, PreparedFunction>
  /**
   * The use of placeholders in place of documents, which ends once code was seen to keep one for a
   * later call.
   */
  readonly placeholders: { areUsed: boolean }
  readonly tables: ReadonlyMap<string, PreparedTable>
  /** Tables of the server that its Functions may read (tables/system-tables.ts). */
  readonly systemTables: ReadonlyMap<string, PreparedTable>
  /** All tables of the server, for operations that the server performs for a Function. */
  readonly serverTables: ReadonlyMap<string, PreparedTable>
}

const NO_SYSTEM_TABLES: SystemTables = { all: new Map(), shared: new Map() }
/** Slots of the filter for documents that a result named once. A collision evicts one of them. */
const RETURNED_SLOTS = 32_768

/**
 * Compiles the validators of a Release. `physical` holds every index that it declares and the
 * creation order of its tables; `fieldsOf` returns the fields that documents of a table may have.
 */
export function prepareRelease(
  release: Release,
  physical: readonly PhysicalIndex[],
  { shared, all }: SystemTables = NO_SYSTEM_TABLES,
  fieldsOf: (table: string) => TableFields = () => UNKNOWN_FIELDS,
  { encodedCharacters, projectedCharacters }: MemoryPlan = DEFAULT_PLAN,
): PreparedRelease {
  const functions = new Map<string, PreparedFunction>()
  const returned = new SeenFilter(RETURNED_SLOTS)
  const kept = new EncodedTextCache((document) => {
    const { id, sequence } = document as StoredDocument
    return returned.hasSeen(id, sequence)
  }, encodedCharacters)
  for (const [name, definition] of release.functions) {
    const json = { type: 'object', fields: definition.arguments } as const
    functions.set(name, {
      checkArguments: compileValidator(json, { coerce: false }),
      coerceArguments: compileValidator(json, { coerce: true }),
      checkResult: compileValidator(definition.returns, { coerce: true }),
      encodeResult: compileResult(definition.returns, RETURNED_DOCUMENTS, kept),
      response: isHttpResponse(definition.returns) ? cachingOf(definition) : null,
      speculation: new SpeculationPolicy(),
      placeholders: new PlaceholderPolicy(),
      reads: new ReadPredictions(),
    })
  }
  const tables = new Map<string, PreparedTable>()
  const projected = new ProjectedDocuments(projectedCharacters)
  for (const [name, manifest] of release.tables) {
    tables.set(name, prepareTable(manifest, physical, { stored: fieldsOf(name), projected }))
  }
  // A promise asks what it resolves with for `then`, and no placeholder knows that field.
  const areUsed = ![...release.tables.values()].some(({ fields }) => Object.hasOwn(fields, 'then'))
  const placeholders = { areUsed }
  return { release, functions, placeholders, tables, systemTables: shared, serverTables: all }
}
