/**
 * Clients that add to counters and read them. Each answered value is a lower bound for every read
 * that starts afterwards, on any connection, and for the first state of a new subscription.
 */
import { int64, type Json, object } from '../application.ts'
import { MessageSocket } from '../live-states/message-socket.ts'
import { SeededRandom } from '../serializability/random.ts'
import { acceptedBy, type OwnedConnection } from './processes.ts'

export interface CountersOptions {
  readonly origin: string
  /** The application processes. */
  readonly pids: readonly number[]
  readonly key: string
  readonly seed: number
  readonly connections: readonly OwnedConnection[]
  /** Receives what was missed. */
  readonly findings: string[]
}

const COUNTERS = 6
/** Share of the connections that only write; the others read what was just answered. */
const WRITER_SHARE = 0.25
/** Share of the reads that start at any time, instead of with the answer to a write. */
const FREE_SHARE = 0.2
/** Share of the reads by a Function whose results are not cached. */
const UNCACHED_SHARE = 0.3
const SUBSCRIBERS = 6

/** The newest answered value of a counter, and the process that has answered it. */
interface Answered {
  readonly counter: number
  readonly value: number
  readonly pid: number
}

export class Counters {
  readonly counts = { writes: 0, crossReads: 0, crossStates: 0 }
  readonly #options: CountersOptions
  readonly #answered: Answered[]
  readonly #subscribers: readonly Subscriber[]
  /** Those who wait for the next answer to a write. */
  #waiting: ((answered: Answered) => void)[] = []
  #isRunning = false

  constructor(options: CountersOptions) {
    this.#options = options
    const none = { value: 0, pid: 0 }
    this.#answered = Array.from({ length: COUNTERS }, (_, counter) => ({ counter, ...none }))
    this.#subscribers = Array.from({ length: SUBSCRIBERS }, () => new Subscriber(options))
  }

  /** Runs the clients while `change` runs. */
  async during(change: () => Promise<void>): Promise<void> {
    this.#isRunning = true
    const { connections } = this.#options
    const writers = Math.ceil(connections.length * WRITER_SHARE)
    const running = [
      ...connections.map((each, number) => {
        // Connections to both processes write: they are sorted by no order.
        const writes = number % Math.floor(connections.length / writers) === 0
        return writes ? this.#write(each, number) : this.#read(each, number)
      }),
      ...this.#subscribers.map((each) => this.#watch(each)),
    ]
    await Promise.race([change(), Promise.all(running)])
    this.#isRunning = false
    await Promise.all(running)
  }

  /** Resolves after this number of further answered writes. */
  async untilWritten(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.#nextAnswer()
  }

  close(): void {
    for (const { connection } of this.#options.connections) connection.close()
    for (const subscriber of this.#subscribers) subscriber.close()
  }

  async #write({ connection, pid }: OwnedConnection, number: number): Promise<void> {
    const random = new SeededRandom(this.#options.seed, number)
    while (this.#isRunning) {
      const counter = random.below(COUNTERS)
      const input = { number: int64(counter) }
      const call = { kind: 'mutation', function: 'seen.add', arguments: input } as const
      const { status, body } = await connection.call({ ...call, key: this.#options.key })
      if (status !== 200) throw new Error(`a Mutation failed: ${JSON.stringify(body)}`)
      this.counts.writes += 1
      this.#note({ counter, value: Number(body.result.value), pid })
    }
    // Readers that wait for another answer must end too.
    this.#note(this.#answered[0]!)
  }

  #note(answered: Answered): void {
    const { counter, value } = answered
    if (value > this.#answered[counter]!.value) this.#answered[counter] = answered
    const waiting = this.#waiting
    this.#waiting = []
    // Called in this turn, so that the reads leave at once.
    for (const resume of waiting) resume(this.#answered[counter]!)
  }

  #nextAnswer(): Promise<Answered> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  async #read({ connection, pid }: OwnedConnection, number: number): Promise<void> {
    const random = new SeededRandom(this.#options.seed, number)
    while (this.#isRunning) {
      const isFree = random.chance(FREE_SHARE)
      const next = isFree ? this.#answered[random.below(COUNTERS)]! : await this.#nextAnswer()
      // Others may have been answered since.
      const known = this.#answered[next.counter]!
      const call = {
        kind: 'query',
        function: random.chance(UNCACHED_SHARE) ? 'seen.list' : 'seen.read',
        arguments: { number: int64(known.counter) },
        key: this.#options.key,
      } as const
      const { status, body } = await connection.call(call)
      if (status !== 200) throw new Error(`a Query failed: ${JSON.stringify(body)}`)
      if (known.pid !== pid) this.counts.crossReads += 1
      this.#check(known, Number(body.result.value), `${call.function} of the process ${pid}`)
    }
  }

  async #watch(subscriber: Subscriber): Promise<void> {
    while (this.#isRunning) {
      const known = await this.#nextAnswer()
      const { value, pid } = await subscriber.firstValue(known.counter)
      if (known.pid !== pid) this.counts.crossStates += 1
      this.#check(known, value, `a first state of the process ${pid}`)
    }
  }

  #check({ counter, value, pid }: Answered, seen: number, where: string): void {
    if (seen >= value) return
    const answered = `the process ${pid} had answered ${value}`
    this.#options.findings.push(`${where} showed ${seen} of counter ${counter}: ${answered}`)
  }
}

interface FirstState {
  readonly value: number
  readonly pid: number | null
}

/** One open Realtime connection, with one subscription after the other. */
class Subscriber {
  readonly #options: CountersOptions
  readonly #socket: MessageSocket
  #waiting: PromiseWithResolvers<FirstState> | null = null
  #number = 0

  constructor(options: CountersOptions) {
    this.#options = options
    this.#socket = new MessageSocket(options.origin, {
      onMessage: (text) => this.#take(JSON.parse(text)),
      onClosed: () => this.#waiting?.reject(new Error('a Realtime connection was closed')),
    })
    this.#socket.send({ type: 'authenticate', applicationKey: options.key })
  }

  firstValue(counter: number): Promise<FirstState> {
    this.#waiting = Promise.withResolvers()
    this.#number += 1
    this.#socket.send({
      type: 'subscribe',
      subscriptionId: `s${this.#number}`,
      target: 'channel:production',
      function: 'seen.read',
      arguments: object({ number: int64(counter) }),
    })
    return this.#waiting.promise
  }

  close(): void {
    this.#socket.cut()
  }

  #take({ type, subscriptionId, result, error }: Json): void {
    if (type === 'error') this.#waiting?.reject(new Error(JSON.stringify(error)))
    if (type !== 'state' || subscriptionId !== `s${this.#number}`) return
    const { origin, pids } = this.#options
    const pid = acceptedBy(pids, origin, this.#socket.localPort)
    this.#waiting?.resolve({ value: Number(result.value), pid })
    this.#waiting = null
    this.#socket.send({ type: 'unsubscribe', subscriptionId })
  }
}
