/**
 * Executes Queries: returns the cached result while its read set is unchanged, otherwise runs the
 * Function once at the newest durable snapshot for all equal calls (single flight).
 */
import type { DocumentStore } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import type { CompressedForms } from '../../system/compression.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import type { ConfigurationSnapshot } from '../calls/function-configuration.ts'
import type { CancellationToken } from '../calls/outcomes.ts'
import type { ReadableCommits } from '../commits/committer.ts'
import type { ReadSet } from '../commits/read-set.ts'
import { CLOCK_CACHE_MILLIS } from '../limits.ts'
import type { CacheKeys, QueryCache } from '../query-cache/query-cache.ts'
import { Transaction } from '../transactions/transaction.ts'
import { type InvocationPort, runAttempt } from './attempt.ts'
import { beginInvocation, type Invocation, LostRunCounter } from './invocation.ts'
import type { CompletedRun } from './run-outcomes.ts'

export interface QueryPort extends InvocationPort {
  readonly store: DocumentStore
  readonly committer: ReadableCommits
  readonly cache: QueryCache
}

export interface QueryOutcome {
  /** Tagged JSON. */
  readonly resultText: string
  /** A sequence at which the result is current; null if nothing was read. */
  readonly snapshotSequence: number | null
  /** True if the run made a download grant, which the result then carries. */
  readonly hasGrant: boolean
  /** Compressed forms of a cached result; null for one that keeps none. */
  readonly compressed: CompressedForms | null
}

/** All that the result of a run depends on beside the call itself. */
export interface QueryDependencies {
  /** The sequence at which the run read. */
  readonly snapshot: number
  readonly readSet: ReadSet
  /** Bytes of the documents that the run read. */
  readonly bytesRead: number
  /** True if the code read the identity of its caller. */
  readonly usedIdentity: boolean
  /** The configuration whose variables it read; null if it read none. */
  readonly configuration: ConfigurationSnapshot | null
  /** Milliseconds for which the result stays current without a change; null for any time. */
  readonly lifetimeMillis: number | null
}

/** The outcome of a run, as opposed to a cached result. */
export interface QueryExecution extends QueryOutcome {
  readonly dependencies: QueryDependencies
}

type QueryCall = Pick<Invocation, 'prepared' | 'definition' | 'argumentsText' | 'principal'>
type QueryInput = QueryCall & Pick<Invocation, 'context' | 'trace' | 'signal' | 'arrivedMillis'>

/** One execution and all its callers. It is cancelled when the last of them has disconnected. */
class SharedExecution implements CancellationToken {
  readonly snapshot: number
  readonly configuration: ConfigurationSnapshot
  readonly callers: (CancellationToken | undefined)[]
  outcome: Promise<QueryExecution> | null = null

  constructor(
    current: Pick<SharedExecution, 'snapshot' | 'configuration'>,
    caller: CancellationToken | undefined,
  ) {
    this.snapshot = current.snapshot
    this.configuration = current.configuration
    this.callers = [caller]
  }

  get aborted(): boolean {
    return this.callers.every((caller) => caller?.aborted === true)
  }
}

export class Queries {
  readonly #port: QueryPort
  /** The executions that equal calls at the same snapshot join, by cache key per caller. */
  readonly #running = new TransientMap<string, SharedExecution>()

  constructor(port: QueryPort) {
    this.#port = port
  }

  /** Returns the cached result at the newest durable sequence; null if there is none. */
  find(keys: CacheKeys): QueryOutcome | null {
    const { cache, committer } = this.#port
    const cached = cache.get(keys)
    if (cached === null) return null
    const snapshotSequence = cached.hasRead ? committer.durable : null
    const { resultText, hasGrant, compressed } = cached
    return { resultText, snapshotSequence, hasGrant, compressed }
  }

