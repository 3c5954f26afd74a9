/**
 * The part of a Product that a process has which answers calls and owns nothing: what is served,
 * Application Keys and configuration, read from the control database of another process.
 */
import type { ReadingEngine } from '../engine/create-reading-engine.ts'
import { listEntries } from '../storage/control/configuration.ts'
import { findEnvironment } from '../storage/control/environment.ts'
import { listLiveReleases } from '../storage/control/releases.ts'
import type { ProductRoot } from '../storage/root.ts'
import type { MemoryPlan } from '../system/memory/memory-plan.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import { ApplicationKeys, type KeyUses } from './application-clients/key-verification.ts'
import type { LiveConfiguration } from './configuration/live-configuration.ts'
import { ReleaseCache } from './releases/release-cache.ts'
import { Serving } from './serving/serving.ts'

export interface FollowedProductOptions {
  readonly system: System
  readonly log: Logger
  readonly root: ProductRoot
  readonly engine: ReadingEngine
  readonly configuration: LiveConfiguration
  readonly writeUses: (uses: KeyUses) => void
  readonly memory: MemoryPlan
}

export class FollowedProduct {
  readonly root: ProductRoot
  readonly releases: ReleaseCache
  readonly serving: Serving
  readonly keys: ApplicationKeys
  readonly #options: FollowedProductOptions
  #configuration: string

  constructor(options: FollowedProductOptions) {
    const { system, log, root, engine, writeUses, memory } = options
    const { control, artifacts, keyring } = root
    this.#options = options
    this.root = root
    this.releases = new ReleaseCache({ control, artifacts, bytesMax: memory.releaseBytes })
    const onChange = () => undefined
    const { releases } = this
    this.serving = new Serving({
      system,
      log,
      control,
      releases,
      engine,
      onChange,
      isFollower: true,
    })
    this.keys = new ApplicationKeys({ system, log, control, keyring, writeUses })
    this.#configuration = this.#configurationRevision()
    this.#followLifecycle()
  }

  /** Takes over what another process has committed to the control database. */
  follow(): void {
    const { root, engine, configuration } = this.#options
    root.control.followChange()
    this.keys.forget()
    const revision = this.#configurationRevision()
    if (revision !== this.#configuration) {
      this.#configuration = revision
      configuration.reload()
    }
    this.#followLifecycle()
    this.serving.follow()
    const live = root.control.read(listLiveReleases)
    engine.retainOnly(new Map(live.map(({ releaseId }) => [releaseId, []])))
  }

  async close(): Promise<void> {
    await this.serving.whenIdle()
    this.keys.close()
  }

  #followLifecycle(): void {
    const { lifecycle } = this.root.control.read(findEnvironment)!
    if (lifecycle === 'active') this.serving.start()
    else this.serving.stop()
  }

  /** A text that is equal for equal configurations. */
  #configurationRevision(): string {
    const entries = this.root.control.read(listEntries)
    return entries.map(({ name, revision }) => `${name} ${revision}`).join('\n')
  }
}
