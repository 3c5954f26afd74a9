/** The watched Queries of a client: subscriptions, states and optimistic layers. */
import { backoffMillis, CONNECTION_BACKOFF } from '../backoff.ts'
import { parseSequence, readErrorFields } from '../calls/responses.ts'
import { type CallError, hasCode, responseInvalid } from '../errors.ts'
import { Connection, type ConnectionOptions, type Message } from './connection.ts'
import { applyLayers, isPassed, type Layer } from './layers.ts'
import { type QueryState, WatchedQuery } from './watched-query.ts'

/** Milliseconds for which a Query without listeners stays subscribed. */
const LINGER_MILLIS = 5_000
/** Milliseconds between the first two pings for a commit that no state shows. */
const PASSED_MILLIS = 100

/** A watched Query for the application, in the form of React's useSyncExternalStore. */
export interface Observation<Result, Failure = CallError> {
  current(): QueryState<Result, Failure>
  /** Calls the listener after each change. Returns a function that removes the listener. */
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
  #cancelPing: (() => void) | null = null
  #pingCount = 0

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

  /** Returns a Query, which stays subscribed while it has listeners and shortly after. */
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

  /** Adds an optimistic layer. Throws what the layer throws, and then does not add it. */
  addLayer(apply: Layer['apply']): Layer {
    const layer: Layer = { apply, sequence: null, touched: new Set() }
    applyLayers([...this.#layers, layer], this.#queries)
    this.#layers.push(layer)
    this.#show()
    return layer
  }

  /** Removes the layer of a Mutation that failed or wrote nothing. */
  removeLayer(layer: Layer): void {
    this.#layers = this.#layers.filter((each) => each !== layer)
    this.#show()
  }

  /** Keeps the layer of a committed Mutation until the states include the commit. */
  commitLayer(layer: Layer, sequence: bigint): void {
    layer.sequence = sequence
    this.#pingCount = 0
    this.#show()
  }

  /** Clears all states when the user changes, so that no state of the previous user is shown. */
  forgetAll(): void {
    this.#layers = []
    for (const watched of this.#queries.values()) watched.forget()
    if (this.connection.status !== 'idle') this.connection.reconnect()
  }

  close(): void {
    this.#cancelPing?.()
    for (const watched of this.#queries.values()) watched.cancelPlan()
    this.#queries.clear()
    this.#bySubscription.clear()
    this.connection.close()
  }

  #watched(key: string, request: object): WatchedQuery {
    const known = this.#queries.get(key)
    if (known !== undefined) {
      // A failed Query with a new listener is subscribed again.
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

  /** Subscribes with a new ID, so that late messages of an earlier subscription are ignored. */
  #subscribe(watched: WatchedQuery): void {
    if (!this.connection.isReady) return
    this.#endSubscription(watched, true)
    const subscriptionId = `s${++this.#subscriptions}`
    watched.begin(subscriptionId)
    this.#bySubscription.set(subscriptionId, watched)
    const patches = this.connection.hasPatches && watched.takesPatches && { patches: true }
    this.connection.send({ type: 'subscribe', subscriptionId, ...watched.request, ...patches })
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
      case 'patch':
        if (watched === undefined) return
        if (watched.receivePatch(message)) this.#show(watched)
        // The value stays until the whole state arrives.
        else this.#subscribe(watched)
        return
      case 'error':
        if (watched !== undefined) this.#ended(watched, message.error)
        return
      case 'pong':
        this.#passed(parseSequence(message.snapshotSequence))
        return
      // The server sends a fresh state with the next revision.
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
    // The authorization has just expired; its renewal subscribes again.
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

  /** Publishes the newest values of one Query and of all that layers change. */
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
    this.#pingUntilPassed()
  }

  /** Applies the layers. Drops one that throws on a new state, with all later ones. */
  #apply(): Map<string, unknown> {
    for (let count = this.#layers.length; ; count--) {
      try {
        const replaced = applyLayers(this.#layers.slice(0, count), this.#queries)
        this.#layers.length = count
        return replaced
      } catch {
        // Tries again without the last layer.
      }
    }
  }

  /** Sends pings, whose pongs confirm commits that change no watched Query and make no state. */
  #pingUntilPassed(): void {
    const isWaiting = this.#layers.some(({ sequence }) => sequence !== null)
    if (!isWaiting || this.#cancelPing !== null) return
    const millis = PASSED_MILLIS * 2 ** Math.min(this.#pingCount++, 6)
    this.#cancelPing = this.#options.platform.after(millis, () => {
      this.#cancelPing = null
      if (this.connection.isReady) this.connection.send({ type: 'ping' })
      this.#pingUntilPassed()
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
