/**
 * What the Channels and environment:default serve. A binding or a policy is desired from its commit
 * and observed once its Releases are in memory and runners hold them.
 */
import { Fault } from '../../errors/fault.ts'
import { type Channel, listChannels } from '../../storage/control/channels.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import {
  findConvergedPolicy,
  findDesiredPolicy,
  markPolicyConverged,
  type ServingPolicy,
} from '../../storage/control/serving-policy.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { ReleaseEngine } from '../product.ts'
import type { LoadedRelease, ReleaseCache } from '../releases/release-cache.ts'
import { Convergence, type Desired } from './convergence.ts'

/** A policy whose Releases are ready. */
export interface ServedPolicy {
  readonly revision: bigint
  readonly convergedAtMicros: bigint
  /** Sorted by Release; the weights are 10,000 together. */
  readonly releases: readonly { readonly release: LoadedRelease; readonly weight: number }[]
}

interface ServingOptions {
  readonly system: System
  readonly log: Logger
  readonly control: ControlDatabase
  readonly releases: ReleaseCache
  readonly engine: Pick<ReleaseEngine, 'isWarm' | 'warm'>
}

/** Told after a Channel began to serve another Release. */
export type ServingListener = (channel: string, release: LoadedRelease) => void

export class Serving {
  readonly #options: ServingOptions
  readonly #channels = new Map<string, Convergence<LoadedRelease>>()
  readonly #listeners = new Set<ServingListener>()
  #policy: Convergence<ServedPolicy> | null = null
  /** Until what was served before the start has been loaded, or not. */
  #resuming: Promise<void> = Promise.resolve()
  #isStopped = true

  constructor(options: ServingOptions) {
    this.#options = options
  }

