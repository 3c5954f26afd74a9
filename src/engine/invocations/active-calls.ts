/**
 * Counts the calls of each Release: what one needs is kept until they have ended, also where the
 * Release may not be called any more. A Release that is retired under an Action would otherwise
 * take its runner, and under a Mutation the index whose ranges it has read.
 */
import type { IndexDefinition } from '../../documents/store.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { indexDefinitions } from '../releases/preparations.ts'
import type { LiveReleases, Release } from '../releases/release.ts'

/** Those of one Release. */
class Use {
  readonly tables: Release['tables']
  calls = 0
  /** One function for all of them. */
  readonly end: () => void

  constructor(tables: Release['tables'], end: (use: Use) => void) {
    this.tables = tables
    this.end = () => end(this)
  }
}

export class ActiveCalls {
  /** Of every Release that was called since the last `keepOnly`, and those that it kept. */
  #uses = new Map<ReleaseId, Use>()
  #kept: { readonly live: LiveReleases; readonly again: () => void } | null = null
  /** Late ones included. */
  #all = 0
  #late = 0
  readonly #idle: (() => void)[] = []

  /** Those that are not answered. */
  get count(): number {
    return this.#all - this.#late
  }

  /** Answers what ends it. */
  begin({ releaseId, tables }: Release): () => void {
    let use = this.#uses.get(releaseId)
    if (use === undefined) {
      use = new Use(tables, (ended) => this.#end(releaseId, ended))
      this.#uses.set(releaseId, use)
    }
    use.calls += 1
    this.#all += 1
    return use.end
  }

  /** Of what goes on when its caller has been answered: it needs its Release as a call does. */
  beginLate(release: Release): () => void {
    const end = this.begin(release)
    this.#late += 1
    return () => {
      this.#late -= 1
      end()
    }
  }

  /** Resolves once there is none, nor anything late. */
  idle(): Promise<void> {
    if (this.#all === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /**
   * Those of `live`, and those that calls are in flight of. `again` is called whenever the last
   * call of one that is not live has ended.
   */
  keepOnly(live: LiveReleases, again: () => void): LiveReleases {
    this.#kept = { live, again }
    const kept = new Map<ReleaseId, readonly IndexDefinition[]>(live)
    const uses = new Map<ReleaseId, Use>()
    for (const [releaseId, use] of this.#uses) {
      if (use.calls === 0) continue
      uses.set(releaseId, use)
      if (!live.has(releaseId)) kept.set(releaseId, indexDefinitions(use.tables.values()))
    }
    this.#uses = uses
    return kept
  }

  #end(releaseId: ReleaseId, use: Use): void {
    use.calls -= 1
    this.#all -= 1
    if (this.#all === 0) for (const resolve of this.#idle.splice(0)) resolve()
    if (use.calls > 0 || this.#kept === null) return
    if (!this.#kept.live.has(releaseId)) this.#kept.again()
  }
}
