/**
 * Watches Queries: runs each distinct one again after a commit that overlaps its read set, once for
 * all its subscriptions, and delivers the result where its bytes have changed.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { sha256 } from '../../system/digests.ts'
import { textBytes } from '../../system/memory/memory-bytes.ts'
import type { System } from '../../system/system.ts'
import type { Span, Traces } from '../../telemetry/traces/spans.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { encodeStored } from '../../value/stored.ts'
import type { CallAdmission } from '../admission/call-admission.ts'
import type { ConfigurationSource } from '../calls/function-configuration.ts'
import type { ReadableCommits } from '../commits/committer.ts'
import type { CommitWrites } from '../commits/read-set.ts'
import { endWith, startRun } from '../invocations/invocation-spans.ts'
import { cacheKeysOf, type QueryExecution } from '../invocations/queries.ts'
import { REFRESH_BYTES, REFRESHED_BYTES_MAX } from '../limits.ts'
import type { CacheKeys } from '../query-cache/query-cache.ts'
import { ReadSetIndex } from '../query-cache/read-set-index.ts'
import { listPatch } from './list-patches.ts'
import {
  LiveQuery,
  type MakePatch,
  memoryExhausted,
  runBytesOf,
  type SubscriptionObserver,
  type WatchRequest,
} from './live-query.ts'
import { RunPermits } from './run-permits.ts'
import { SharedMemory } from './shared-memory.ts'

/** Pauses before a run that failed for a passing reason is repeated, and for how long it is. */
const RETRY_MILLIS_MIN = 100
const RETRY_MILLIS_MAX = 5_000
const RETRY_FOR_MILLIS = 30_000
/** Milliseconds of failed runs after which the state of a Query counts as old. */
const FAILING_MILLIS = 5_000

export interface SubscriptionsPort {
  readonly committer: Pick<ReadableCommits, 'durable' | 'changedSince'>
  readonly configuration: ConfigurationSource
  readonly system: System
  readonly calls: Pick<CallAdmission, 'execution'>
  /** Null or absent where nothing is traced. */
  readonly traces?: Traces | null | undefined
}

/** A subscription to one Query. */
export interface Subscription {
  /** The newest sequence at which the delivered state is current; -1 before the first state. */
  readonly currentAt: number
  /** True if the delivered state is the result at the newest durable sequence. */
  readonly isCurrent: boolean
  /** Ends it; its observer receives nothing more. A second call does nothing. */
  close(): void
}

export interface SubscriptionStatistics {
  readonly subscriptions: number
  /** Distinct Queries that they watch. */
  readonly queries: number
  /** Those whose runs have failed for 5 s, so that their newest state may be old. */
  readonly failing: number
  /** Runs since the start. */
  readonly refreshes: number
}

/** The memory that the runs of a Function take. */
interface FunctionCost {
  /** Bytes read and returned; new runs count more than those long ago. */
  readonly runBytes: number
  /** Bytes of the newest result. */
  readonly resultBytes: number
}

/** The watched Queries that differ in their callers alone. */
interface CallerGroup {
  readonly queries: Set<LiveQuery>
  /** True if the newest run read the identity of its caller; null before the first one. */
  usesIdentity: boolean | null
  /** The newest run, and the durable sequence at its start; null before it and after a failure. */
  newest: { readonly durable: number; readonly outcome: Promise<QueryExecution> } | null
}

export class Subscriptions {
  readonly #port: SubscriptionsPort
  readonly #queries = new Map<string, LiveQuery>()
  readonly #groups = new Map<string, CallerGroup>()
  readonly #readSets: ReadSetIndex<LiveQuery>
  readonly #permits = new RunPermits(REFRESHED_BYTES_MAX)
  readonly #costs = new WeakMap<FunctionManifest, FunctionCost>()
  /** The memory of results, which the callers of one Query may share. */
  readonly #results = new WeakMap<QueryExecution, SharedMemory>()
  /** The newest patch to each result, which the callers of one Query may share. */
  readonly #patches = new WeakMap<
    SharedMemory,
    { readonly before: WeakRef<SharedMemory>; readonly patch: string | null }
  >()
  /** Queries that read a variable of the configuration in their newest run. */
  readonly #configured = new Set<LiveQuery>()
  #refreshes = 0

