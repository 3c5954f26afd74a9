/** One watched Query: its newest state, and the subscriptions that receive it. */
import type { Fault } from '../../errors/fault.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { flatText } from '../../value/memory/flat-text.ts'
import type { QueryExecution } from '../invocations/queries.ts'
import type { QueryRequest } from '../invocations/requests.ts'
import type { CacheKeys } from '../query-cache/query-cache.ts'

/** A state of a Query: its whole result at one snapshot. */
export interface QueryState {
  /** Tagged JSON. */
  readonly resultText: string
  /** The sequence at which it was read; null where nothing was read. */
  readonly snapshotSequence: number | null
}

/** Receives the states of one subscription, in commit order. Must not throw. */
export interface SubscriptionObserver {
  /** Called with the first state, and whenever the bytes of the result have changed. */
  state(state: QueryState): void
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
export type WatchRequest = Omit<QueryRequest, 'signal'>

interface Member {
  /** The state that it received last; null before the first one. */
  received: QueryState | null
  /** The durable sequence when it subscribed: no state that it receives is older. */
  readonly since: number
}

export class LiveQuery {
  readonly keys: CacheKeys
  readonly request: Omit<WatchRequest, 'trace'>
  readonly #members = new Map<SubscriptionObserver, Member>()
  /** The newest state; null before the first run. */
  state: QueryState | null = null
  /** The snapshot of the newest run; -1 before it. */
  snapshot = -1
  /** Whether the result may have changed since the snapshot of the newest run. */
  isStale = true
  isRunning = false
  /** Runs the Query again when its result expires, or after a failed run. */
  timer: ReturnType<typeof setTimeout> | null = null
  /** Monotonic milliseconds of the first failure since the last success; null without one. */
  failingSince: number | null = null
  /** The span that causes the next run; null for a run that follows from a commit or the time. */
  #cause: Span | null

  constructor(keys: CacheKeys, { trace = null, ...request }: WatchRequest) {
    this.keys = keys
    this.request = request
    this.#cause = trace
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

  /** Whether the state is the result at the newest durable sequence. */
  get isCurrent(): boolean {
    return this.state !== null && !this.isStale && !this.isRunning
  }

  /** Adds a subscription, which receives a current state at once; `durable` is its sequence. */
  add(observer: SubscriptionObserver, durable: number): void {
    this.#members.set(observer, { received: this.isCurrent ? this.state : null, since: durable })
    if (!this.isCurrent) return
    const { resultText, snapshotSequence } = this.state!
    observer.state({ resultText, snapshotSequence: snapshotSequence === null ? null : durable })
  }

  /** The newest sequence at which the state that the observer has is current; -1 without one. */
  currentAt(observer: SubscriptionObserver, durable: number): number {
    if ((this.#members.get(observer)?.received ?? null) === null) return -1
    return this.isCurrent ? durable : this.snapshot
  }

  /** Whether the observer has the state at the newest durable sequence. */
  hasCurrent(observer: SubscriptionObserver): boolean {
    return this.isCurrent && this.#members.get(observer)?.received === this.state
  }

  /** Tells every subscription that it is current, or is not any more. */
  progressed(): void {
    for (const observer of this.#members.keys()) observer.progressed?.()
  }

  remove(observer: SubscriptionObserver): void {
    this.#members.delete(observer)
  }

  /**
   * Takes the outcome of a run and delivers it to every subscription that has another state. One
   * that came after the snapshot of the run waits for the next run where the result may have
   * changed since; otherwise the result holds at `durable` as well.
   */
  update({ resultText, snapshotSequence, dependencies }: QueryExecution, durable: number): void {
    this.snapshot = dependencies.snapshot
    // Equal bytes keep the object, by which members know whether they have the state.
    if (this.state?.resultText !== resultText) {
      this.state = { resultText: flatText(resultText), snapshotSequence }
    }
    for (const [observer, member] of this.#members) {
      if (member.received === this.state) continue
      const isOlder = snapshotSequence !== null && snapshotSequence < member.since
      if (isOlder && this.isStale) continue
      member.received = this.state
      const sequence = isOlder ? durable : snapshotSequence
      observer.state({ resultText: this.state.resultText, snapshotSequence: sequence })
    }
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
