/** The indexes of tables in the document store, and how missing ones are made. */
import type { DocumentStore, IndexDefinition, PhysicalIndex } from '../../documents/store.ts'
import { isFault } from '../../errors/fault.ts'
import type { TableManifest } from '../../value/manifest.ts'
import { encodeStored } from '../../value/stored.ts'
import { defaultsOf } from '../../value/validators.ts'
import type { ReadableCommits } from '../commits/committer.ts'

/** Returns all indexes of the tables, including the creation order of each. */
export function indexDefinitions(tables: Iterable<TableManifest>): IndexDefinition[] {
  const definitions: IndexDefinition[] = []
  for (const table of tables) {
    definitions.push({ table: table.name, fields: [] })
    for (const { fields } of table.indexes) definitions.push(indexDefinition(table, fields))
  }
  return definitions
}

/** Returns the definition of an index of a table over these fields, with their defaults. */
export function indexDefinition(
  { name: table, fields: declared }: TableManifest,
  fields: readonly string[],
): IndexDefinition {
  const hasDefaults = fields.some((field) => {
    const json = declared[field]!
    return json.type === 'optional' && json.default !== undefined
  })
  if (!hasDefaults) return { table, fields }
  const values = defaultsOf(declared)
  const defaults = fields.map((field) => {
    const value = values.get(field)
    return value === undefined ? null : encodeStored(value)
  })
  return { table, fields, defaults }
}

/** Returns the indexes with these definitions, and creates and builds missing ones before. */
export async function ensureIndexes(
  store: DocumentStore,
  committer: Pick<ReadableCommits, 'drain'>,
  definitions: readonly IndexDefinition[],
): Promise<readonly PhysicalIndex[]> {
  const indexes = await store.ensureIndexes(definitions)
  const building = indexes.filter((index) => index.state === 'building')
  if (building.length === 0) return indexes
  // Pending commits from before the index was created write no entries to it.
  await committer.drain()
  for (const index of building) await buildIndex(store, index.id)
  return store.ensureIndexes(definitions)
}

/** Builds an index. Drops one that cannot be built, which every commit would have to update. */
async function buildIndex(store: DocumentStore, index: number): Promise<void> {
  try {
    await store.buildIndex(index)
  } catch (error) {
    if (isFault(error, 'LIMIT_EXCEEDED')) await store.dropIndex(index)
    throw error
  }
}
