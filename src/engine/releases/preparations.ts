/**
 * Makes Releases ready to run: tells other Releases of their fields, builds their indexes and keeps
 * what was compiled of them.
 */
import { definitionKey } from '../../documents/index-rows.ts'
import type { DocumentStore } from '../../documents/store.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { MemoryPlan } from '../../system/memory/memory-plan.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { ReadableCommits } from '../commits/committer.ts'
import { ensureIndexes, indexDefinitions } from '../tables/physical-indexes.ts'
import { StoredFields } from '../tables/stored-fields.ts'
import { SYSTEM_INDEXES, SystemTablesLoader } from '../tables/system-tables.ts'
import type { LiveReleases, Release } from './executable-release.ts'
import { type PreparedRelease, prepareRelease } from './prepared-release.ts'

/** Prepared Releases of one generation. The cache holds the last two generations. */
const GENERATION_SIZE = 32

export interface PreparationOptions {
  /** Called before a Release is prepared. */
  readonly before?: ((release: Release) => Promise<void>) | null
  readonly memory?: MemoryPlan | undefined
}

export class Preparations {
  readonly #store: DocumentStore
  readonly #committer: ReadableCommits
  readonly #systemTables: SystemTablesLoader
  readonly #before: ((release: Release) => Promise<void>) | null
  readonly #memory: MemoryPlan | undefined
  readonly storedFields: StoredFields
  readonly #running = new Map<
    ReleaseId,
    { readonly release: Release; readonly prepared: Promise<PreparedRelease> }
  >()
  #prepared = new Map<ReleaseId, PreparedRelease>()
  #previousGeneration = new Map<ReleaseId, PreparedRelease>()
  /** Null until it is known what is served. */
  #served: ReadonlySet<ReleaseId> | null = null

  constructor(
    store: DocumentStore,
    committer: ReadableCommits,
    systemTables = new SystemTablesLoader(store, committer),
    { before = null, memory }: PreparationOptions = {},
  ) {
    this.#before = before
    this.#memory = memory
    this.#store = store
    this.#committer = committer
    this.#systemTables = systemTables
    this.storedFields = new StoredFields(store)
  }

  /** Returns a Release that is prepared and in the cache; null for any other. */
  find(releaseId: ReleaseId): PreparedRelease | null {
    const known = this.#prepared.get(releaseId)
    if (known !== undefined) return known
    const previous = this.#previousGeneration.get(releaseId)
    if (previous === undefined) return null
    this.#cache(previous)
    return previous
  }

  /** Prepares a Release once for all concurrent callers. After a failure the next call retries. */
  prepare(release: Release): MaybePromise<PreparedRelease> {
    const { releaseId } = release
    const known = this.find(releaseId) ?? this.#running.get(releaseId)?.prepared
    if (known !== undefined) return known
    const prepared = this.#prepare(release).finally(() => this.#running.delete(releaseId))
    this.#running.set(releaseId, { release, prepared })
    return prepared
  }

  /** Yields the tables of each Release that is prepared, or being prepared. */
  *tables(): Iterable<Release['tables']> {
    for (const { release } of this.#running.values()) yield release.tables
    for (const { release } of this.#prepared.values()) yield release.tables
    for (const { release } of this.#previousGeneration.values()) yield release.tables
  }

  /**
   * Evicts every other Release from the cache and drops the indexes that no Release of `live`
   * declares. Returns the number of dropped indexes. The caller must not prepare a Release outside
   * of `live` meanwhile.
   */
  async retainOnly(live: LiveReleases): Promise<number> {
    this.evictOthers(live)
    const declared = new Set([...SYSTEM_INDEXES, ...[...live.values()].flat()].map(definitionKey))
    const undeclared = this.#store
      .listIndexes()
      .filter((index) => !declared.has(definitionKey(index)))
    for (const { id } of undeclared) await this.#store.dropIndex(id)
    return undeclared.length
  }

  /** Names the Releases that are served. */
  markServed(releases: ReadonlySet<ReleaseId>): void {
    this.#served = releases
  }

  /** Evicts the Releases that are not served. Each has about a megabyte besides its code. */
  trim(): void {
    if (this.#served !== null) this.evictOthers(this.#served)
  }

  /** Evicts every other Release from the cache. */
  evictOthers(live: Pick<LiveReleases, 'has'>): void {
    for (const generation of [this.#prepared, this.#previousGeneration]) {
      for (const releaseId of generation.keys()) {
        if (!live.has(releaseId)) generation.delete(releaseId)
      }
    }
  }

  async #prepare(release: Release): Promise<PreparedRelease> {
    await this.#before?.(release)
    const system = await this.#systemTables.load()
    await this.storedFields.extend(release.tables.values())
    const definitions = indexDefinitions(release.tables.values())
    const physical = await ensureIndexes(this.#store, this.#committer, definitions)
    const fieldsOf = (table: string) => this.storedFields.of(table)
    const prepared = prepareRelease(release, physical, system, fieldsOf, this.#memory)
    this.#cache(prepared)
    return prepared
  }

  #cache(prepared: PreparedRelease): void {
    if (this.#prepared.size >= GENERATION_SIZE) {
      this.#previousGeneration = this.#prepared
      this.#prepared = new Map()
    }
    this.#prepared.set(prepared.release.releaseId, prepared)
  }
}
