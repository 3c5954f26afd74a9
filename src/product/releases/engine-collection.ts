/**
 * Tells the engine which Releases may still be called, so that it lets go of what it holds for the
 * others: runners, what was prepared, and the indexes that every commit would have to keep.
 */
import type { IndexDefinition } from '../../documents/store.ts'
import type { LiveReleases } from '../../engine/releases/executable-release.ts'
import { indexDefinitions } from '../../engine/releases/preparations.ts'
import type { ArtifactStore } from '../../storage/artifacts.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { listLiveReleases, type ReleaseRecord } from '../../storage/control/releases.ts'
import { CoalescingTask, type SerialQueue } from '../../system/concurrency.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { parseManifest } from '../../value/manifest.ts'
import type { ReleaseEngine } from '../product.ts'

interface EngineCollectionOptions {
  readonly log: Logger
  readonly control: ControlDatabase
  readonly artifacts: ArtifactStore
  readonly engine: Pick<ReleaseEngine, 'retainOnly'>
  /** A Release that is prepared in here has its row before: none is prepared that is not listed. */
  readonly validations: SerialQueue
}

export class EngineCollection {
  readonly #options: EngineCollectionOptions
  /** As of the last run; a Release never changes. */
  #live: LiveReleases = new Map()
  readonly #runs: CoalescingTask

  constructor(options: EngineCollectionOptions) {
    this.#options = options
    this.#runs = new CoalescingTask(
      () => this.#collect(),
      (error) => options.log.warn('product.collection_failed', { error }),
    )
  }

  /** Starts in the background. Never throws; what fails is done by the next run. */
  collect(): void {
    this.#runs.start()
  }

  /** Resolves when the run that is under way, if any, has ended. */
  settled(): Promise<void> {
    return this.#runs.settled()
  }

  close(): Promise<void> {
    return this.#runs.close()
  }

  async #collect(): Promise<void> {
    const { log, validations } = this.#options
    const dropped = await validations.inTurn(() => this.#collectOnce())
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