  constructor(port: SubscriptionsPort) {
    this.#port = port
    this.#readSets = new ReadSetIndex(Buffer.from(port.system.randomBytes(4)).readInt32BE())
    port.configuration.onChange(() => {
      for (const query of this.#configured) this.#invalidate(query)
    })
  }

  get statistics(): SubscriptionStatistics {
    return {
      subscriptions: sum([...this.#queries.values()].map(({ size }) => size)),
      queries: this.#queries.size,
      failing: [...this.#queries.values()].filter((query) => this.#isFailing(query)).length,
      refreshes: this.#refreshes,
    }
  }

  /**
   * Watches a Query. The observer receives every failure, ARGUMENTS_INVALID among them; a failure
   * with `retryable` only where it lasts for 30 s or prevents the first state.
   */
  watch(request: WatchRequest, observer: SubscriptionObserver): Subscription {
    const query = this.#queryOf(request)
    const { committer } = this.#port
    const close = (): void => {
      query.remove(observer)
      if (query.size === 0) this.#remove(query)
    }
    try {
      query.add(observer, request.memory, committer.durable)
      this.#refresh(query)
    } catch (error) {
      close()
      observer.failed(faultOf(error))
    }
    return {
      get currentAt() {
        return query.currentAt(observer, committer.durable)
      },
      get isCurrent() {
        return query.hasCurrent(observer)
      },
      close,
    }
  }

  /** Called for every durable commit, in sequence order. */
  onCommit(writes: CommitWrites): void {
    for (const query of this.#readSets.matches(writes)) this.#invalidate(query)
  }

  /** Ends all subscriptions with UNAVAILABLE. */
  close(): void {
    for (const query of [...this.#queries.values()]) {
      this.#end(query, new Fault('UNAVAILABLE', { detail: 'the engine is closed' }))
    }
  }

  #queryOf(request: WatchRequest): LiveQuery {
    const keys = digestsOf(request)
    const known = this.#queries.get(keys.perCaller)
    if (known !== undefined) return known
    const expectedBytes = this.#expectedBytes(request)
    const query = new LiveQuery(keys, request, {
      expectedBytes,
      onEvicted: () => this.#end(query, memoryExhausted()),
      makePatch: this.#makePatch,
    })
    this.#queries.set(keys.perCaller, query)
    const group = this.#groups.get(keys.shared)
    if (group !== undefined) group.queries.add(query)
    else {
      this.#groups.set(keys.shared, {
        queries: new Set([query]),
        usesIdentity: null,
        newest: null,
      })
    }
    return query
  }

  #remove(query: LiveQuery): void {
    const { shared, perCaller } = query.keys
    if (this.#queries.get(perCaller) !== query) return
    this.#queries.delete(perCaller)
    this.#readSets.remove(query)
    this.#configured.delete(query)
    this.#permits.cancel(query)
    query.close()
    const group = this.#groups.get(shared)
    group?.queries.delete(query)
    if (group?.queries.size === 0) this.#groups.delete(shared)
  }

  #end(query: LiveQuery, fault: Fault): void {
    this.#remove(query)
    query.fail(fault)
  }

  #invalidate(query: LiveQuery): void {
    const wasCurrent = query.isCurrent
    query.isStale = true
    if (wasCurrent) query.progressed()
    this.#refresh(query)
  }

  /** Runs the Query until its result is current. */
  #refresh(query: LiveQuery): void {
    const isPaused = query.failingSince !== null && query.timer !== null
    if (query.isRunning || !query.isStale || isPaused) return
    query.isRunning = true
    // All commits of one batch come in one iteration of the event loop; one run covers them.
    setImmediate(() => void this.#run(query))
  }

  async #run(query: LiveQuery): Promise<void> {
    query.clearTimer()
    let hasFailed = false
    while (query.isStale && this.#isWatched(query) && !hasFailed) {
      try {
        const cost = { shares: query.shares(), bytes: this.#runBytesOf(query) }
        const outcome = await this.#permits.use(query, cost, () => {
          // If no subscriber has room for such a result, it is not even computed.
          query.expect(this.#expectedBytes(query.request))
          return this.#execute(query)
        })
        if (outcome !== null && this.#isWatched(query)) this.#take(query, outcome)
      } catch (error) {
        hasFailed = true
        if (this.#isWatched(query)) this.#fail(query, error)
      }
    }
    query.isRunning = false
    query.progressed()
  }

  /** Returns the bytes that a run takes, as far as they are known. */
  #runBytesOf({ runBytes, request: { definition } }: LiveQuery): number {
    const known = runBytes ?? this.#costs.get(definition)?.runBytes ?? REFRESH_BYTES.unknown
    return Math.max(known, REFRESH_BYTES.least)
  }

  /** Returns the bytes of the newest result of the Function; 0 where none is known. */
  #expectedBytes({ definition }: Pick<WatchRequest, 'definition'>): number {
    return this.#costs.get(definition)?.resultBytes ?? 0
  }

