/**
 * Removes the artifacts that no Release references. A crash at any step may leave some of them for
 * the next run, but never a Release without its bytes.
 */
import type { ArtifactStore } from '../../storage/artifacts.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { isArtifactReferenced, listReferencedArtifacts } from '../../storage/control/releases.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import type { Logger } from '../../telemetry/log.ts'

interface CollectionOptions {
  readonly log: Logger
  readonly control: ControlDatabase
  readonly artifacts: ArtifactStore
}

export class ArtifactCollection {
  readonly #options: CollectionOptions
  /** Number of publications in progress that hold each digest. */
  readonly #held = new Map<string, number>()
  /** The removal in progress. */
  #removal: { readonly digest: string; readonly ended: Promise<void> } | null = null
  readonly #runs: CoalescingTask

  constructor(options: CollectionOptions) {
    this.#options = options
    this.#runs = new CoalescingTask(
      () => this.#collect(),
      (error) => options.log.warn('product.collection_failed', { error }),
    )
  }

  /**
   * Runs a task that writes artifacts and then references them. None of them is removed before it
   * ends.
   */
  async hold<T>(digests: readonly string[], task: () => Promise<T>): Promise<T> {
    for (const digest of digests) {
      this.#held.set(digest, (this.#held.get(digest) ?? 0) + 1)
    }
    try {
      if (this.#removal !== null && digests.includes(this.#removal.digest)) {
        await this.#removal.ended
      }
      return await task()
    } finally {
      for (const digest of digests) {
        const left = this.#held.get(digest)! - 1
        if (left === 0) this.#held.delete(digest)
        else this.#held.set(digest, left)
      }
    }
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
    const { log, control, artifacts } = this.#options
    const found = await artifacts.list()
    const referenced = new Set(control.read(listReferencedArtifacts))
    let removed = 0
    for (const digest of found) {
      if (this.#runs.isClosed) break
      if (referenced.has(digest) || this.#held.has(digest)) continue
      // A publication may have referenced it since, and have ended.
      if (control.read((reader) => isArtifactReferenced(reader, digest))) continue
      const ended = artifacts.remove(digest)
      // Only `hold` waits for it; after a failure the file is still there, which it tolerates.
      this.#removal = { digest, ended: ended.catch(() => undefined) }
      await ended
      removed += 1
    }
    this.#removal = null
    if (removed > 0) log.info('product.artifacts_collected', { removed })
  }
}
