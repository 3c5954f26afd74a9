/**
 * Checks the stored documents against the tables of a Release: every document, as the Release sees
 * it, passes its table's validator, and no two share the key of a unique index. The check is
 * repeated when a validated Release is bound, because the Releases served since its validation may
 * have written other documents.
 */
import { encodeKey, indexedValues } from '../../documents/keys.ts'
import type { PhysicalIndex } from '../../documents/store.ts'
import type { Engine } from '../../engine/engine.ts'
import type { PreparedTable } from '../../engine/tables/prepared-tables.ts'
import type { StoredTables } from '../../engine/tables/stored-tables.ts'
import { isFault } from '../../errors/fault.ts'
import { listBoundReleases, type ReleaseCheck } from '../../storage/control/releases.ts'
import type { SerialQueue } from '../../system/concurrency.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { decodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import type { LoadedRelease, ReleasesPort, RootPort } from '../ports.ts'
import { SchemaComparison } from './comparison/schema-comparison.ts'
import { engineFailure, incompatible, isFailed, passedCheck } from './release-checks.ts'

export type PreparingEngine = Pick<Engine, 'prepare' | 'warm'>

export interface StoredDocumentsPorts extends RootPort, ReleasesPort {
  readonly engine: PreparingEngine
  readonly validations: Pick<SerialQueue, 'run'>
}

/** Maximum number of document IDs in one detail. */
const SAMPLES_MAX = 5

/**
 * Throws PRODUCT_INCOMPATIBLE with a violation for each failed check, PRODUCT_UNAVAILABLE if the
 * engine has no capacity now, PRODUCT_CORRUPT if the Release cannot be read. Reads only tables
 * where a served Release may have stored a document that this Release rejects. Documents that are
 * stored during the check are not checked.
 */
export async function requireStoredDocumentsFit(
  ports: StoredDocumentsPorts,
  releaseId: ReleaseId,
): Promise<void> {
  const served = ports.root.control.read(listBoundReleases).filter((id) => id !== releaseId)
  if (served.length === 0) return
  const release = await ports.releases.load(releaseId)
  const tables = await uncertainTables(ports, release, served)
  if (tables.size === 0) return
  const checks = await ports.validations.run(() => prepareRelease(ports.engine, release, tables))
  const failed = checks.filter(isFailed)
  if (failed.length > 0) throw incompatible(failed)
}

/**
 * Builds the indexes of a Release, checks the stored documents of its tables, or of those named,
 * and starts its runners if every check passed. A failed check leaves other Releases as they were.
 * Throws PRODUCT_INCOMPATIBLE and PRODUCT_UNAVAILABLE as `engineFailure` returns them.
 */
export async function prepareRelease(
  engine: PreparingEngine,
  release: LoadedRelease,
  tables: ReadonlySet<string> = new Set(release.tables.keys()),
): Promise<readonly ReleaseCheck[]> {
  try {
    const checks = await preparationChecks(engine, release, tables)
    if (!checks.some(isFailed)) await engine.warm(release)
    return checks
  } catch (error) {
    throw engineFailure(error)
  }
}

/** Makes the checks of `prepareRelease` without starting a runner. Throws the same errors. */
export async function checkStoredDocuments(
  engine: Pick<PreparingEngine, 'prepare'>,
  release: LoadedRelease,
): Promise<readonly ReleaseCheck[]> {
  try {
    return await preparationChecks(engine, release, new Set(release.tables.keys()))
  } catch (error) {
    throw engineFailure(error)
  }
}

/**
 * Returns the tables in which code of the served Releases may have stored a document that the
 * Release rejects.
 */
export async function uncertainTables(
  { releases }: ReleasesPort,
  release: LoadedRelease,
  served: readonly ReleaseId[],
): Promise<ReadonlySet<string>> {
  const comparison = new SchemaComparison()
  const uncertain = new Set<string>()
  for (const id of served) {
    // A damaged Release must not keep another from replacing it.
    const other = await releases.load(id).catch(() => null)
    const names =
      other === null
        ? release.tables.keys()
        : comparison.uncertainTables(release.tables, other.tables)
    for (const name of names) uncertain.add(name)
  }
  return uncertain
}

/**
 * Returns one check for the indexes, then one for each table's validators and each unique index.
 */
async function preparationChecks(
  engine: Pick<PreparingEngine, 'prepare'>,
  release: LoadedRelease,
  names: ReadonlySet<string>,
): Promise<ReleaseCheck[]> {
  let stored: StoredTables
  try {
    stored = await engine.prepare(release)
  } catch (error) {
    // A key that is too long for an index is a defect of the Release. All other failures are the
    // server's.
    if (!isFault(error, 'LIMIT_EXCEEDED')) throw error
    return [{ name: 'indexes', outcome: 'failed', detail: error.detail ?? 'a key is too long' }]
  }
  const checks = [passedCheck('indexes', '')]
  for (const table of stored.tables.values()) {
    if (!names.has(table.manifest.name)) continue
    checks.push(await checkValidators(stored, table))
    for (const { manifest, physical } of table.uniqueIndexes) {
      checks.push(await checkUnique(stored, physical, `${table.manifest.name}.${manifest.name}`))
    }
  }
  return checks
}

async function checkValidators(stored: StoredTables, table: PreparedTable): Promise<ReleaseCheck> {
  const rejected = new Findings()
  for await (const document of stored.scan(table.creationOrder)) {
    const visible = table.projection?.read(document) ?? document
    try {
      table.checkStored(decodeStored(visible.text), table.manifest.name)
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      rejected.add(`${document.id} (${error.path}: ${error.rule})`)
    }
  }
  const name = `documents:${table.manifest.name}`
  return rejected.check(name, 'stored documents do not fit the validators')
}

/** Reads in the order of the keys, so that documents with equal keys follow each other. */
async function checkUnique(
  stored: StoredTables,
  index: PhysicalIndex,
  name: string,
): Promise<ReleaseCheck> {
  const shared = new Findings()
  let previous = { key: '', id: '' }
  for await (const { id, text } of stored.scan(index)) {
    const values = indexedValues(index, decodeStored(text) as ValueObject)
    // A document without one of the fields has no entry in a unique index.
    if (values.includes(undefined)) continue
    const key = encodeKey(values)
    if (previous.key === key) shared.add(`${previous.id} and ${id}`)
    previous = { key, id }
  }
  return shared.check(`unique:${name}`, 'pairs of stored documents share the key')
}

/** Counts defects and keeps the first few: paths and document IDs, never a stored value. */
class Findings {
  #count = 0
  readonly #samples: string[] = []

  add(sample: string): void {
    this.#count += 1
    if (this.#samples.length < SAMPLES_MAX) this.#samples.push(sample)
  }

  check(name: string, defect: string): ReleaseCheck {
    if (this.#count === 0) return passedCheck(name, '')
    const detail = `${this.#count} ${defect}: ${this.#samples.join('; ')}`
    return { name, outcome: 'failed', detail }
  }
}
