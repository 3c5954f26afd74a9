/**
 * Sends the messages of one connection as fast as its peer reads. Control messages come first; of
 * each subscription only the newest state waits, so a slow reader holds no backlog.
 */

import type { Socket } from '../sockets.ts'
import type { Deliveries, Receiver } from './deliveries.ts'

/** Control messages that may wait for a peer that does not read. */
const WAITING_MAX = 1_024

/** A source of state messages. */
export interface StateSource {
  /** Returns the next message; null where nothing is left to send. */
  nextMessage(): string | null
}

export interface OutgoingEvents {
  /** Too many control messages wait. Called once; later ones are dropped. */
  readonly onOverflow: () => void
  /** A message of this many bytes went to the socket. */
  readonly onSent: (bytes: number) => void
}

export class OutgoingMessages implements Receiver {
  readonly #events: OutgoingEvents
  readonly #deliveries: Deliveries
  readonly #control: string[] = []
  /** The newest answer to a ping, which replaces one that waits. */
  #pong: string | null = null
  /** Sources with unsent states, in the order in which they got them. */
  readonly #sources = new Set<StateSource>()
  #socket: Socket | null = null
  #isBlocked = false
  #hasOverflowed = false

  constructor(events: OutgoingEvents, deliveries: Deliveries) {
    this.#events = events
    this.#deliveries = deliveries
  }

  /** Whether the peer reads more slowly than messages are made. */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  open(socket: Socket): void {
    this.#socket = socket
    this.#flush()
  }

  /** Drops everything that waits. */
  close(): void {
    this.#socket = null
    this.#control.length = 0
    this.#pong = null
    this.#sources.clear()
    this.#deliveries.remove(this)
  }

  send(message: object): void {
    if (this.#hasOverflowed) return
    if (this.#control.length >= WAITING_MAX) {
      // Set first: the report of the failure is a message too.
      this.#hasOverflowed = true
      this.#events.onOverflow()
      return
    }
    this.#control.push(JSON.stringify({ version: 1, ...message }))
    this.#flush()
  }

  /** Sends an answer to a ping, in place of one that waits. */
  sendPong(message: object): void {
    this.#pong = JSON.stringify({ version: 1, ...message })
    this.#flush()
  }

  /** Sends what the source has in a slice of time, after the sources that wait. */
  enqueue(source: StateSource): void {
    this.#sources.add(source)
    this.#deliveries.add(this)
  }

  deliver(): void {
    this.#flush()
  }

  remove(source: StateSource): void {
    this.#sources.delete(source)
  }

  drained(): void {
    this.#isBlocked = false
    this.#flush()
  }

  #flush(): void {
    while (!this.#isBlocked && this.#socket !== null) {
      const message = this.#control.shift() ?? this.#takePong() ?? this.#nextState()
      if (message === null) return
      this.#events.onSent(Buffer.byteLength(message))
      this.#isBlocked = !this.#socket.send(message)
    }
  }

  #takePong(): string | null {
    const pong = this.#pong
    this.#pong = null
    return pong
  }

  /** The parts of one state follow each other, so a source stays first until it has no message. */
  #nextState(): string | null {
    for (const source of this.#sources) {
      const message = source.nextMessage()
      if (message !== null) return message
      this.#sources.delete(source)
    }
    return null
  }
}
