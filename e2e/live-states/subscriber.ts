/**
 * A client that watches random Queries: it subscribes and unsubscribes, follows pages, asks for the
 * current sequence, reads slowly, loses its connection, and connects again. Every second one speaks
 * version 2 of the protocol and takes patches.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { RealtimeVersion } from '../../src/wire/realtime.ts'
import type { Json } from '../application.ts'
import { SeededRandom } from '../serializability/random.ts'
import type { Watch, WatchedQuery } from './history.ts'
import { LiveWatch } from './live-watch.ts'
import { MessageSocket } from './message-socket.ts'
import { type Cursors, queryArguments } from './requests.ts'
import { drawQuery, slowQuery } from './workload.ts'

/** The state that all clients of a run share. */
export interface RunState {
  readonly key: string
  readonly cells: readonly string[]
  readonly failures: string[]
  /** The newest sequence that any client has seen. */
  known: number
  isDone: boolean
  /** The application origin, which changes with a restart. */
  origin(): string
  /** Returns the number of a Release. */
  releaseNumber(releaseId: string): number
}

export interface SubscriberCounts {
  connections: number
  states: number
  parts: number
  patches: number
  slowResyncs: number
}

const SUBSCRIPTIONS_MAX = 3
const STEP_MILLIS = 150
const PAUSE_MILLIS_MAX = 1_500
const NO_CURSORS: Cursors = { cursor: null, until: null }
const FINISH_MILLIS_MAX = 240_000

interface Plan {
  readonly query: WatchedQuery
  readonly cursors: Cursors
}

export class Subscriber {
  readonly watches: Watch[] = []
  readonly counts: SubscriberCounts = {
    connections: 0,
    states: 0,
    parts: 0,
    patches: 0,
    slowResyncs: 0,
  }
  readonly #number: number
  readonly #version: RealtimeVersion
  readonly #isSlow: boolean
  readonly #runState: RunState
  readonly #random: SeededRandom
  /** Queries to watch on each of its connections, by subscription ID. */
  readonly #plans = new Map<string, Plan>()
  readonly #live = new Map<string, LiveWatch>()
  /** Watches that another one with the same ID replaces once its first state arrives. */
  readonly #replaced = new Map<string, LiveWatch>()
  readonly #pings = new Map<string, readonly LiveWatch[]>()
  #socket: MessageSocket | null = null
  #next = 0

