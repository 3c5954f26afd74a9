/** One watched Query: its newest state, and the subscriptions that receive it. */
import { Fault } from '../../errors/fault.ts'
import type { MemoryShare } from '../../system/memory/memory-budget.ts'
import { textBytes } from '../../system/memory/memory-bytes.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { flatText } from '../../value/memory/flat-text.ts'
import type { QueryExecution } from '../invocations/queries.ts'
import type { QueryRequest } from '../invocations/requests.ts'
import { READ_SET_ENTRY_BYTES, SUBSCRIPTION_MEMORY, WATCHED_QUERY_BYTES } from '../limits.ts'
import type { CacheKeys } from '../query-cache/query-cache.ts'
import { type Keeper, SharedMemory } from './shared-memory.ts'

/** A state of a Query: its whole result at one snapshot. */
export interface QueryState {
  /** Tagged JSON. */
  readonly resultText: string
  /** The sequence at which it was read; null if nothing was read. */
  readonly snapshotSequence: number | null
  /** True if the text may be compressed: it has no grant, and its Function permits it. */
  readonly isCompressible: boolean
  /** The memory of the text. An observer that needs it after a newer state has to keep it. */
  readonly memory: SharedMemory
  /** The number of the state among those of its Query, which grows by one. */
  readonly number: number
}

/** A state as a subscription receives it. */
export interface DeliveredState extends QueryState {
  /** The patch that makes it of the state with the number before; null if there is none. */
  readonly patch: string | null
}

/** Returns the patch between two results; null if there is none. */
export type MakePatch = (before: QueryState, after: QueryState) => string | null

/** Receives the states of one subscription, in commit order. Must not throw. */
export interface SubscriptionObserver {
  /** True if it can use patches. They are made only for such an observer. */
  readonly takesPatches?: boolean
  /** Called with the first state, and whenever the bytes of the result have changed. */
  state(state: DeliveredState): void
  /**
   * Called when `isCurrent` or `currentAt` of the subscription may have changed without a state,
   * and in any other way than by the durable sequence.
   */
  progressed?(): void
  /** Called once, after which nothing follows. */
  failed(fault: Fault): void
}

/**
 * A request to watch a Query. It ends by `close`, so it has no cancellation token. Its span causes
 * the first run alone.
 */
export interface WatchRequest extends Omit<QueryRequest, 'signal'> {
  /** The subscriber, who pays for the memory of the Query unless another one does. */
  readonly memory: MemoryShare
}

interface Member {
  readonly share: MemoryShare
  /** The state that it received last; null before the first one. */
  received: QueryState | null
  /** The durable sequence when it subscribed: no state that it receives is older. */
  readonly since: number
}

export interface LiveQueryOptions {
  /** Bytes of the newest result of its Function; 0 where none is known. */
  readonly expectedBytes: number
  /** Called once no subscriber has room for its memory. */
  readonly onEvicted: (query: LiveQuery) => void
  readonly makePatch: MakePatch
}

export class LiveQuery implements Keeper {
  readonly keys: CacheKeys
  readonly request: Omit<WatchRequest, 'trace' | 'memory'>
  readonly #members = new Map<SubscriptionObserver, Member>()
  readonly #onEvicted: LiveQueryOptions['onEvicted']
  readonly #makePatch: MakePatch
  /** Number of subscriptions that take patches. */
  #patchTakers = 0
  /** The patch that makes the state of the one before it; null if there is none. */
  #patch: string | null = null
  /** The newest state; null before the first run. */
  state: QueryState | null = null
  /** The snapshot of the newest run; -1 before it. */
  snapshot = -1
  /** Bytes that the newest run read and returned; null before it. */
  runBytes: number | null = null
  /** True if the result may have changed since the snapshot of the newest run. */
  isStale = true
  isRunning = false
  /** Runs the Query again when its result expires, or after a failed run. */
  timer: ReturnType<typeof setTimeout> | null = null
  /** Monotonic milliseconds of the first failure since the last success; null without one. */
  failingSince: number | null = null
  /** The span that causes the next run; null for a run that follows from a commit or the time. */
  #cause: Span | null
  /** The memory of all but the result, and before the first one what it will probably take. */
  #overhead: SharedMemory
  /** The bytes of the first state as they are charged before it is known. */
  #expectedBytes: number

  constructor(
    keys: CacheKeys,
    { trace = null, memory: _, ...request }: WatchRequest,
    { expectedBytes, onEvicted, makePatch }: LiveQueryOptions,
  ) {
    this.keys = keys
    this.request = request
    this.#cause = trace
    this.#onEvicted = onEvicted
    this.#makePatch = makePatch
    this.#expectedBytes = expectedBytes
    this.#overhead = new SharedMemory(WATCHED_QUERY_BYTES + expectedBytes)
  }

  takeCause(): Span | null {
    const cause = this.#cause
    this.#cause = null
    return cause
  }

  /** Number of subscriptions. */
  get size(): number {
    return this.#members.size
  }

  /** Returns whether the state is the result at the newest durable sequence. */
  get isCurrent(): boolean {
    return this.state !== null && !this.isStale && !this.isRunning
  }

