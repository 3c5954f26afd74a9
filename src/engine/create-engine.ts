/** Wires the engine of one Environment: store, committer, query cache and runners. */
import type { DocumentStore } from '../documents/store.ts'
import type { MemoryPlan } from '../system/memory/memory-plan.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { Traces } from '../telemetry/traces/spans.ts'
import { Actions } from './actions/actions.ts'
import { Requests, type RequestsOptions } from './actions/outgoing-requests.ts'
import { documentAdministration } from './administration/document-administration.ts'
import { CallAdmission } from './admission/call-admission.ts'
import type { ConfigurationSource } from './calls/function-configuration.ts'
import { Committer } from './commits/committer.ts'
import type { CommitWrites } from './commits/read-set.ts'
import { Retention } from './commits/retention.ts'
import type { Engine } from './engine.ts'
import type { FunctionStorage } from './files/function-storage.ts'
import { SystemDocuments } from './files/system-documents.ts'
import { Inbox } from './inbox/inbox.ts'
import type { Cursors } from './invocations/context-operations.ts'
import type { IssueGuest } from './invocations/guest-identities.ts'
import type { DocumentSystem } from './invocations/invocation-spans.ts'
import { Mutations } from './invocations/mutations.ts'
import { Queries } from './invocations/queries.ts'
import { measuredEngine } from './measured-engine.ts'
import { Migrations } from './migrations/migrations.ts'
import { QueryCache } from './query-cache/query-cache.ts'
import { ActiveCalls } from './releases/active-calls.ts'
import type { Release } from './releases/executable-release.ts'
import { Preparations } from './releases/preparations.ts'
import type { RunnerRole } from './runners/ports.ts'
import type { RunnerPool } from './runners/runner-pool.ts'
import { PendingWork } from './scheduled-work/pending-work.ts'
import { Scheduler } from './scheduling/scheduler.ts'
import type { Timers } from './scheduling/timers.ts'
import { Subscriptions } from './subscriptions/subscriptions.ts'
import { storedTables } from './tables/stored-tables.ts'
import { SystemTablesLoader } from './tables/system-tables.ts'
import { FunctionUsage } from './usage/function-usage.ts'
import { componentHealth, DocumentsHealth, worstHealth } from './usage/health.ts'

export interface EngineOptions {
  readonly store: DocumentStore
  readonly pool: RunnerPool
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly issueGuest: IssueGuest
  readonly storage: FunctionStorage
  readonly cursors: Cursors
  readonly configuration: ConfigurationSource
  /** Networks that Actions may send requests to in addition to the public Internet. */
  readonly outbound?: RequestsOptions
  /** Null or absent where nothing is traced. */
  readonly traces?: Traces | null | undefined
  /** Shown by spans of commits. */
  readonly documentSystem?: DocumentSystem
  /** `SchedulerOptions.timers`. */
  readonly timers?: Timers
  /** `CacheOptions.resultClock`. */
  readonly resultClock?: Pick<System, 'monotonicMillis'>
  /**
   * Called for every durable commit, in sequence order, before its caller gets the reply. It must
   * not throw.
   */
  readonly onDurable?: ((sequence: number, writes: CommitWrites) => void) | undefined
  /** The memory of its caches. Default: that of the default target. */
  readonly memory?: MemoryPlan | undefined
  /** `CommitterOptions.commitMillisMax`. */
  readonly commitMillisMax?: number
}

