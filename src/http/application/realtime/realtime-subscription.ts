/** One subscription of a connection: its target, the Query that it watches, its unsent state. */

import { RESULT_BYTES_MAX } from '../../../engine/limits.ts'
import type { Release } from '../../../engine/releases/executable-release.ts'
import {
  type DeliveredState,
  memoryExhausted,
  type SubscriptionObserver,
} from '../../../engine/subscriptions/live-query.ts'
import type { Keeper } from '../../../engine/subscriptions/shared-memory.ts'
import type { Subscription } from '../../../engine/subscriptions/subscriptions.ts'
import { Fault, isFault } from '../../../errors/fault.ts'
import type { MemoryShare, Reservation } from '../../../system/memory/memory-budget.ts'
import { failureEnd } from '../../../telemetry/traces/failures.ts'
import type { Span, SpanEnd } from '../../../telemetry/traces/spans.ts'
import type { Principal } from '../../../value/identities.ts'
import type { ReleaseId } from '../../../value/ids.ts'
import type { FunctionManifest } from '../../../value/manifest.ts'
import type { ValueObject } from '../../../value/values.ts'
import type { RealtimeVersion, ResyncReason } from '../../../wire/realtime.ts'
import { isDevelopmentTarget } from '../development-targets.ts'
import type { Tracked } from './current-sequence.ts'
import type { StateSource } from './outgoing-messages.ts'
import { patchMessage, type StateHead, stateMessages } from './state-messages.ts'

export interface SubscriptionRequest {
  readonly subscriptionId: string
  readonly target: string
  readonly function: string
  readonly arguments: ValueObject
  /** True if the client takes patches in place of whole states. */
  readonly patches: boolean
}

/** A resolved Query that the caller of the subscription may run. */
export interface ResolvedQuery {
  readonly release: Release
  readonly definition: FunctionManifest
  readonly principal: Principal | null
}

/** A Query to watch, with the span that causes its first run. */
export interface WatchedQuery extends ResolvedQuery {
  readonly trace: Span | null
}

/** The connection of a subscription. */
export interface SubscriptionPort {
  readonly version: RealtimeVersion
  /** The memory of its key and its address, which all their connections share. */
  readonly memory: MemoryShare
  /** Resolves the target and checks the policy of the Function. Rejects with a Fault. */
  resolve(request: SubscriptionRequest): Promise<ResolvedQuery>
  watch(
    request: SubscriptionRequest,
    query: WatchedQuery,
    observer: SubscriptionObserver,
  ): Subscription
  /** Returns whether the peer reads more slowly than states are made. */
  isBlocked(): boolean
  /** Reports that `isCurrent` or `currentAt` of the subscription may have changed. */
  progressed(subscription: RealtimeSubscription): void
  /** Reports that the subscription has messages to send. */
  hasMessages(subscription: RealtimeSubscription): void
  /** Reports that the subscription has ended with a failure. */
  failed(subscription: RealtimeSubscription, fault: Fault): void
  /** Reports that a state was prepared for sending, as this patch or, if it is null, whole. */
  onState(patch: string | null): void
  /** Reports that a `resync_required` was prepared for sending. */
  onResync(): void
}

interface Unsent {
  readonly state: DeliveredState
  readonly releaseId: ReleaseId
}

export class RealtimeSubscription implements StateSource, Tracked, Keeper {
  readonly request: SubscriptionRequest
  readonly #port: SubscriptionPort
  /** The span until the first state is sent; null afterwards, and where nothing is traced. */
  #trace: Span | null
  #watched: { readonly query: ResolvedQuery; readonly subscription: Subscription } | null = null
  /** The memory of the subscription and its arguments. */
  readonly #held: Reservation
  #unsent: Unsent | null = null
  #resync: ResyncReason | null = null
  /** The messages of the state that is being sent. */
  #messages: Iterator<string> | null = null
  #revision = 0
  /** The number of the last state of the watched Query that the peer has; null without one. */
  #base: number | null = null
  /** The sequence of the last state that was sent completely; -1 before the first one. */
  #sentAt = -1
  /** The state that is being sent. */
  #sending: DeliveredState | null = null
  #isClosed = false
  #isResolving = false
  #isOutdated = false

  constructor(
    port: SubscriptionPort,
    request: SubscriptionRequest,
    { trace, held }: { readonly trace: Span | null; readonly held: Reservation },
  ) {
    this.#port = port
    this.request = request
    this.#trace = trace
    this.#held = held
  }

  get currentAt(): number {
    return this.#isSent && this.#watched !== null
      ? this.#watched.subscription.currentAt
      : this.#sentAt
  }

  get isCurrent(): boolean {
    return this.#isSent && this.#watched?.subscription.isCurrent === true
  }

  get isCompressible(): boolean {
    return this.#sending?.isCompressible === true
  }