  *shares(): Iterable<MemoryShare> {
    for (const { share } of this.#members.values()) yield share
  }

  evicted(): void {
    this.#onEvicted(this)
  }

  /**
   * Adds a subscription, which receives a current state at once; `durable` is its sequence. Throws
   * LIMIT_EXCEEDED if no subscriber has room for the memory of the Query.
   */
  add(observer: SubscriptionObserver, share: MemoryShare, durable: number): void {
    const received = this.isCurrent ? this.state : null
    this.#members.set(observer, { share, received, since: durable })
    if (observer.takesPatches === true) this.#patchTakers += 1
    if (this.#members.size === 1) requireMemory(this.#overhead.keep(this))
    if (received === null) return
    const { snapshotSequence } = received
    const sequence = snapshotSequence === null ? null : durable
    observer.state({ ...received, patch: null, snapshotSequence: sequence })
  }

  /** The newest sequence at which the state that the observer has is current; -1 without one. */
  currentAt(observer: SubscriptionObserver, durable: number): number {
    if ((this.#members.get(observer)?.received ?? null) === null) return -1
    return this.isCurrent ? durable : this.snapshot
  }

  /** Returns whether the observer has the state at the newest durable sequence. */
  hasCurrent(observer: SubscriptionObserver): boolean {
    return this.isCurrent && this.#members.get(observer)?.received === this.state
  }

  /** Notifies every subscription that it is current, or no longer is. */
  progressed(): void {
    for (const observer of this.#members.keys()) observer.progressed?.()
  }

  /** Removes a subscription. Its share of the memory passes to another one. */
  remove(observer: SubscriptionObserver): void {
    const member = this.#members.get(observer)
    if (!this.#members.delete(observer)) return
    if (observer.takesPatches === true) this.#patchTakers -= 1
    if (this.#members.size === 0) return
    this.#overhead.left(this, member!.share)
    this.state?.memory.left(this, member!.share)
  }

  /**
   * Charges what the first state will probably take, where more is known of its Function than when
   * it was subscribed to. Throws LIMIT_EXCEEDED if no subscriber has room for it.
   */
  expect(resultBytes: number): void {
    if (this.state !== null || resultBytes <= this.#expectedBytes) return
    this.#expectedBytes = resultBytes
    requireMemory(this.#chargeOverhead(WATCHED_QUERY_BYTES + resultBytes))
  }

  #chargeOverhead(bytes: number): boolean {
    this.#overhead.drop(this)
    this.#overhead = new SharedMemory(bytes)
    return this.#overhead.keep(this)
  }

  /**
   * Takes the outcome of a run. `memory` is that of its text, which other Queries may share. Throws
   * LIMIT_EXCEEDED if no subscriber has room for it.
   */
  keep(outcome: QueryExecution, memory: SharedMemory): void {
    const { readSet, snapshot } = outcome.dependencies
    this.snapshot = snapshot
    this.runBytes = runBytesOf(outcome)
    const { resultText, snapshotSequence, hasGrant } = outcome
    const before = this.state
    // Equal bytes keep the object, by which members know whether they have the state.
    const isSame = before?.resultText === resultText
    const state: QueryState = {
      resultText: flatText(resultText),
      snapshotSequence,
      isCompressible: !hasGrant && this.request.definition.compress !== false,
      memory,
      number: (before?.number ?? 0) + 1,
    }
    if (!isSame) {
      const canPatch = before !== null && this.#patchTakers > 0
      this.#patch = canPatch ? this.#makePatch(before, state) : null
    }
    this.#chargeRun(readSet.bytes + readSet.count * READ_SET_ENTRY_BYTES)
    if (isSame) return
    before?.memory.drop(this)
    this.state = state
    requireMemory(memory.keep(this))
  }

  /** Charges a run with its patch, or without one if no subscriber has room for that. */
  #chargeRun(readBytes: number): void {
    const bytes = WATCHED_QUERY_BYTES + readBytes
    if (this.#patch !== null && this.#chargeOverhead(bytes + textBytes(this.#patch))) return
    this.#patch = null
    requireMemory(this.#chargeOverhead(bytes))
  }

  /**
   * Delivers the outcome of a run, which was kept, to every subscription that has another state.
   * One that came after the snapshot of the run waits for the next run where the result may have
   * changed since; otherwise the result holds at `durable` as well.
   */
  deliver({ snapshotSequence }: QueryExecution, durable: number): void {
    const state = this.state!
    for (const [observer, member] of this.#members) {
      if (member.received === state) continue
      const isOlder = snapshotSequence !== null && snapshotSequence < member.since
      if (isOlder && this.isStale) continue
      member.received = state
      const sequence = isOlder ? durable : snapshotSequence
      observer.state({ ...state, patch: this.#patch, snapshotSequence: sequence })
    }
  }

  /** Frees its memory. It must not be used afterwards. */
  close(): void {
    this.clearTimer()
    this.#overhead.drop(this)
    this.state?.memory.drop(this)
  }

  /** Ends every subscription. */
  fail(fault: Fault): void {
    const observers = [...this.#members.keys()]
    this.#members.clear()
    for (const observer of observers) observer.failed(fault)
  }

  clearTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }
}

/** Returns the bytes that a run read and returned. */
export function runBytesOf({ resultText, dependencies }: QueryExecution): number {
  return dependencies.bytesRead + resultText.length
}

function requireMemory(isKept: boolean): void {
  if (!isKept) throw memoryExhausted()
}

export function memoryExhausted(): Fault {
  return new Fault('LIMIT_EXCEEDED', { detail: SUBSCRIPTION_MEMORY })
}