  #isFailing({ failingSince }: LiveQuery): boolean {
    const now = this.#port.system.monotonicMillis()
    return failingSince !== null && now - failingSince >= FAILING_MILLIS
  }

  #isWatched(query: LiveQuery): boolean {
    return this.#queries.get(query.keys.perCaller) === query
  }

  /**
   * Runs the Query, or takes the outcome of an equal one for another caller at the same snapshot:
   * where that run did not read the identity, no run does at this snapshot.
   */
  async #execute(query: LiveQuery): Promise<QueryExecution> {
    const { committer, calls, system } = this.#port
    const cause = query.takeCause()
    const group = this.#groups.get(query.keys.shared)
    const newest = group?.newest ?? null
    if (group?.usesIdentity !== true && newest?.durable === committer.durable) {
      const outcome = await newest.outcome.catch(() => null)
      if (outcome !== null && this.#isShared(outcome)) return outcome
    }
    this.#refreshes += 1
    const context = { ...query.request.context, invocationId: system.ids.make('ivc') }
    const outcome = this.#traced(query, cause, (trace) =>
      calls.execution({ ...query.request, context, trace }),
    )
    const mine = { durable: committer.durable, outcome }
    if (group === undefined) return mine.outcome
    group.newest = mine
    try {
      const outcome = await mine.outcome
      group.usesIdentity = outcome.dependencies.usedIdentity
      // Without another caller no Query takes it, and it would keep a text that is not shown.
      if (group.queries.size === 1 && group.newest === mine) group.newest = null
      return outcome
    } catch (error) {
      if (group.newest === mine) group.newest = null
      throw error
    }
  }

  /**
   * Runs a Query in the trace of its first subscriber at first, and later in a trace of its own,
   * since it runs for all its subscribers at once.
   */
  #traced<T>(
    { request: { definition, release } }: LiveQuery,
    cause: Span | null,
    run: (trace: Span | null) => Promise<T>,
  ): Promise<T> {
    const attributes = {
      'svc.function.name': definition.name,
      'svc.release.id': release.releaseId,
    }
    const name = `watch ${definition.name}`
    const span = startRun(this.#port.traces, { name, attributes }, cause)
    return span === null ? run(null) : endWith(span, run(span))
  }

  /** Returns whether an outcome is the result for every caller, and does not depend on the time. */
  #isShared({ dependencies }: QueryExecution): boolean {
    const { usedIdentity, lifetimeMillis, configuration } = dependencies
    if (usedIdentity || lifetimeMillis !== null) return false
    return configuration === null || configuration === this.#port.configuration.current
  }

  #take(query: LiveQuery, outcome: QueryExecution): void {
    const { committer, configuration } = this.#port
    const { readSet, snapshot, configuration: read, lifetimeMillis } = outcome.dependencies
    this.#measure(query.request.definition, outcome)
    query.keep(outcome, this.#memoryOf(outcome))
    // From now on commits find this read set; those since the snapshot are in the write log, which
    // also holds pending ones: they are reported once they are durable.
    this.#readSets.add(query, readSet)
    if (read === null) this.#configured.delete(query)
    else this.#configured.add(query)
    query.isStale =
      (committer.durable > snapshot && committer.changedSince(readSet, snapshot)) ||
      (read !== null && read !== configuration.current)
    query.failingSince = null
    if (lifetimeMillis !== null) this.#refreshLater(query, lifetimeMillis)
    query.deliver(outcome, committer.durable)
    // It runs again at once: commits without a pause must not hide how far its subscribers are.
    if (query.isStale) query.progressed()
  }

  #measure(definition: FunctionManifest, outcome: QueryExecution): void {
    const before = this.#costs.get(definition)?.runBytes ?? 0
    const runBytes = Math.max(runBytesOf(outcome), before - before / 16)
    this.#costs.set(definition, { runBytes, resultBytes: textBytes(outcome.resultText) })
  }

  #memoryOf(outcome: QueryExecution): SharedMemory {
    const known = this.#results.get(outcome)
    if (known !== undefined) return known
    const memory = new SharedMemory(textBytes(outcome.resultText))
    this.#results.set(outcome, memory)
    return memory
  }

  /** Results are known by their memory, which the Queries of several callers share. */
  readonly #makePatch: MakePatch = (before, after) => {
    const known = this.#patches.get(after.memory)
    if (known?.before.deref() === before.memory) return known.patch
    const patch = listPatch(before.resultText, after.resultText)
    // A strong reference to the result before would keep all earlier ones.
    this.#patches.set(after.memory, { before: new WeakRef(before.memory), patch })
    return patch
  }

  /** Retries a passing failure of a Query that has a state; ends its subscriptions otherwise. */
  #fail(query: LiveQuery, error: unknown): void {
    const fault = faultOf(error)
    const now = this.#port.system.monotonicMillis()
    query.failingSince ??= now
    const failingFor = now - query.failingSince
    query.isStale = true
    if (query.state !== null && fault.retryable && failingFor < RETRY_FOR_MILLIS) {
      this.#refreshLater(query, Math.min(RETRY_MILLIS_MIN + failingFor, RETRY_MILLIS_MAX))
      return
    }
    this.#end(query, fault)
  }

  #refreshLater(query: LiveQuery, millis: number): void {
    query.clearTimer()
    query.timer = setTimeout(() => {
      query.timer = null
      this.#invalidate(query)
    }, millis)
    query.timer.unref()
  }
}

/** Returns the keys of a Query as digests, since the arguments may be long. */
function digestsOf(request: WatchRequest): CacheKeys {
  const { release, definition } = request
  const call = `${release.releaseId}\n${definition.name}\n${encodeStored(request.arguments)}`
  const shared = encodeBase64Url(sha256(call))
  const { perCaller } = cacheKeysOf(request, shared)
  return { shared, perCaller: perCaller === shared ? shared : encodeBase64Url(sha256(perCaller)) }
}

function faultOf(error: unknown): Fault {
  return isFault(error) ? error : new Fault('INTERNAL', { cause: error })
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