  constructor(
    runState: RunState,
    { number, seed, isSlow }: { number: number; seed: number; isSlow: boolean },
  ) {
    this.#runState = runState
    this.#number = number
    this.#version = number % 2 === 0 ? 2 : 1
    this.#isSlow = isSlow
    this.#random = new SeededRandom(seed, -2 - number)
    const count = 1 + this.#random.below(SUBSCRIPTIONS_MAX)
    for (let i = 0; i < count; i++) {
      const query = isSlow && i === 0 ? slowQuery(this.#random) : drawQuery(this.#random)
      this.#plans.set(`s${this.#next++}`, { query, cursors: NO_CURSORS })
    }
  }

  /** Takes random steps until the run is done. */
  async run(): Promise<void> {
    while (!this.#runState.isDone) {
      this.#connect()
      await this.#step()
      await delay(this.#random.below(STEP_MILLIS))
    }
  }

  /** Waits until everything that it watches is current at the last sequence. */
  async finish(last: number, release: number): Promise<void> {
    const until = performance.now() + FINISH_MILLIS_MAX
    const isCurrent = (watch: LiveWatch | undefined) =>
      watch !== undefined && watch.currentAt >= last && watch.newest?.release === release
    const isBehind = () => [...this.#plans.keys()].some((id) => !isCurrent(this.#live.get(id)))
    while (isBehind() && performance.now() < until) {
      this.#connect()
      this.#ping()
      await delay(STEP_MILLIS)
    }
    for (const id of this.#plans.keys()) {
      const watch = this.#live.get(id)
      if (watch === undefined) this.#fail(`${id} is not watched at the end`)
      else watch.isFinal = true
    }
    this.#socket?.cut()
  }

  async #step(): Promise<void> {
    const percentage = this.#random.below(100)
    if (this.#isSlow && percentage < 60) await this.#readNothing()
    else if (percentage < 30) this.#ping()
    else if (percentage < 45) this.#watchAnother()
    else if (percentage < 55) this.#watchNextPage()
    else if (percentage < 60) this.#socket?.cut()
    else if (percentage < 65) await this.#readNothing()
  }

  /** Connects, unless it is connected, and subscribes to everything that it wants to watch. */
  #connect(): void {
    if (this.#socket !== null) return
    const events = {
      onMessage: (text: string) => {
        if (this.#socket === socket) this.#take(JSON.parse(text))
      },
      onClosed: () => {
        if (this.#socket === socket) this.#disconnected()
      },
    }
    const socket = new MessageSocket(this.#runState.origin(), events, this.#version)
    this.#socket = socket
    this.counts.connections += 1
    socket.send({ type: 'authenticate', applicationKey: this.#runState.key })
    for (const [id, plan] of this.#plans) this.#subscribe(id, plan)
  }

  #disconnected(): void {
    this.#socket = null
    this.#live.clear()
    this.#replaced.clear()
    this.#pings.clear()
  }

  #subscribe(id: string, plan: Plan): void {
    this.#plans.set(id, plan)
    if (this.#socket === null) return
    const { cells, known } = this.#runState
    const watch = new LiveWatch({ subscriber: this.#number, knownBefore: known }, plan)
    this.watches.push(watch)
    this.#live.set(id, watch)
    this.#socket.send({
      type: 'subscribe',
      subscriptionId: id,
      target: 'channel:production',
      function: `live.${plan.query.name}`,
      arguments: queryArguments(plan.query, cells, plan.cursors),
      ...(this.#version === 2 && { patches: true }),
    })
  }

  /** Replaces a subscription, by its ID or by an `unsubscribe`. */
  #watchAnother(): void {
    const [first] = this.#plans.keys()
    const id = this.#random.pick([...this.#plans.keys()])
    if (this.#isSlow && id === first) return
    const plan = { query: drawQuery(this.#random), cursors: NO_CURSORS }
    const watch = this.#live.get(id)
    // The states of both have the same ID: those of the new one begin with revision 1.
    if (watch?.newest && !this.#replaced.has(id)) {
      this.#replaced.set(id, watch)
      this.#subscribe(id, plan)
      return
    }
    this.#plans.delete(id)
    this.#live.delete(id)
    this.#replaced.delete(id)
    this.#socket?.send({ type: 'unsubscribe', subscriptionId: id })
    this.#subscribe(`s${this.#next++}`, plan)
  }

  /** Watches a page up to the cursor that it has now, and the page after that. */
  #watchNextPage(): void {
    for (const [id, watch] of this.#live) {
      const end = watch.pageEnd
      if (end === null || watch.query.name !== 'page' || this.#plans.size > SUBSCRIPTIONS_MAX)
        continue
      const { query, cursors } = watch
      this.#plans.delete(id)
      this.#live.delete(id)
      this.#replaced.delete(id)
      this.#socket?.send({ type: 'unsubscribe', subscriptionId: id })
      const whole = { ...query, until: end.rank }
      this.#subscribe(`s${this.#next++}`, {
        query: whole,
        cursors: { ...cursors, until: end.cursor },
      })
      const next = { ...query, after: end.rank }
      this.#subscribe(`s${this.#next++}`, {
        query: next,
        cursors: { cursor: end.cursor, until: null },
      })
      return
    }
  }

  /** Does not read for a while, in which it sends a ping. */
  async #readNothing(): Promise<void> {
    const socket = this.#socket
    socket?.pause()
    await delay(this.#random.below(PAUSE_MILLIS_MAX))
    this.#ping()
    socket?.resume()
  }

  #ping(): void {
    if (this.#socket === null) return
    const nonce = `p${this.#next++}`
    this.#pings.set(nonce, [...this.#live.values()])
    this.#socket.send({ type: 'ping', nonce })
  }

  #take(message: Json): void {
    const { type, subscriptionId: id } = message
    if (type === 'state' || type === 'patch') this.#takeState(message)
    if (type === 'pong') this.#takePong(message)
    if (type === 'resync_required') {
      if (message.reason === 'slow_consumer') this.counts.slowResyncs += 1
      const watch = this.#replaced.get(id) ?? this.#live.get(id)
      watch?.received.push({ type: 'resync', reason: message.reason })
    }
    if (type === 'error') this.#takeError(message)
  }

  #takeState(message: Json): void {
    const { subscriptionId: id } = message
    if (message.revision === '1') this.#replaced.delete(id)
    const watch = this.#replaced.get(id) ?? this.#live.get(id)
    if (message.part !== undefined) this.counts.parts += 1
    if (message.type === 'patch') this.counts.patches += 1
    this.counts.states += 1
    if (watch === undefined) return
    try {
      watch.take(message, this.#runState.releaseNumber(message.releaseId))
    } catch (error) {
      this.#fail(`${JSON.stringify(watch.query)}: ${error}`)
    }
    this.#runState.known = Math.max(this.#runState.known, Number(message.snapshotSequence))
  }

  #takePong({ nonce, snapshotSequence }: Json): void {
    const watches = this.#pings.get(nonce) ?? []
    this.#pings.delete(nonce)
    if (snapshotSequence === null) return
    const sequence = Number(snapshotSequence)
    const live = new Set(this.#live.values())
    for (const watch of watches) {
      if (live.has(watch)) watch.received.push({ type: 'current', sequence })
    }
    this.#runState.known = Math.max(this.#runState.known, sequence)
  }

  #takeError({ subscriptionId: id, error }: Json): void {
    if (!error.retryable) this.#fail(`${id} ended with ${error.code}`)
    const plan = this.#plans.get(id)
    this.#live.delete(id)
    this.#replaced.delete(id)
    if (plan !== undefined) this.#subscribe(id, plan)
  }

  #fail(text: string): void {
    this.#runState.failures.push(`subscriber ${this.#number}: ${text}`)
  }
}
