/** All watched Queries of a client: subscriptions, states, optimistic layers. */
import { backoffMillis, CONNECTION_BACKOFF } from '../backoff.ts'
import { parseSequence, readErrorFields } from '../calls/responses.ts'
import { type CallError, hasCode, responseInvalid } from '../errors.ts'
import { Connection, type ConnectionOptions, type Message } from './connection.ts'
import { applyLayers, isPassed, type Layer } from './layers.ts'
import { type QueryState, WatchedQuery } from './watched-query.ts'

/** Milliseconds for which a Query without listeners stays subscribed. */
const LINGER_MILLIS = 5_000
/** Milliseconds between the first two questions whether a commit has been passed. */
const PASSED_MILLIS = 100

/** A watched Query as an application reads it, fit for React's useSyncExternalStore. */
export interface Observation<Result, Failure = CallError> {
  current(): QueryState<Result, Failure>
  /** Calls the listener after each change. Returns a function that ends that. */
  subscribe(listener: () => void): () => void
}

type Options = Pick<
  ConnectionOptions,
  'platform' | 'url' | 'applicationKey' | 'tokens' | 'onChange'
>

export class LiveQueries {
  readonly connection: Connection
  readonly #options: Options
  readonly #queries = new Map<string, WatchedQuery>()
  readonly #bySubscription = new Map<string, WatchedQuery>()
  #layers: Layer[] = []
  #subscriptions = 0
  #cancelQuestion: (() => void) | null = null
  #questions = 0

  constructor(options: Options) {
    this.#options = options
    this.connection = new Connection({
      ...options,
      onReady: () => this.#subscribeAll(),
      onMessage: (message) => this.#receive(message),
      onFailed: (error) => {
        for (const watched of this.#queries.values()) watched.fail(error)
      },
    })
  }

  /** Watches a Query while it has listeners, and a moment longer. */
  observe(key: string, request: object): Observation<unknown> {
    return {
      current: () => this.#watched(key, request).view,
      subscribe: (listener) => {
        const watched = this.#watched(key, request)
        watched.cancelPlan()
        watched.listeners.add(listener)
        return () => {
          watched.listeners.delete(listener)
          if (watched.listeners.size === 0) this.#linger(watched)
        }
      },
    }
  }

  /** Adds an optimistic layer. Throws what it throws, and is then as before. */
  addLayer(apply: Layer['apply']): Layer {
    const layer: Layer = { apply, sequence: null, touched: new Set() }
    applyLayers([...this.#layers, layer], this.#queries)
    this.#layers.push(layer)
    this.#show()
    return layer
  }

  /** The Mutation has failed or has written nothing. */
  removeLayer(layer: Layer): void {
    this.#layers = this.#layers.filter((each) => each !== layer)
    this.#show()
  }

  /** The Mutation is committed: the layer stays until the states include the commit. */
  commitLayer(layer: Layer, sequence: bigint): void {
    layer.sequence = sequence
    this.#questions = 0
    this.#show()
  }

  /** Another user of the application: nothing of the one before is shown. */
  forgetAll(): void {
    this.#layers = []
    for (const watched of this.#queries.values()) watched.forget()
    if (this.connection.status !== 'idle') this.connection.reconnect()
  }

  close(): void {
    this.#cancelQuestion?.()
    for (const watched of this.#queries.values()) watched.cancelPlan()
    this.#queries.clear()
    this.#bySubscription.clear()
    this.connection.close()
  }

  #watched(key: string, request: object): WatchedQuery {
    const known = this.#queries.get(key)
    if (known !== undefined) {
      // A failed Query that is asked for again is tried again.
      if (known.view.status === 'failed' && known.listeners.size === 0) this.#subscribe(known)
      return known
    }
    const watched = new WatchedQuery(key, request)
    this.#queries.set(key, watched)
    this.#linger(watched)
    this.connection.open()
    this.#subscribe(watched)
    return watched
  }

  #linger(watched: WatchedQuery): void {
    watched.cancelPlan()
    watched.cancelPlan = this.#options.platform.after(LINGER_MILLIS, () => {
      this.#queries.delete(watched.key)
      this.#endSubscription(watched, true)
      if (this.#queries.size === 0) this.connection.close()
    })
  }

  #subscribeAll(): void {
    this.#bySubscription.clear()
    for (const watched of this.#queries.values()) this.#subscribe(watched)
  }

  /** Every subscription has an ID of its own, so that late messages of another are recognized. */
  #subscribe(watched: WatchedQuery): void {
    if (!this.connection.isReady) return
    this.#endSubscription(watched, true)
    const subscriptionId = `s${++this.#subscriptions}`
    watched.begin(subscriptionId)
    this.#bySubscription.set(subscriptionId, watched)
    this.connection.send({ type: 'subscribe', subscriptionId, ...watched.request })
  }

  #endSubscription(watched: WatchedQuery, isToBeTold: boolean): void {
    const { subscriptionId } = watched
    watched.end()
    if (subscriptionId === null || !this.#bySubscription.delete(subscriptionId)) return
    if (isToBeTold && this.connection.isReady) {
      this.connection.send({ type: 'unsubscribe', subscriptionId })
    }
  }

  #receive(message: Message): void {
    const watched = this.#bySubscription.get(String(message.subscriptionId))
    switch (message.type) {
      case 'state':
        if (watched?.receive(message)) this.#show(watched)
        return
      case 'error':
        if (watched !== undefined) this.#ended(watched, message.error)
        return
      case 'pong':
        this.#passed(parseSequence(message.snapshotSequence))
        return
      // A fresh state follows by itself, with the next revision.
      case 'resync_required':
      case 'unsubscribed':
        return
      default:
        throw responseInvalid('a message of an unknown type')
    }
  }

