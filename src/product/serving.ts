/**
 * What each Channel serves. A binding is desired from the commit of its promotion and observed once
 * the Release is in memory and a runner holds it; until then the Channel keeps serving what it
 * served, so that neither a slow disk nor a damaged artifact takes traffic down.
 */
import { Fault } from '../errors/fault.ts'
import { type Channel, listChannels } from '../storage/control/channels.ts'
import type { ControlDatabase } from '../storage/control/database.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { ReleaseId } from '../value/ids.ts'
import type { ReleaseEngine } from './product.ts'
import type { LoadedRelease, ReleaseCache } from './release-cache.ts'

interface Binding {
  desired: ReleaseId
  observed: LoadedRelease | null
  refresh: Promise<LoadedRelease> | null
  /** Monotonic time of the last failure to load `desired`. */
  failedAtMillis: number
}

interface ServingOptions {
  readonly system: System
  readonly log: Logger
  readonly control: ControlDatabase
  readonly releases: ReleaseCache
  readonly engine: Pick<ReleaseEngine, 'warm'>
}

/** Told after a Channel began to serve another Release. */
export type ServingListener = (channel: string, release: LoadedRelease) => void

const RETRY_MS = 1_000

export class Serving {
  readonly #options: ServingOptions
  readonly #bindings = new Map<string, Binding>()
  readonly #listeners = new Set<ServingListener>()

  constructor(options: ServingOptions) {
    this.#options = options
  }

  /** Begins to load what every Channel is bound to. */
  start(): void {
    for (const channel of this.#options.control.read(listChannels)) this.bind(channel)
  }

  /** After the binding is committed, in the same turn of the event loop. */
  bind({ name, releaseId }: Pick<Channel, 'name' | 'releaseId'>): void {
    const known = this.#bindings.get(name)
    if (known?.desired === releaseId) return
    const binding: Binding = {
      desired: releaseId,
      observed: known?.observed ?? null,
      refresh: null,
      failedAtMillis: Number.NEGATIVE_INFINITY,
    }
    this.#bindings.set(name, binding)
    const loaded = this.#options.releases.peek(releaseId)
    const warming = loaded === null ? undefined : this.#options.engine.warm(loaded)
    if (loaded !== null && warming === null) this.#observe(name, binding, loaded)
    else this.#refreshInBackground(name, binding)
  }

  /**
   * What the Channel serves; null where it is not bound. A promise only before its first Release is
   * loaded; it rejects with what ReleaseCache.load throws.
   */
  find(name: string): LoadedRelease | Promise<LoadedRelease> | null {
    const binding = this.#bindings.get(name)
    if (binding === undefined) return null
    if (binding.observed?.releaseId === binding.desired) return binding.observed
    if (binding.observed === null) return this.#refresh(name, binding)
    this.#refreshInBackground(name, binding)
    return binding.observed
  }

  state(name: string): 'pending' | 'converged' {
    const binding = this.#bindings.get(name)
    return binding?.observed?.releaseId === binding?.desired ? 'converged' : 'pending'
  }

  /** Whether any Channel was ever promoted; asked with every call. */
  get isStarted(): boolean {
    return this.#bindings.size > 0
  }

  /** Of the whole Environment: it serves when every Channel serves what it is bound to. */
  overall(): 'stopped' | 'starting' | 'serving' {
    if (!this.isStarted) return 'stopped'
    const names = [...this.#bindings.keys()]
    return names.every((name) => this.state(name) === 'converged') ? 'serving' : 'starting'
  }

  /** Answers the function that ends it. */
  listen(listener: ServingListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when nothing is being loaded, whatever came of it. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#bindings.values()].map(({ refresh }) => refresh))
  }

  #refreshInBackground(name: string, binding: Binding): void {
    this.#refresh(name, binding).catch(() => undefined)
  }

  #refresh(name: string, binding: Binding): Promise<LoadedRelease> {
    const { system, releases, log } = this.#options
    if (binding.refresh !== null) return binding.refresh
    // A damaged artifact is not read again for every request that asks for it.
    if (system.monotonicMillis() - binding.failedAtMillis < RETRY_MS) {
      return Promise.reject(new Fault('PRODUCT_UNAVAILABLE', { detail: `channel ${name}` }))
    }
    binding.refresh = releases
      .load(binding.desired)
      .then(async (release) => {
        await this.#warm(name, release)
        this.#observe(name, binding, release)
        return release
      })
      .catch((error: unknown) => {
        binding.failedAtMillis = system.monotonicMillis()
        log.error('product.serving_failed', { channel: name, releaseId: binding.desired, error })
        throw error
      })
      .finally(() => {
        binding.refresh = null
      })
    return binding.refresh
  }

  /** A Release whose runner does not start yet is served: its calls say why they fail. */
  async #warm(channel: string, release: LoadedRelease): Promise<void> {
    const { engine, log } = this.#options
    try {
      await engine.warm(release)
    } catch (error) {
      log.warn('product.not_warm', { channel, releaseId: release.releaseId, error })
    }
  }

  /** A binding that was replaced while its Release was loading is not served any more. */
  #observe(name: string, binding: Binding, release: LoadedRelease): void {
    if (this.#bindings.get(name) !== binding) return
    binding.observed = release
    for (const listener of this.#listeners) listener(name, release)
  }
}