export function createEngine(options: EngineOptions): Engine {
  const { store, pool } = options
  const parts = engineParts(options)
  const { cache, committer, documents, usage, inFlight, mutations, actions, retention } = parts
  const { preparations, calls, subscriptions, reads, scheduler, inbox, migrations } = parts
  retention.start()

  const administration = documentAdministration({ ...options, ...parts })
  const engine: Engine = {
    administration,
    documents,
    commits: committer,
    scheduler,
    inbox,
    migrations,
    describe: (code) => pool.describe(code),
    prepare: async (release) => {
      const { tables } = await preparations.prepare(release)
      return storedTables(store, tables, committer.durable)
    },
    query: (request) => calls.query(request),
    mutation: (request) => calls.mutation(request),
    replay: (request, callers) => mutations.replay(request, callers),
    action: (request) => calls.action(request),
    watch: (request, observer) => subscriptions.watch(request, observer),
    isWarm: (release) =>
      preparations.find(release.releaseId) !== null &&
      pool.isWarm(release.releaseId, rolesOf(release)),
    warm: async (release) => {
      await preparations.prepare(release)
      await pool.warm(release, rolesOf(release))
    },
    markServed: (releases) => {
      pool.markServed(releases)
      preparations.markServed(releases)
    },
    trim: () => preparations.trim(),
    retainOnly: (live, onDrained) => {
      const retained = inFlight.retainOnly(live, onDrained)
      pool.retainOnly(retained)
      return preparations.retainOnly(retained)
    },
    ready: () => store.status.state === 'open',
    canReadDocuments: async () => (await reads.check()) === 'healthy',
    health: async () => [
      ...(await componentHealth(reads, committer, pool.statistics())),
      { name: 'scheduler', status: worstHealth(scheduler.health, migrations.health) },
    ],
    whenIdle: () => inFlight.whenIdle(),
    durableSequence: () => committer.durable,
    subscriptionStatistics: () => subscriptions.statistics,
    statistics: () => ({
      cache: cache.statistics,
      actions: actions.statistics,
      subscriptions: subscriptions.statistics,
      scheduler: scheduler.statistics,
      migrations: migrations.statistics,
      inFlight: inFlight.count,
      durableSequence: committer.durable,
    }),
    close: async () => {
      subscriptions.close()
      scheduler.stop()
      migrations.stop()
      await retention.stop()
      await pool.close()
      await scheduler.whenIdle()
      await migrations.whenIdle()
      await committer.drain()
      await store.close()
      usage.stop()
    },
  }
  return measuredEngine(engine, options)
}

/** Wires the parts of an engine to each other. */
function engineParts(options: EngineOptions) {
  const { store, pool, system, log } = options
  const cache = new QueryCache(options)
  const committer = new Committer({
    ...options,
    onAssign: ({ scheduled }) => {
      if (scheduled !== undefined) scheduler.onAssign(scheduled)
    },
    onRollback: ({ scheduled }) => {
      if (scheduled !== undefined) scheduler.onRollback(scheduled)
    },
    onCommit: (sequence, writes) => {
      options.onDurable?.(sequence, writes)
      cache.invalidate(writes)
      subscriptions.onCommit(writes)
      if (writes.files !== undefined) documents.notify(writes.files)
      if (writes.scheduled !== undefined) scheduler.onCommit(writes.scheduled)
    },
  })
  const tables = new SystemTablesLoader(store, committer)
  const documents = new SystemDocuments({ store, committer, system, tables })
  const usage = new FunctionUsage(options)
  const inFlight = new ActiveCalls()
  const pendingWork = new PendingWork()
  const port = { ...options, cache, committer, usage, inFlight, pendingWork }
  const queries = new Queries(port)
  const mutations = new Mutations(port)
  const requests = new Requests(options.outbound ?? { allowedNetworks: [] }, pool)
  const actions = new Actions({ ...port, queries, mutations, requests, documents })
  const retention = new Retention({ store, committer, system, log })
  const preparations = new Preparations(store, committer, tables, options)
  const { metrics } = options
  const calls = new CallAdmission({
    preparations,
    queries,
    mutations,
    actions,
    inFlight,
    system,
    metrics,
  })
  const subscriptions = new Subscriptions({ ...port, calls })
  const { timers, traces } = options
  const scheduling = { store, committer, documents, tables, calls, system, log, metrics, traces }
  const scheduler = new Scheduler({
    ...scheduling,
    pending: pendingWork,
    ...(timers !== undefined && { timers }),
  })
  const migrations = new Migrations({
    ...port,
    documents,
    calls,
    mutations,
    preparations,
  })
  const inbox = new Inbox({
    ...port,
    mutations,
    preparations,
    rerun: (id, rerun) => scheduler.rerun(id, rerun),
    whenEnded: (id, signal) => scheduler.whenEnded(id, signal),
    readEnded: (id) => scheduler.readEnded(id),
  })
  const reads = new DocumentsHealth(store)
  return {
    cache,
    committer,
    documents,
    usage,
    inFlight,
    mutations,
    actions,
    retention,
    preparations,
    calls,
    subscriptions,
    reads,
    scheduler,
    inbox,
    migrations,
  }
}

/** Returns the runner roles that the Functions of a Release need. */
function rolesOf({ functions }: Release): readonly RunnerRole[] {
  const hasActions = [...functions.values()].some(({ kind }) => kind === 'action')
  return hasActions ? ['transactions', 'actions'] : ['transactions']
}
