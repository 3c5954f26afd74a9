/**
 * Whether the stored documents fit tables of a Release: every one passes its table's validator, and
 * no two share the key of a unique index. It reads in pages, so that other work goes on meanwhile.
 */
import { encodeKey, keyInterval, keySuccessor } from '../../documents/keys.ts'
import type { DocumentStore, PhysicalIndex, StoredDocument } from '../../documents/store.ts'
import { decodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import type { PreparedTable } from './prepared-release.ts'

export interface PreparationCheck {
  readonly name: string
  readonly outcome: 'passed' | 'failed'
  /** For the operator: counts, field paths and sample IDs, never a stored value. */
  readonly detail: string
}

const PAGE_DOCUMENTS = 500
const PAGE_TEXT_UNITS = 4 * 1024 * 1024
const SAMPLES_MAX = 5

/** One check for the validators of each table and one for each unique index. */
export async function checkStoredDocuments(
  store: DocumentStore,
  tables: readonly PreparedTable[],
  snapshot: number,
): Promise<PreparationCheck[]> {
  const checks: PreparationCheck[] = []
  for (const table of tables) {
    checks.push(await checkValidators(store, table, snapshot))
    for (const { manifest, physical } of table.uniqueIndexes) {
      const name = `unique:${table.manifest.name}.${manifest.name}`
      checks.push({ name, ...(await checkUnique(store, physical, snapshot)) })
    }
  }
  return checks
}

async function checkValidators(
  store: DocumentStore,
  table: PreparedTable,
  snapshot: number,
): Promise<PreparationCheck> {
  const rejected = new Findings()
  for await (const document of documentsOf(store, table.creationOrder, snapshot)) {
    try {
      table.check(decodeStored(document.text), table.manifest.name)
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      rejected.add(`${document.id} (${error.path}: ${error.rule})`)
    }
  }
  return {
    name: `documents:${table.manifest.name}`,
    ...rejected.outcome('stored documents do not fit the validators'),
  }
}

async function checkUnique(store: DocumentStore, index: PhysicalIndex, snapshot: number) {
  const shared = new Findings()
  let previous = { key: '', id: '' }
  for await (const { id, text } of documentsOf(store, index, snapshot)) {
    const fields = decodeStored(text) as ValueObject
    const values = index.fields.map((field) => fields.get(field))
    // A document without one of the fields takes no place in a unique index.
    if (values.includes(undefined)) continue
    const key = encodeKey(values)
    if (previous.key === key) shared.add(`${previous.id} and ${id}`)
    previous = { key, id }
  }
  return shared.outcome('pairs of stored documents share the key')
}

async function* documentsOf(
  store: DocumentStore,
  index: PhysicalIndex,
  snapshot: number,
): AsyncGenerator<StoredDocument> {
  let { lower, upper } = keyInterval(index, { equals: [] })
  for (;;) {
    const page = await store.range({
      index: index.id,
      lower,
      upper,
      order: 'asc',
      limit: PAGE_DOCUMENTS,
      textUnitsMax: PAGE_TEXT_UNITS,
      snapshot,
    })
    for (const { document } of page.documents) yield document
    if (page.exhausted) return
    lower = keySuccessor(page.documents.at(-1)!.key)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

class Findings {
  #count = 0
  readonly #samples: string[] = []

  add(sample: string): void {
    this.#count += 1
    if (this.#samples.length < SAMPLES_MAX) this.#samples.push(sample)
  }

  outcome(what: string): Omit<PreparationCheck, 'name'> {
    if (this.#count === 0) return { outcome: 'passed', detail: '' }
    return { outcome: 'failed', detail: `${this.#count} ${what}: ${this.#samples.join('; ')}` }
  }
}