  #ended(watched: WatchedQuery, fields: unknown): void {
    const error = readErrorFields(fields, null)
    if (error === null) throw responseInvalid('an unknown error')
    const { platform, tokens } = this.#options
    this.#endSubscription(watched, false)
    watched.failures += 1
    // The authorization has just expired: its renewal subscribes again.
    if (hasCode(error, 'FUNCTIONAL_TOKEN_INVALID') && tokens.canRefresh) return
    if (!error.retryable) {
      watched.fail(error)
      return
    }
    const millis = backoffMillis(CONNECTION_BACKOFF, watched.failures, platform)
    platform.after(millis, () => {
      const isWanted = this.#queries.get(watched.key) === watched
      if (isWanted && watched.subscriptionId === null) this.#subscribe(watched)
    })
  }

  /** Shows the newest values, of one Query or wherever a layer changes one. */
  #show(changed?: WatchedQuery): void {
    const isWaiting = (layer: Layer) => {
      return ![...layer.touched].every((key) => isPassed(layer, this.#queries.get(key)))
    }
    let replaced = new Map<string, unknown>()
    if (this.#layers.length > 0) {
      replaced = this.#apply()
      this.#layers = this.#layers.filter((each) => each.sequence === null || isWaiting(each))
    }
    const shown = changed === undefined || replaced.size > 0 ? this.#queries.values() : [changed]
    for (const watched of [...shown]) {
      if (watched.base === null || (watched.view.status === 'failed' && watched !== changed)) {
        continue
      }
      const { key, base } = watched
      watched.showValue(replaced.has(key) ? replaced.get(key) : base.value)
    }
    this.#askWhetherPassed()
  }

  /** Applies the layers. One that throws on a new state is dropped, with those after it. */
  #apply(): Map<string, unknown> {
    for (let count = this.#layers.length; ; count--) {
      try {
        const replaced = applyLayers(this.#layers.slice(0, count), this.#queries)
        this.#layers.length = count
        return replaced
      } catch {
        // Without the last one.
      }
    }
  }

  /** A commit without visible effect makes no state: the answer to a ping says that it passed. */
  #askWhetherPassed(): void {
    const isWaiting = this.#layers.some(({ sequence }) => sequence !== null)
    if (!isWaiting || this.#cancelQuestion !== null) return
    const millis = PASSED_MILLIS * 2 ** Math.min(this.#questions++, 6)
    this.#cancelQuestion = this.#options.platform.after(millis, () => {
      this.#cancelQuestion = null
      if (this.connection.isReady) this.connection.send({ type: 'ping' })
      this.#askWhetherPassed()
    })
  }

  #passed(sequence: bigint | null): void {
    if (sequence === null) return
    const isOver = (layer: Layer) => layer.sequence !== null && layer.sequence <= sequence
    if (!this.#layers.some(isOver)) return
    this.#layers = this.#layers.filter((layer) => !isOver(layer))
    this.#show()
  }
}
