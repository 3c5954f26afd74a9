/** Function execution of one Environment: documents, committer, cache and runners put together. */
import type { DocumentStore } from '../documents/store.ts'
import type { MaybePromise } from '../system/maybe-promise.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { Principal } from '../value/identities.ts'
import type { FunctionManifest } from '../value/manifest.ts'
import type { Json } from '../value/strict-json.ts'
import type { ValueObject } from '../value/values.ts'
import { type ActionOutcome, type ActionStatistics, Actions } from './actions/actions.ts'
import { Requests, type RequestsOptions } from './actions/outgoing-requests.ts'
import { Committer } from './commits/committer.ts'
import { Retention } from './commits/retention.ts'
import { ActiveCalls } from './invocations/active-calls.ts'
import { CallAdmission } from './invocations/admission.ts'
import type { ConfigurationSource } from './invocations/configuration.ts'
import type { Cursors } from './invocations/context-operations.ts'
import type { IssueGuest } from './invocations/guests.ts'
import type { InvocationContext } from './invocations/invocations.ts'
import { type MutationOutcome, Mutations, type Repeat } from './invocations/mutations.ts'
import { Queries, type QueryOutcome } from './invocations/queries.ts'
import { type CacheStatistics, QueryCache } from './query-cache/query-cache.ts'
import { Preparations } from './releases/preparations.ts'
import type { LiveReleases, Release, ReleaseCode } from './releases/release.ts'
import type { PreparationCheck } from './releases/stored-documents.ts'
import type { CancellationToken } from './runners/outcomes.ts'
import type { RunnerRole } from './runners/ports.ts'
import type { RunnerPool } from './runners/runner-pool.ts'
import { FunctionUsage } from './usage/function-usage.ts'
import { type ComponentHealth, DocumentsHealth, healthOf } from './usage/health.ts'
import { measuredEngine } from './usage/measured-engine.ts'

export interface EngineOptions {
  readonly store: DocumentStore
  readonly pool: RunnerPool
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly issueGuest: IssueGuest
  readonly cursors: Cursors
  readonly configuration: ConfigurationSource
  /** Where the requests of Actions may go besides the public Internet. */
  readonly outbound?: RequestsOptions
  /** As the committer's. */
  readonly commitMillisMax?: number
}

export interface QueryRequest {
  readonly release: Release
  readonly definition: FunctionManifest
  readonly arguments: ValueObject
  /** Whom the Function sees; null for nobody. */
  readonly principal: Principal | null
  readonly context: InvocationContext
  /** Of the caller: when it is gone, a Query or an Action stops; a Mutation is carried out. */
  readonly signal?: CancellationToken | undefined
}

export interface MutationRequest extends QueryRequest {
  readonly operationId: string
  readonly target: string
  readonly caller: string
}

export interface Engine {
  /** What the code says of itself inside the sandbox; nothing of it is trusted. */
  describe(code: ReleaseCode): Promise<Json>
  /**
   * Makes every index that the Release reads, compares its schema with what is stored, in all of
   * its tables or in these, and starts a runner for it. A failed check leaves other Releases as
   * they were.
   */
  prepare(release: Release, tables?: ReadonlySet<string>): Promise<readonly PreparationCheck[]>
  query(request: QueryRequest): MaybePromise<QueryOutcome>
  mutation(request: MutationRequest): Promise<MutationOutcome>
  /**
   * The outcome of the original for an exact repeat by one of the callers; null for an operation
   * that is not known. Rejects with OPERATION_REUSED where its ID was used for anything else.
   */
  repeated(repeat: Repeat, callers: AsyncIterable<string>): Promise<MutationOutcome | null>
  action(request: QueryRequest): Promise<ActionOutcome>
  /** Whether the first call of the Release would wait for nothing. */
  isWarm(release: Release): boolean
  /** Makes it so. */
  warm(release: Release): Promise<void>
  /**
   * Lets go of what is held for all other Releases that no call is in flight of: runners, what was
   * prepared, and the indexes that none of those left declares; answers how many indexes. No other
   * may be prepared meanwhile. `again` is called when the last call of such a Release has ended.
   */
  keepOnly(live: LiveReleases, again: () => void): Promise<number>
  ready(): boolean
  /** Whether documents can be read just now, within a second. */
  answers(): Promise<boolean>
  /** Resolves once no invocation is in flight. */
  idle(): Promise<void>
  health(): Promise<readonly ComponentHealth[]>
  statistics(): EngineStatistics
  close(): Promise<void>
}

export interface EngineStatistics {
  readonly cache: CacheStatistics
  readonly actions: ActionStatistics
  readonly inFlight: number
  readonly durableSequence: number
}

export function createEngine(options: EngineOptions): Engine {
  const { store, pool, system, log } = options
  const cache = new QueryCache(options)
  const committer = new Committer({
    ...options,
    onCommit: (_, writes) => cache.invalidate(writes),
  })
  const usage = new FunctionUsage(options)
  const inFlight = new ActiveCalls()
  const port = { ...options, cache, committer, usage, inFlight }
  const queries = new Queries(port)
  const mutations = new Mutations(port)
  const requests = new Requests(options.outbound ?? { allowedNetworks: [] }, pool)
  const actions = new Actions({ ...port, queries, mutations, requests })
  const retention = new Retention({ store, committer, system, log })
  const preparations = new Preparations(store, committer)
  const calls = new CallAdmission({ preparations, queries, mutations, actions, inFlight, system })
  const documents = new DocumentsHealth(store)
  retention.start()

  const engine: Engine = {
    describe: (code) => pool.describe(code),
    prepare: async (release, tables) => {
      const checks = await preparations.check(release, tables)
      await pool.warm(release, rolesOf(release))
      return checks
    },
    query: (request) => calls.query(request),
    mutation: (request) => calls.mutation(request),
    repeated: (repeat, callers) => mutations.repeated(repeat, callers),
    action: (request) => calls.action(request),
    isWarm: (release) =>
      preparations.find(release.releaseId) !== null &&
      pool.isWarm(release.releaseId, rolesOf(release)),
    warm: async (release) => {
      await preparations.prepare(release)
      await pool.warm(release, rolesOf(release))
    },
    keepOnly: (live, again) => {
      const kept = inFlight.keepOnly(live, again)
      pool.keepOnly(kept)
      return preparations.keepOnly(kept)
    },
    ready: () => store.status.state === 'open',
    answers: async () => (await documents.ask()) === 'healthy',
    health: () => healthOf(documents, committer, pool.statistics()),
    idle: () => inFlight.idle(),
    statistics: () => ({
      cache: cache.statistics,
      actions: actions.statistics,
      inFlight: inFlight.count,
      durableSequence: committer.durable,
    }),
    close: async () => {
      await retention.stop()
      await pool.close()
      await committer.drain()
      await store.close()
      usage.stop()
    },
  }
  return measuredEngine(engine, options)
}

/** What the runners of a Release have to execute. */
function rolesOf({ functions }: Release): readonly RunnerRole[] {
  const hasActions = [...functions.values()].some(({ kind }) => kind === 'action')
  return hasActions ? ['transactions', 'actions'] : ['transactions']
}