  /** Runs the Function, or joins an equal call that runs at the same snapshot. */
  invoke(input: QueryInput, keys: CacheKeys): Promise<QueryExecution> {
    const current = {
      snapshot: this.#port.committer.durable,
      configuration: this.#port.configuration.current,
    }
    // The key per caller, since the run may still read the identity of its caller.
    const running = this.#running.get(keys.perCaller)
    // An execution at an older snapshot or configuration may not show the newest change.
    const isCurrent =
      running?.snapshot === current.snapshot && running.configuration === current.configuration
    if (isCurrent && !running.aborted) {
      running.callers.push(input.signal)
      return running.outcome!
    }
    const execution = new SharedExecution(current, input.signal)
    this.#running.set(keys.perCaller, execution)
    execution.outcome = this.#execute(keys, input, execution)
    return execution.outcome
  }

  async #execute(
    keys: CacheKeys,
    input: QueryInput,
    execution: SharedExecution,
  ): Promise<QueryExecution> {
    const { system } = this.#port
    const invocation = beginInvocation(this.#port, input, execution)
    const lostRuns = new LostRunCounter()
    try {
      while (system.monotonicMillis() < invocation.deadline) {
        const outcome = await this.#attempt(keys, invocation)
        if (outcome !== null) return outcome
        lostRuns.add()
      }
      throw new Fault('DEADLINE_EXCEEDED')
    } finally {
      if (this.#running.get(keys.perCaller) === execution) this.#running.delete(keys.perCaller)
    }
  }

  /** Returns null if the attempt was lost or misspeculated. */
  async #attempt(keys: CacheKeys, invocation: Invocation): Promise<QueryExecution | null> {
    const { store, committer } = this.#port
    const pin = committer.pinSnapshot()
    const transaction = new Transaction({
      store,
      release: invocation.prepared,
      snapshot: committer.durable,
      pending: null,
      nowMicros: invocation.nowMicros,
      seed: invocation.seed,
      writable: false,
    })
    try {
      const run = await runAttempt(this.#port, invocation, transaction)
      if (run === null) return null
      const dependencies: QueryDependencies = {
        snapshot: transaction.snapshot,
        readSet: transaction.readSet,
        bytesRead: transaction.usage.bytesRead.used,
        usedIdentity: run.usedIdentity,
        configuration: run.usedConfiguration ? invocation.configuration : null,
        lifetimeMillis: lifetimeMillis(run),
      }
      this.#cache(keys, run, dependencies)
      return {
        resultText: run.resultText,
        snapshotSequence: transaction.hasRead ? transaction.snapshot : null,
        hasGrant: run.grantSeconds !== null,
        compressed: null,
        dependencies,
      }
    } finally {
      committer.unpinSnapshot(pin)
    }
  }

  /** Caches the result unless it is random or out of date already. */
  #cache(
    keys: CacheKeys,
    { resultText, usedRandom, grantSeconds }: CompletedRun,
    { snapshot, readSet, usedIdentity, configuration, lifetimeMillis }: QueryDependencies,
  ): void {
    const { cache, committer } = this.#port
    if (usedRandom || committer.changedSince(readSet, snapshot)) return
    if (configuration !== null && configuration !== this.#port.configuration.current) return
    const key = usedIdentity ? keys.perCaller : keys.shared
    const hasGrant = grantSeconds !== null
    const result = { resultText, hasRead: readSet.count > 0, hasGrant, configuration }
    cache.put(key, result, readSet, lifetimeMillis)
  }
}

/**
 * Returns how long a result may be cached; null for as long as its read set is unchanged. A grant
 * is cached for half of its life, so that every caller has the other half to use it.
 */
function lifetimeMillis({ usedClock, grantSeconds }: CompletedRun): number | null {
  if (grantSeconds === null) return usedClock ? CLOCK_CACHE_MILLIS : null
  const halfMillis = (grantSeconds * 1000) / 2
  return usedClock ? Math.min(halfMillis, CLOCK_CACHE_MILLIS) : halfMillis
}

/**
 * Returns the cache keys of a call. The key per caller contains the whole identity, since roles may
 * change while the subject stays.
 */
export function cacheKeysOf(
  { definition, principal }: Pick<QueryCall, 'definition' | 'principal'>,
  callKey: string,
): CacheKeys {
  // A Function without an identity has the same result for all callers.
  if (definition.auth === 'none') return { shared: callKey, perCaller: callKey }
  return { shared: callKey, perCaller: `${callKey}\n${principal?.identityText ?? ''}` }
}
