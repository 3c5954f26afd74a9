/** The indexes of tables in the document store, and how missing ones are made. */
import type { DocumentStore, IndexDefinition, PhysicalIndex } from '../../documents/store.ts'
import { isFault } from '../../errors/fault.ts'
import type { TableManifest } from '../../value/manifest.ts'
import type { Committer } from '../commits/committer.ts'

/** Returns all indexes of the tables, including the creation order of each. */
export function indexDefinitions(tables: Iterable<TableManifest>): IndexDefinition[] {
  const definitions: IndexDefinition[] = []
  for (const { name, indexes } of tables) {
    definitions.push({ table: name, fields: [] })
    for (const { fields } of indexes) definitions.push({ table: name, fields })
  }
  return definitions
}

/** Returns the indexes with these definitions, and creates and builds missing ones before. */
export async function ensureIndexes(
  store: DocumentStore,
  committer: Pick<Committer, 'drain'>,
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
