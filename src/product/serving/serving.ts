/**
 * The Releases that the Channels and environment:default serve. A binding or a policy is desired
 * from its commit on and observed once its Releases are in memory and runners hold them.
 */
import type { Engine } from '../../engine/engine.ts'
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
import type { LoadedRelease } from '../ports.ts'
import type { ReleaseCache } from '../releases/release-cache.ts'
import { Convergence, type Desired } from './convergence.ts'

/** A policy whose Releases are ready. */
export interface ServedPolicy {
  readonly revision: bigint
  readonly convergedAtMicros: bigint
  /** Sorted by Release; the sum of the weights is 10,000. */
  readonly releases: readonly { readonly release: LoadedRelease; readonly weight: number }[]
}

/** The keys of what is observed, by target. */
export type ServedTargets = ReadonlyMap<string, string | null>

const DEFAULT_TARGET = 'environment:default'

interface ServingOptions {
  readonly system: System
  readonly log: Logger
  readonly control: ControlDatabase
  readonly releases: ReleaseCache
  readonly engine: Pick<Engine, 'isWarm' | 'warm' | 'markServed' | 'trim'>
  /** Called after each change of what is served. */
  readonly onChange: () => void
  /**
   * True in a process that follows another one, which decides when a policy has converged. Absent
   * for false.
   */
  readonly isFollower?: boolean
}

/** A function that is called after a Channel started to serve another Release. */
export type ServingListener = (channel: string, release: LoadedRelease) => void

export class Serving {
  readonly #options: ServingOptions
  readonly #channels = new Map<string, Convergence<LoadedRelease>>()
  readonly #listeners = new Set<ServingListener>()
  #policy: Convergence<ServedPolicy> | null = null
  /** Resolves once the policy that served before the start was loaded, or failed to load. */
  #resuming: Promise<void> = Promise.resolve()
  #isStopped = true
  #changes = 0

  constructor(options: ServingOptions) {
    this.#options = options
  }

