/** The interface of the engine, which executes the Functions of one Environment. */

import type { MaybePromise } from '../system/maybe-promise.ts'
import type { ReleaseId } from '../value/ids.ts'
import type { Json } from '../value/strict-json.ts'
import type { ActionOutcome, ActionStatistics } from './actions/actions.ts'
import type { DocumentAdministration } from './administration/document-administration.ts'
import type { DurableCommits } from './commits/committer.ts'
import type { SystemDocuments } from './files/system-documents.ts'
import type { Inbox } from './inbox/inbox.ts'
import type { MutationOutcome, ReplayRequest } from './invocations/mutations.ts'
import type { QueryOutcome } from './invocations/queries.ts'
import type { MutationRequest, QueryRequest } from './invocations/requests.ts'
import type { MigrationStatistics, Migrations } from './migrations/migrations.ts'
import type { CacheStatistics } from './query-cache/query-cache.ts'
import type { LiveReleases, Release, ReleaseCode } from './releases/executable-release.ts'
import type { Scheduler, SchedulerStatistics } from './scheduling/scheduler.ts'
import type { SubscriptionObserver, WatchRequest } from './subscriptions/live-query.ts'
import type { Subscription, SubscriptionStatistics } from './subscriptions/subscriptions.ts'
import type { StoredTables } from './tables/stored-tables.ts'
import type { ComponentHealth } from './usage/health.ts'

/** The calls of applications, as their origin uses them. */
export interface CallEngine {
  query(request: QueryRequest): MaybePromise<QueryOutcome>
  mutation(request: MutationRequest): Promise<MutationOutcome>
  /**
   * Returns the outcome of the original for an exact repeat by one of the callers; null for an
   * unknown operation ID. Rejects with OPERATION_REUSED where the ID belongs to another request.
   */
  replay(request: ReplayRequest, callers: AsyncIterable<string>): Promise<MutationOutcome | null>
  action(request: QueryRequest): Promise<ActionOutcome>
  /**
   * Watches a Query: the observer receives its state now, and again whenever a commit has changed
   * the bytes of its result. Equal Queries run once for all their subscriptions.
   */
  watch(request: WatchRequest, observer: SubscriptionObserver): Subscription
  ready(): boolean
  /** Resolves within a second with whether documents can be read. */
  canReadDocuments(): Promise<boolean>
  /** The sequence of the newest durable commit. */
  durableSequence(): number
  subscriptionStatistics(): SubscriptionStatistics
}

export interface Engine extends CallEngine {
  /** The tables of stored files, for the rules of files. */
  readonly documents: SystemDocuments

  /** The durable commits, which a backup follows. */
  readonly commits: DurableCommits

  /** Scheduled work, which runs once the scheduler is started. */
  readonly scheduler: Scheduler

  /** Deliveries of other services, which become scheduled work. */
  readonly inbox: Pick<Inbox, 'eventOf' | 'accept' | 'endOf'>

  /** Migrations of stored documents, which run once they are started. */
  readonly migrations: Migrations

  /**
   * Loads the code inside the sandbox and returns its own description, in the form of
   * WorkspaceDescription; nothing in it is trusted. Throws FUNCTION_FAILED, whose violation is what
   * the code threw, LIMIT_EXCEEDED and DEADLINE_EXCEEDED; any other Fault is a failure of the
   * server.
   */
  describe(code: ReleaseCode): Promise<Json>
  /** Documents as operators read and write them. */
  readonly administration: DocumentAdministration
  /**
   * Builds the indexes that the Release declares and returns its tables over the documents that are
   * durable now. Throws LIMIT_EXCEEDED where a stored value is too long for an index.
   */
  prepare(release: Release): Promise<StoredTables>
  /** Returns whether a call would start at once: the Release is prepared and has its runners. */
  isWarm(release: Release): boolean
  /** Prepares the Release and starts its runners. */
  warm(release: Release): Promise<void>
  /** Names the Releases that Channels and policies serve. Idle runners of others end. */
  markServed(releases: ReadonlySet<ReleaseId>): void
  /** Evicts what was prepared for Releases that are not served. A call prepares them again. */
  trim(): void
  /**
   * Stops the runners of all other Releases without calls in flight, evicts what was prepared for
   * them and drops the indexes that no remaining Release declares. Returns the number of dropped
   * indexes. The caller must not prepare a Release outside of `live` meanwhile. Calls `onDrained`
   * whenever the last call of a Release that is not in `live` has ended.
   */
  retainOnly(live: LiveReleases, onDrained: () => void): Promise<number>
  /** Resolves once no invocation is in flight. */
  whenIdle(): Promise<void>
  health(): Promise<readonly ComponentHealth[]>
  /** Takes time in proportion to the number of watched Queries. */
  statistics(): EngineStatistics
  close(): Promise<void>
}

export interface EngineStatistics {
  readonly cache: CacheStatistics
  readonly actions: ActionStatistics
  readonly subscriptions: SubscriptionStatistics
  readonly scheduler: SchedulerStatistics
  readonly migrations: MigrationStatistics
  readonly inFlight: number
  readonly durableSequence: number
}
