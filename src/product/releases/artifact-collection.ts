/**
 * Removes the artifacts that no Release names any more. A crash anywhere leaves some of them for
 * the next run, and never a Release without its bytes.
 */
import type { ArtifactStore } from '../../storage/artifacts.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { artifactIsNamed, listNamedArtifacts } from '../../storage/control/releases.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import type { Logger } from '../../telemetry/log.ts'

interface CollectionOptions {
  readonly log: Logger
  readonly control: ControlDatabase
  readonly artifacts: ArtifactStore
}

export class ArtifactCollection {
  readonly #options: CollectionOptions
  /** Publications by the digest that they are about to name. */
  readonly #spared = new Map<string, number>()
  #removal: { readonly digest: string; readonly ended: Promise<void> } | null = null
  readonly #runs: CoalescingTask

  constructor(options: CollectionOptions) {
    this.#options = options
    this.#runs = new CoalescingTask(
      () => this.#collect(),
      (error) => options.log.warn('product.collection_failed', { error }),
    )
  }

  /** Until `work` has ended none of the digests is removed: it writes them, then names them. */
  async spare<T>(digests: readonly string[], work: () => Promise<T>): Promise<T> {
    for (const digest of digests) {
      this.#spared.set(digest, (this.#spared.get(digest) ?? 0) + 1)
    }
    try {
      if (this.#removal !== null && digests.includes(this.#removal.digest)) {
        await this.#removal.ended
      }
      return await work()
    } finally {
      for (const digest of digests) {
        const left = this.#spared.get(digest)! - 1
        if (left === 0) this.#spared.delete(digest)
        else this.#spared.set(digest, left)
      }
    }
  }

  /** Starts in the background. Never throws; what fails is found again by the next run. */
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
    const { log, control, artifacts } = this.#options
    const found = await artifacts.list()
    const named = new Set(control.read(listNamedArtifacts))
    let removed = 0
    for (const digest of found) {
      if (this.#runs.isClosed) break
      if (named.has(digest) || this.#spared.has(digest)) continue
      // A publication may have named it since, and have ended.
      if (control.read((reader) => artifactIsNamed(reader, digest))) continue
      const ended = artifacts.remove(digest)
      // Nobody waits for it but `spare`, to whom a failure means that the file is still there.
      this.#removal = { digest, ended: ended.catch(() => undefined) }
      await ended
      removed += 1
    }
    this.#removal = null
    if (removed > 0) log.info('product.artifacts_collected', { removed })
  }
}