  /** Starts to load the Release of every Channel and those of the policy. */
  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    const { control } = this.#options
    for (const channel of control.read(listChannels)) this.bind(channel)
    const converged = control.read(findConvergedPolicy)
    // The converged policy serves until the desired one is ready.
    if (converged !== null) this.#desirePolicy(converged)
    const resumed = this.#policy?.whenIdle() ?? Promise.resolve()
    this.#resuming = resumed.then(() => this.followPolicy())
  }

  /** Stops serving; calls that hold their Release already keep it. */
  stop(): void {
    this.#isStopped = true
    for (const channel of this.#channels.values()) channel.end()
    this.#channels.clear()
    this.#policy?.end()
    this.#policy = null
    this.#changed()
  }

  /** Desires a binding; call it after the commit, in the same turn of the event loop. */
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

  /** Desires what is stored, after another process has changed it. */
  follow(): void {
    if (this.#isStopped) return
    for (const channel of this.#options.control.read(listChannels)) this.bind(channel)
    this.followPolicy()
  }

  /** Desires the stored policy; call it after a policy is committed. */
  followPolicy(): void {
    const { control, isFollower } = this.#options
    const find = isFollower === true ? findConvergedPolicy : findDesiredPolicy
    const policy = this.#isStopped ? null : control.read(find)
    if (policy !== null) this.#desirePolicy(policy)
  }

  /**
   * Returns the Release that the Channel serves; null if it is not bound. Returns a promise only
   * before its first Release is loaded; it rejects with the errors of ReleaseCache.load.
   */
  find(name: string): LoadedRelease | Promise<LoadedRelease> | null {
    return this.#channels.get(name)?.find() ?? null
  }

  /** Returns whether a Channel serves the Release, even if only until its replacement is ready. */
  isServed(releaseId: ReleaseId): boolean {
    return [...this.#channels.values()].some((channel) => channel.peek()?.releaseId === releaseId)
  }

  /** Returns the policy that environment:default serves, as `find` does; null if there is none. */
  findPolicy(): ServedPolicy | Promise<ServedPolicy> | null {
    return this.#policy?.find() ?? null
  }

  /** The policy that environment:default serves now; null if it serves nothing. */
  get observedPolicy(): ServedPolicy | null {
    return this.#policy?.peek() ?? null
  }

  state(name: string): 'pending' | 'converged' {
    return this.#channels.get(name)?.isConverged === true ? 'converged' : 'pending'
  }

  /** Returns whether any Channel or policy is desired. Every call reads it. */
  get isStarted(): boolean {
    return this.#channels.size > 0 || this.#policy !== null
  }

  /** Number of changes of the served Releases. */
  get changes(): number {
    return this.#changes
  }

  /**
   * Returns whether a target can be served, now or once its first load ends. Retries loads that
   * failed, because a load balancer may send no calls until this returns true.
   */
  canServe(): boolean {
    const all = this.#all().map((each) => each.peek() !== null || !each.isFailing)
    return all.includes(true)
  }

  /** Returns whether the last load of a Channel or of the policy failed. */
  get isFailing(): boolean {
    return this.#all().some(({ isFailing }) => isFailing)
  }

  /** The Releases that are served now. */
  servedReleases(): ReadonlySet<ReleaseId> {
    const bound = [...this.#channels.values()].map((channel) => channel.peek())
    const weighted = this.observedPolicy?.releases.map(({ release }) => release) ?? []
    return new Set([...bound, ...weighted].flatMap((release) => release?.releaseId ?? []))
  }

  /** Drops what is in memory of Releases that are not served. A call of one reads it again. */
  trim(): void {
    const { engine, releases } = this.#options
    engine.trim()
    releases.retainOnly(this.servedReleases())
  }

  /**
   * Returns the state of the Environment: it serves when every Channel and the policy converged.
   */
  overall(): 'stopped' | 'starting' | 'serving' {
    if (!this.isStarted) return 'stopped'
    return this.#all().every(({ isConverged }) => isConverged) ? 'serving' : 'starting'
  }

  /** Adds a listener; returns the function that removes it. */
  listen(listener: ServingListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when no load is in progress, even if loads failed. */
  async whenIdle(): Promise<void> {
    await this.#resuming
    await Promise.all(this.#all().map((convergence) => convergence.whenIdle()))
  }

  /** Returns what each target serves now: a Release, or the revision of the policy. */
  served(): ServedTargets {
    return new Map(this.#byTarget().map(([target, { observedKey }]) => [target, observedKey]))
  }

  /**
   * Resolves when no load is in progress of a target that does not serve yet what another process
   * serves. A load whose value was replaced meanwhile serves nothing, so that of the replacement is
   * waited for too: until it ends, the target serves what the other process has left.
   */
  async whenServing(served: ServedTargets): Promise<void> {
    for (;;) {
      const behind = this.#byTarget().filter(
        ([target, { observedKey, isLoading }]) => isLoading && observedKey !== served.get(target),
      )
      if (behind.length === 0) return
      await Promise.all(behind.map(([, convergence]) => convergence.whenIdle()))
    }
  }

  #byTarget(): [string, Convergence<LoadedRelease> | Convergence<ServedPolicy>][] {
    const channels = [...this.#channels].map(
      ([name, channel]): [string, Convergence<LoadedRelease>] => [`channel:${name}`, channel],
    )
    return this.#policy === null
      ? channels
      : [...channels, [DEFAULT_TARGET, this.#policy] as [string, Convergence<ServedPolicy>]]
  }

  #changed(): void {
    this.#changes += 1
    this.#options.engine.markServed(this.servedReleases())
    this.#options.onChange()
  }

  #all(): (Convergence<LoadedRelease> | Convergence<ServedPolicy>)[] {
    const policy = this.#policy === null ? [] : [this.#policy]
    return [...this.#channels.values(), ...policy]
  }

  #newChannel(name: string): Convergence<LoadedRelease> {
    const { system, log } = this.#options
    const channel = new Convergence<LoadedRelease>({
      system,
      onObserved: (release) => {
        this.#changed()
        for (const listener of this.#listeners) listener(name, release)
      },
      onFailure: (releaseId, error) =>
        log.error('product.serving_failed', { channel: name, releaseId, error }),
    })
    this.#channels.set(name, channel)
    return channel
  }

  /** Tolerates a failed warm-up: the Release is served, and its calls report why they fail. */
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
      onObserved: ({ revision }) => {
        this.#changed()
        log.info('product.policy_served', { revision: String(revision) })
      },
      onFailure: (revision, error) => log.error('product.policy_failed', { revision, error }),
    })
    this.#policy.desire(this.#desiredPolicy(policy))
  }

  /** The policy is never ready without loading, as its convergence has to be stored. */
  #desiredPolicy({ revision, releases }: ServingPolicy): Desired<ServedPolicy> {
    const { system, control, isFollower } = this.#options
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
        const stored =
          isFollower === true
            ? control.read(findConvergedPolicy)
            : control.transaction((tx) => {
                markPolicyConverged(tx, revision, system.nowMicros())
                return findConvergedPolicy(tx)
              })
        if (stored?.revision !== revision) throw replaced(revision)
        return { revision, convergedAtMicros: stored.convergedAtMicros!, releases: loaded }
      },
    }
  }

  /** Requires started runners, unlike a binding: only then may traffic move to a policy. */
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

/** The failure to load a policy after a newer one became desired; it affects no caller. */
function replaced(revision: bigint): Fault {
  return new Fault('PRODUCT_UNAVAILABLE', { detail: `policy ${revision} was replaced` })
}
