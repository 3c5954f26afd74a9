/**
 * Passes to the engine the Releases that may still be called, so that it releases what it holds for
 * all others: runners, preparations, and indexes, which every commit would have to update.
 */
import type { IndexDefinition } from '../../documents/store.ts'
import type { Engine } from '../../engine/engine.ts'
import type { LiveReleases } from '../../engine/releases/executable-release.ts'
import { indexDefinitions } from '../../engine/tables/physical-indexes.ts'
import type { ArtifactStore } from '../../storage/artifacts.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { listLiveReleases, type ReleaseRecord } from '../../storage/control/releases.ts'
import { CoalescingTask, type SerialQueue } from '../../system/concurrency.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { parseManifest } from '../../wire/files/manifest.ts'

interface EngineCollectionOptions {
  readonly log: Logger
  readonly control: ControlDatabase
  readonly artifacts: ArtifactStore
  readonly engine: Pick<Engine, 'retainOnly'>
  /**
   * A run excludes validations, which prepare Releases only after their rows are stored: every
   * prepared Release is therefore listed. A check of a package prepares a Release that is never
   * stored, and starts a run afterwards.
   */
  readonly validations: Pick<SerialQueue, 'runUnbounded'>
}

export class EngineCollection {
  readonly #options: EngineCollectionOptions
  /** Indexes of the Releases of the last run; a Release never changes. */
  #live: LiveReleases = new Map()
  readonly #runs: CoalescingTask

  constructor(options: EngineCollectionOptions) {
    this.#options = options
    this.#runs = new CoalescingTask(
      () => this.#collect(),
      (error) => options.log.warn('product.collection_failed', { error }),
    )
  }

  /** Starts a run in the background. Never throws; the next run repeats what failed. */
  collect(): void {
    this.#runs.start()
  }

  /** Resolves when the run in progress, if any, has ended. */
  whenIdle(): Promise<void> {
    return this.#runs.whenIdle()
  }

  close(): Promise<void> {
    return this.#runs.close()
  }

  async #collect(): Promise<void> {
    const { log, validations } = this.#options
    const dropped = await validations.runUnbounded(() => this.#collectOnce())
    if (dropped > 0) log.info('product.indexes_dropped', { dropped })
  }

  async #collectOnce(): Promise<number> {
    const { control, engine } = this.#options
    const live = new Map<ReleaseId, readonly IndexDefinition[]>()
    for (const record of control.read(listLiveReleases)) {
      const { releaseId } = record
      live.set(releaseId, this.#live.get(releaseId) ?? (await this.#indexesOf(record)))
      if (this.#runs.isClosed) return 0
    }
    this.#live = live
    return engine.retainOnly(live, () => this.collect())
  }

  async #indexesOf({
    manifest: { digest, bytes },
  }: ReleaseRecord): Promise<readonly IndexDefinition[]> {
    const manifest = await this.#options.artifacts.get(digest, bytes)
    return indexDefinitions(parseManifest(new TextDecoder().decode(manifest)).tables)
  }
}
