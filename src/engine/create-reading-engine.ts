/**
 * Wires the engine of a process that executes Queries and watches them. Another process of the
 * server commits: it executes Mutations and Actions, and tells this one of its commits.
 */
import type { FollowedDocuments } from '../documents/followed-documents.ts'
import { Fault } from '../errors/fault.ts'
import { DEFAULT_PLAN } from '../system/memory/memory-plan.ts'
import type { ReleaseId } from '../value/ids.ts'
import { CallAdmission } from './admission/call-admission.ts'
import { FollowedCommits } from './commits/followed-commits.ts'
import type { CommitWrites } from './commits/read-set.ts'
import type { EngineOptions } from './create-engine.ts'
import type { CallEngine, Engine } from './engine.ts'
import { Queries } from './invocations/queries.ts'
import { measuredCalls } from './measured-engine.ts'
import { QueryCache } from './query-cache/query-cache.ts'
import { ActiveCalls } from './releases/active-calls.ts'
import type { LiveReleases, Release } from './releases/executable-release.ts'
import { Preparations } from './releases/preparations.ts'
import { PendingWork } from './scheduled-work/pending-work.ts'
import { Subscriptions } from './subscriptions/subscriptions.ts'
import { SystemTablesLoader } from './tables/system-tables.ts'
import { FunctionUsage } from './usage/function-usage.ts'
import { DocumentsHealth } from './usage/health.ts'

export interface ReadingEngineOptions
  extends Omit<EngineOptions, 'store' | 'outbound' | 'timers' | 'commitMillisMax'> {
  readonly store: FollowedDocuments
  /** Executes calls in the process that commits. */
  readonly remote: Pick<Engine, 'mutation' | 'action' | 'replay'>
  /** Resolves when the process that commits has prepared the Release. */
  readonly prepareRemotely: (release: Release) => Promise<void>
}

export interface ReadingEngine extends CallEngine {
  /** Notes a durable commit of the other process. Sequences ascend. */
  followCommit(sequence: number, writes: CommitWrites): void
  isWarm(release: Release): boolean
  /** Tells which Releases are served: the processes of others end. */
  markServed(releases: ReadonlySet<ReleaseId>): void
  /** Evicts what was prepared for Releases that are not served. A call prepares them again. */
  trim(): void
  warm(release: Release): Promise<void>
  /**
   * Stops the runners of all other Releases without calls in flight and evicts what was prepared
   * for them.
   */
  retainOnly(live: LiveReleases): void
  whenIdle(): Promise<void>
  close(): Promise<void>
}

export function createReadingEngine(options: ReadingEngineOptions): ReadingEngine {
  const { store, pool, remote, prepareRemotely, memory = DEFAULT_PLAN } = options
  const cache = new QueryCache(options)
  const committer = new FollowedCommits(store.latestSequence, memory)
  const tables = new SystemTablesLoader(store, committer)
  const preparations = new Preparations(store, committer, tables, {
    before: prepareRemotely,
    memory,
  })
  store.onSchemaChange(() => preparations.storedFields.follow())
  const usage = new FunctionUsage(options)
  const inFlight = new ActiveCalls()
  const port = { ...options, cache, committer, usage, inFlight, pendingWork: new PendingWork() }
  const queries = new Queries(port)
  const calls = new CallAdmission({
    ...port,
    preparations,
    queries,
    mutations: ELSEWHERE,
    actions: ELSEWHERE,
  })
  const subscriptions = new Subscriptions({ ...port, calls })
  const reads = new DocumentsHealth(store)
  const engine: CallEngine = {
    query: (request) => calls.query(request),
    mutation: (request) => remote.mutation(request),
    action: (request) => remote.action(request),
    replay: (request, callers) => remote.replay(request, callers),
    watch: (request, observer) => subscriptions.watch(request, observer),
    ready: () => store.status.state === 'open',
    canReadDocuments: async () => (await reads.check()) === 'healthy',
    durableSequence: () => committer.durable,
    subscriptionStatistics: () => subscriptions.statistics,
  }
  options.metrics.addSource(() => ({
    queryCacheHits: cache.statistics.hits,
    queryCacheMisses: cache.statistics.misses,
    queryCacheEvictions: cache.statistics.evictions,
    queryCacheEntries: cache.statistics.entries,
    queryCacheCharacters: cache.statistics.characters,
    invocationsInFlight: inFlight.count,
    subscriptions: subscriptions.statistics.subscriptions,
    watchedQueries: subscriptions.statistics.queries,
    subscriptionRefreshes: subscriptions.statistics.refreshes,
  }))
  const { query } = measuredCalls(engine, options)
  return {
    // The process that executes the other calls counts them.
    ...engine,
    query,
    followCommit: (sequence, writes) => {
      committer.follow(sequence, writes)
      store.followCommit(sequence, writes.documents)
      cache.invalidate(writes)
      subscriptions.onCommit(writes)
    },
    markServed: (releases) => {
      pool.markServed(releases)
      preparations.markServed(releases)
    },
    trim: () => preparations.trim(),
    isWarm: ({ releaseId }) =>
      preparations.find(releaseId) !== null && pool.isWarm(releaseId, ['transactions']),
    warm: async (release) => {
      await preparations.prepare(release)
      await pool.warm(release, ['transactions'])
    },
    retainOnly: (live) => {
      const retained = inFlight.retainOnly(live, () => undefined)
      pool.retainOnly(retained)
      preparations.evictOthers(retained)
    },
    whenIdle: () => inFlight.whenIdle(),
    close: async () => {
      subscriptions.close()
      await pool.close()
      await store.close()
      usage.stop()
    },
  }
}

/** Mutations and Actions never reach the admission of this process. */
const ELSEWHERE = {
  invoke: () => Promise.reject(new Fault('INTERNAL', { detail: 'this process executes Queries' })),
}