  /** Begins to load what every Channel is bound to and what the policy names. */
  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    const { control } = this.#options
    for (const channel of control.read(listChannels)) this.bind(channel)
    const converged = control.read(findConvergedPolicy)
    // It was ready once: until the desired one is, it serves.
    if (converged !== null) this.#desirePolicy(converged)
    const resumed = this.#policy?.settled() ?? Promise.resolve()
    this.#resuming = resumed.then(() => this.followPolicy())
  }

  /** Serves nothing from here on; calls that have their Release keep it. */
  stop(): void {
    this.#isStopped = true
    for (const channel of this.#channels.values()) channel.end()
    this.#channels.clear()
    this.#policy?.end()
    this.#policy = null
  }

  /** After the binding is committed, in the same turn of the event loop. */
  bind({ name, releaseId }: Pick<Channel, 'name' | 'releaseId'>): void {
    if (this.#isStopped) return
    const { releases, engine } = this.#options
    const channel = this.#channels.get(name) ?? this.#newChannel(name)
    channel.desire({
      key: releaseId,
      ready: () => {
        const loaded = releases.peek(releaseId)
        return loaded !== null && engine.isWarm(loaded) ? loaded : null
      },
      load: async () => {
        const release = await releases.load(releaseId)
        await this.#warmIfPossible(name, release)
        return release
      },
    })
  }

  /** After a policy is committed: what is stored now is desired. */
  followPolicy(): void {
    const policy = this.#isStopped ? null : this.#options.control.read(findDesiredPolicy)
    if (policy !== null) this.#desirePolicy(policy)
  }

  /**
   * What the Channel serves; null where it is not bound. A promise only before its first Release is
   * loaded; it rejects with what ReleaseCache.load throws.
   */
  find(name: string): LoadedRelease | Promise<LoadedRelease> | null {
    return this.#channels.get(name)?.find() ?? null
  }

  /** Whether a Channel serves it, be it only until what replaces it is ready. */
  isServed(releaseId: ReleaseId): boolean {
    return [...this.#channels.values()].some((each) => each.peek()?.releaseId === releaseId)
  }

  /** What environment:default serves, as `find`; null where there is no policy. */
  findPolicy(): ServedPolicy | Promise<ServedPolicy> | null {
    return this.#policy?.find() ?? null
  }

  /** What environment:default serves now; null where it serves nothing. */
  get observedPolicy(): ServedPolicy | null {
    return this.#policy?.peek() ?? null
  }

  state(name: string): 'pending' | 'converged' {
    return this.#channels.get(name)?.isConverged === true ? 'converged' : 'pending'
  }

  /** Whether anything is to be served; asked with every call. */
  get isStarted(): boolean {
    return this.#channels.size > 0 || this.#policy !== null
  }

  /** Of the whole Environment: it serves when every Channel and the policy converged. */
  overall(): 'stopped' | 'starting' | 'serving' {
    if (!this.isStarted) return 'stopped'
    return this.#all().every(({ isConverged }) => isConverged) ? 'serving' : 'starting'
  }

  /** Answers the function that ends it. */
  listen(listener: ServingListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when nothing is being loaded, whatever came of it. */
  async settled(): Promise<void> {
    await this.#resuming
    await Promise.all(this.#all().map((each) => each.settled()))
  }

  #all(): (Convergence<LoadedRelease> | Convergence<ServedPolicy>)[] {
    const policy = this.#policy === null ? [] : [this.#policy]
    return [...this.#channels.values(), ...policy]
  }

  #newChannel(name: string): Convergence<LoadedRelease> {
    const { system, log } = this.#options
    const channel = new Convergence<LoadedRelease>({
      system,
      observed: (release) => {
        for (const listener of this.#listeners) listener(name, release)
      },
      failed: (releaseId, error) =>
        log.error('product.serving_failed', { channel: name, releaseId, error }),
    })
    this.#channels.set(name, channel)
    return channel
  }

  /** A Release whose runner does not start yet is served: its calls say why they fail. */
  async #warmIfPossible(channel: string, release: LoadedRelease): Promise<void> {
    const { engine, log } = this.#options
    try {
      await engine.warm(release)
    } catch (error) {
      log.warn('product.not_warm', { channel, releaseId: release.releaseId, error })
    }
  }

  #desirePolicy(policy: ServingPolicy): void {
    const { system, log } = this.#options
    this.#policy ??= new Convergence<ServedPolicy>({
      system,
      observed: ({ revision }) => log.info('product.policy_served', { revision: String(revision) }),
      failed: (revision, error) => log.error('product.policy_failed', { revision, error }),
    })
    this.#policy.desire(this.#desiredPolicy(policy))
  }

  /** It is never ready at once: that it converged has to be written down. */
  #desiredPolicy({ revision, releases }: ServingPolicy): Desired<ServedPolicy> {
    const { system, control } = this.#options
    return {
      key: String(revision),
      ready: () => null,
      load: async () => {
        const loaded = await Promise.all(
          releases.map(async ({ releaseId, weight }) => ({
            release: await this.#loadWarm(releaseId),
            weight,
          })),
        )
        const stored = control.transaction((tx) => {
          markPolicyConverged(tx, revision, system.nowMicros())
          return findConvergedPolicy(tx)
        })
        if (stored?.revision !== revision) throw replaced(revision)
        return { revision, convergedAtMicros: stored.convergedAtMicros!, releases: loaded }
      },
    }
  }

  /** Traffic moves to a policy only where its runners have started. */
  async #loadWarm(releaseId: ServingPolicy['releases'][number]['releaseId']) {
    const { releases, engine } = this.#options
    const release = await releases.load(releaseId)
    try {
      await engine.warm(release)
    } catch (cause) {
      throw new Fault('PRODUCT_UNAVAILABLE', { cause, detail: `${releaseId} is not warm` })
    }
    return release
  }
}

/** What is served by it does not matter: a newer policy is desired. */
function replaced(revision: bigint): Fault {
  return new Fault('PRODUCT_UNAVAILABLE', { detail: `policy ${revision} was replaced` })
}
