/**
 * Counts the calls in flight per Release. The resources of a Release are retained until its calls
 * have ended, even if it was retired: otherwise a retirement would remove the runner of a running
 * Action, or an index that a running Mutation reads.
 */
import type { IndexDefinition } from '../../documents/store.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { indexDefinitions } from '../tables/physical-indexes.ts'
import type { LiveReleases, Release } from './executable-release.ts'

/** The calls in flight of one Release. */
class ReleaseCalls {
  readonly tables: Release['tables']
  count = 0
  /** Ends one call. All calls share this function, so that none allocates a closure. */
  readonly end: () => void

  constructor(tables: Release['tables'], end: (calls: ReleaseCalls) => void) {
    this.tables = tables
    this.end = () => end(this)
  }
}

export class ActiveCalls {
  /** Releases that were called since the last `retainOnly`, or had calls in flight then. */
  #releases = new Map<ReleaseId, ReleaseCalls>()
  #retained: { readonly live: LiveReleases; readonly onDrained: () => void } | null = null
  /** All calls in flight, including detached ones. */
  #total = 0
  #detached = 0
  readonly #idleWaiters: (() => void)[] = []

  /** Number of calls whose callers wait for a reply. */
  get count(): number {
    return this.#total - this.#detached
  }

  /** Counts a call until the returned function is called. */
  begin({ releaseId, tables }: Release): () => void {
    let calls = this.#releases.get(releaseId)
    if (calls === undefined) {
      calls = new ReleaseCalls(tables, (ended) => this.#end(releaseId, ended))
      this.#releases.set(releaseId, calls)
    }
    calls.count += 1
    this.#total += 1
    return calls.end
  }

  /** Counts work that continues after the reply to its caller, and needs the Release as well. */
  beginDetached(release: Release): () => void {
    const end = this.begin(release)
    this.#detached += 1
    return () => {
      this.#detached -= 1
      end()
    }
  }

  /** Yields the tables of each Release with calls in flight. */
  *tablesInFlight(): Iterable<Release['tables']> {
    for (const { tables, count } of this.#releases.values()) if (count > 0) yield tables
  }

  /** Resolves once no call is in flight, detached ones included. */
  whenIdle(): Promise<void> {
    if (this.#total === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  /**
   * Returns the Releases of `live` and those with calls in flight. From then on calls `onDrained`
   * whenever the last call of a Release that is not in `live` has ended.
   */
  retainOnly(live: LiveReleases, onDrained: () => void): LiveReleases {
    this.#retained = { live, onDrained }
    const retained = new Map<ReleaseId, readonly IndexDefinition[]>(live)
    const releases = new Map<ReleaseId, ReleaseCalls>()
    for (const [releaseId, calls] of this.#releases) {
      if (calls.count === 0) continue
      releases.set(releaseId, calls)
      if (!live.has(releaseId)) retained.set(releaseId, indexDefinitions(calls.tables.values()))
    }
    this.#releases = releases
    return retained
  }

  #end(releaseId: ReleaseId, calls: ReleaseCalls): void {
    calls.count -= 1
    this.#total -= 1
    if (this.#total === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve()
    if (calls.count > 0 || this.#retained === null) return
    if (!this.#retained.live.has(releaseId)) this.#retained.onDrained()
  }
}
