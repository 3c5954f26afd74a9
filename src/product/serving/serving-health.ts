/** Health of what the Environment serves: the Releases of its Channels and of its policy. */
import type { ComponentHealth, HealthStatus } from '../../engine/usage/health.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { ReleaseCache } from '../releases/release-cache.ts'
import type { Serving } from './serving.ts'

interface ServingHealthOptions {
  readonly log: Logger
  readonly serving: Pick<Serving, 'isStarted' | 'canServe' | 'isFailing' | 'servedReleases'>
  readonly releases: Pick<ReleaseCache, 'isStored'>
}

export class ServingHealth {
  readonly #options: ServingHealthOptions
  /** Served Releases whose files are missing, and which the log has reported. */
  #damaged: ReadonlySet<ReleaseId> = new Set()

  constructor(options: ServingHealthOptions) {
    this.#options = options
  }

  /**
   * Returns `unavailable` if no target can be served, and `degraded` if one serves an earlier
   * Release or nothing, or a Release that the next start could not load.
   */
  async check(): Promise<ComponentHealth> {
    return { name: 'releases', status: await this.#status() }
  }

  async #status(): Promise<HealthStatus> {
    const { serving } = this.#options
    if (!serving.isStarted) return 'healthy'
    if (!serving.canServe()) return 'unavailable'
    const areStored = await this.#areStored()
    return serving.isFailing || !areStored ? 'degraded' : 'healthy'
  }

  /**
   * Resolves whether the files of every served Release exist. A Release without files is only in
   * memory, and cannot be loaded after a restart.
   */
  async #areStored(): Promise<boolean> {
    const { log, serving, releases } = this.#options
    const damaged = new Set<ReleaseId>()
    for (const releaseId of serving.servedReleases()) {
      // A failed read does not prove damage, and a Release may be retired meanwhile.
      const isStored = await releases.isStored(releaseId).catch(() => true)
      if (isStored) continue
      damaged.add(releaseId)
      if (this.#damaged.has(releaseId)) continue
      const message = 'The files of a served Release are missing: publish its package again.'
      log.error('product.release_damaged', { message, releaseId })
    }
    this.#damaged = damaged
    return damaged.size === 0
  }
}
