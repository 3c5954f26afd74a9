/** Makes Releases ready to run: builds their indexes and keeps what was compiled of them. */
import type { DocumentStore, IndexDefinition } from '../../documents/store.ts'
import { isFault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { TableManifest } from '../../value/manifest.ts'
import type { Committer } from '../commits/committer.ts'
import { type PreparedRelease, prepareRelease } from './prepared-release.ts'
import type { LiveReleases, Release } from './release.ts'

/** Releases of one generation; those of the last two are kept, with their code. */
const GENERATION = 32

export class Preparations {
  readonly #store: DocumentStore
  readonly #committer: Committer
  readonly #running = new Map<ReleaseId, Promise<PreparedRelease>>()
  #prepared = new Map<ReleaseId, PreparedRelease>()
  #preparedBefore = new Map<ReleaseId, PreparedRelease>()

  constructor(store: DocumentStore, committer: Committer) {
    this.#store = store
    this.#committer = committer
  }

  /** The Release if it was prepared already, and used since 32 others were. */
  find(releaseId: ReleaseId): PreparedRelease | null {
    const known = this.#prepared.get(releaseId)
    if (known !== undefined) return known
    const before = this.#preparedBefore.get(releaseId)
    if (before === undefined) return null
    this.#keep(before)
    return before
  }

  /** Once for all that ask meanwhile; a failure is tried again with the next call. */
  prepare(release: Release): MaybePromise<PreparedRelease> {
    const { releaseId } = release
    const known = this.find(releaseId) ?? this.#running.get(releaseId)
    if (known !== undefined) return known
    const making = this.#make(release).finally(() => this.#running.delete(releaseId))
    this.#running.set(releaseId, making)
    return making
  }

  /**
   * Lets go of every other Release, and drops the indexes that none of these declares; answers how
   * many. No other may be prepared meanwhile.
   */
  async keepOnly(live: LiveReleases): Promise<number> {
    for (const prepared of [this.#prepared, this.#preparedBefore]) {
      for (const releaseId of prepared.keys()) if (!live.has(releaseId)) prepared.delete(releaseId)
    }
    const declared = new Set([...live.values()].flat().map(keyOf))
    const left = this.#store.listIndexes().filter((index) => !declared.has(keyOf(index)))
    for (const { id } of left) await this.#store.dropIndex(id)
    return left.length
  }

  async #make(release: Release): Promise<PreparedRelease> {
    const prepared = await makeIndexes(this.#store, this.#committer, release)
    this.#keep(prepared)
    return prepared
  }

  #keep(prepared: PreparedRelease): void {
    if (this.#prepared.size >= GENERATION) {
      this.#preparedBefore = this.#prepared
      this.#prepared = new Map()
    }
    this.#prepared.set(prepared.release.releaseId, prepared)
  }
}

/** All that the tables need: their indexes, and the creation order of each. */
export function indexDefinitions(tables: Iterable<TableManifest>): IndexDefinition[] {
  const definitions: IndexDefinition[] = []
  for (const { name, indexes } of tables) {
    definitions.push({ table: name, fields: [] })
    for (const { fields } of indexes) definitions.push({ table: name, fields })
  }
  return definitions
}

function keyOf({ table, fields }: IndexDefinition): string {
  return JSON.stringify([table, fields])
}

async function makeIndexes(
  store: DocumentStore,
  committer: Committer,
  release: Release,
): Promise<PreparedRelease> {
  const definitions = indexDefinitions(release.tables.values())
  const indexes = await store.ensureIndexes(definitions)
  const building = indexes.filter((index) => index.state === 'building')
  if (building.length > 0) {
    // Commits that were put together before the index existed do not keep it.
    await committer.drain()
    for (const index of building) await buildIndex(store, index.id)
  }
  return prepareRelease(release, await store.ensureIndexes(definitions))
}

/** An index that cannot be built must not stay: every commit would have to keep it. */
async function buildIndex(store: DocumentStore, index: number): Promise<void> {
  try {
    await store.buildIndex(index)
  } catch (error) {
    if (isFault(error, 'LIMIT_EXCEEDED')) await store.dropIndex(index)
    throw error
  }
}