  get #isSent(): boolean {
    return this.#unsent === null && this.#messages === null
  }

  close(): void {
    this.#isClosed = true
    this.#endTrace()
    this.#watched?.subscription.close()
    this.#watched = null
    this.#unsent = null
    this.#messages = null
    this.#sending?.memory.drop(this)
    this.#sending = null
    this.#held.release()
  }

  shares(): Iterable<MemoryShare> {
    return [this.#port.memory]
  }

  evicted(): void {
    this.#fail(memoryExhausted())
  }

  /**
   * Resolves the target, initially and whenever it may name another Release. Watches the Query
   * again if the Release or the identity has changed.
   */
  async resolve(): Promise<void> {
    this.#isOutdated = true
    if (this.#isResolving) return
    this.#isResolving = true
    try {
      while (this.#isOutdated && !this.#isClosed) {
        this.#isOutdated = false
        const resolved = await this.#port.resolve(this.request)
        if (!this.#isClosed) this.#watch(resolved)
      }
    } catch (error) {
      if (this.#watched === null || !isAwaitingValidation(this.request.target, error)) {
        this.#fail(error)
      }
    } finally {
      this.#isResolving = false
    }
  }

  nextMessage(): string | null {
    if (this.#messages === null) {
      if (this.#unsent === null) return null
      if (this.#resync !== null) return this.#nextResync(this.#resync)
      this.#begin(this.#unsent)
    }
    const { value, done } = this.#messages!.next()
    if (done !== true) return value
    this.#messages = null
    this.#sentAt = this.#sending?.snapshotSequence ?? this.#sentAt
    this.#sending?.memory.drop(this)
    this.#sending = null
    this.#progressed()
    return this.nextMessage()
  }

  #nextResync(reason: ResyncReason): string {
    const { subscriptionId } = this.request
    const { version } = this.#port
    this.#resync = null
    this.#base = null
    this.#port.onResync()
    return JSON.stringify({ version, type: 'resync_required', subscriptionId, reason })
  }

  #begin({ state, releaseId }: Unsent): void {
    const { resultText, snapshotSequence, number } = state
    const patch = this.request.patches && this.#base === number - 1 ? state.patch : null
    this.#unsent = null
    this.#revision += 1
    this.#base = number
    this.#sending = state
    const { subscriptionId } = this.request
    const head: StateHead = {
      version: this.#port.version,
      subscriptionId,
      revision: this.#revision,
      snapshotSequence,
      releaseId,
    }
    this.#messages =
      patch === null ? stateMessages(head, resultText) : [patchMessage(head, patch)].values()
    this.#port.onState(patch)
    this.#endTrace({ attributes: { 'svc.snapshot.sequence': snapshotSequence } })
  }

  #watch(resolved: ResolvedQuery): void {
    const before = this.#watched
    const isSameRelease = before?.query.release.releaseId === resolved.release.releaseId
    if (isSameRelease && isSameCaller(before.query.principal, resolved.principal)) return
    if (!this.#keepSending()) return
    before?.subscription.close()
    // Unsent states of the previous Query are dropped: the client gets a new state.
    this.#unsent = null
    this.#base = null
    if (before !== null && !isSameRelease) this.#resync = 'release_changed'
    const { releaseId } = resolved.release
    // The first state may arrive before `watch` returns.
    const watched: { query: ResolvedQuery; subscription: Subscription } = {
      query: resolved,
      subscription: { currentAt: -1, isCurrent: false, close: () => undefined },
    }
    this.#watched = watched
    const trace = this.#trace
    const { name } = resolved.definition
    trace?.set({ 'svc.function.name': name, 'svc.release.id': releaseId })
    const isCurrent = () => this.#watched === watched
    watched.subscription = this.#port.watch(
      this.request,
      { ...resolved, trace },
      {
        takesPatches: this.request.patches,
        state: (state) => {
          if (isCurrent()) this.#receive({ state, releaseId })
        },
        progressed: () => {
          if (isCurrent()) this.#progressed()
        },
        failed: (fault) => {
          if (isCurrent()) this.#fail(fault)
        },
      },
    )
    this.#progressed()
  }

  #receive(unsent: Unsent): void {
    if (unsent.state.resultText.length > RESULT_BYTES_MAX / 3) {
      if (Buffer.byteLength(unsent.state.resultText) > RESULT_BYTES_MAX) {
        this.#fail(new Fault('LIMIT_EXCEEDED', { detail: 'bytes of a state' }))
        return
      }
    }
    if (!this.#keepSending()) return
    if (this.#unsent !== null && this.#port.isBlocked()) this.#resync ??= 'slow_consumer'
    this.#unsent = unsent
    this.#progressed()
    this.#port.hasMessages(this)
  }

  /**
   * Charges the memory of the state that the peer is still reading, although a newer one exists.
   * Returns false if that memory is exhausted, which ends the subscription.
   */
  #keepSending(): boolean {
    if (this.#sending === null || this.#sending.memory.keep(this)) return true
    this.#fail(memoryExhausted())
    return false
  }

  #progressed(): void {
    if (!this.#isClosed) this.#port.progressed(this)
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return
    const fault = error instanceof Fault ? error : new Fault('INTERNAL', { cause: error })
    this.#endTrace(failureEnd(fault))
    this.close()
    this.#port.failed(this, fault)
  }

  #endTrace(end?: SpanEnd): void {
    this.#trace?.end(end)
    this.#trace = null
  }
}

/** Returns whether the HEAD of a Workspace is not validated yet: its predecessor still serves. */
function isAwaitingValidation(target: string, error: unknown): boolean {
  return isDevelopmentTarget(target) && isFault(error, 'TARGET_NOT_FOUND')
}

function isSameCaller(one: Principal | null, other: Principal | null): boolean {
  return one?.identityText === other?.identityText
}
