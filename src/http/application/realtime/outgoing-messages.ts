/**
 * Sends the messages of one connection as fast as its peer reads. Control messages come first; of
 * each subscription only the newest state waits, so a slow reader holds no backlog.
 */

import { COMPRESSED_BYTES_MIN } from '../../../system/compression.ts'
import type { RealtimeVersion } from '../../../wire/realtime.ts'
import type { Socket } from '../sockets.ts'
import type { CompressionTime } from './compression-time.ts'
import type { Deliveries, Receiver } from './delivery-slices.ts'

/** Bound on the control messages that wait for a peer that does not read. */
const WAITING_MAX = 1_024

/** A source of state messages. */
export interface StateSource {
  /** Returns the next message; null if none is left to send. */
  nextMessage(): string | null
  /** True if the message that `nextMessage` has returned last may be compressed. */
  readonly isCompressible: boolean
}

export interface OutgoingEvents {
  /** Reports that too many control messages wait. Called once; later messages are dropped. */
  readonly onOverflow: () => void
  /** Reports that a message of this many bytes was passed to the socket. */
  readonly onSent: (bytes: number) => void
}

/** Parts that all connections share. */
export interface OutgoingParts {
  readonly deliveries: Deliveries
  readonly compression: CompressionTime
}

export class OutgoingMessages implements Receiver {
  readonly #version: RealtimeVersion
  readonly #events: OutgoingEvents
  readonly #deliveries: Deliveries
  readonly #compression: CompressionTime
  readonly #control: string[] = []
  /** The newest answer to a ping, which replaces one that waits. */
  #pong: string | null = null
  /** Sources with unsent states, in the order in which they got them. */
  readonly #sources = new Set<StateSource>()
  #socket: Socket | null = null
  #isBlocked = false
  #hasOverflowed = false

  constructor(
    version: RealtimeVersion,
    events: OutgoingEvents,
    { deliveries, compression }: OutgoingParts,
  ) {
    this.#version = version
    this.#events = events
    this.#deliveries = deliveries
    this.#compression = compression
  }

  /** Returns whether messages wait because the peer reads more slowly than they are made. */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  open(socket: Socket): void {
    this.#socket = socket
    this.#flush()
  }

  /** Drops all waiting messages. */
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
      // The flag is set first, since the report of the failure is a message too.
      this.#hasOverflowed = true
      this.#events.onOverflow()
      return
    }
    this.#control.push(this.#textOf(message))
    this.#flush()
  }

  /** Sends an answer to a ping. It replaces a waiting one. */
  sendPong(message: object): void {
    this.#pong = this.#textOf(message)
    this.#flush()
  }

  /** Sends the messages of the source in a time slice, after the sources that already wait. */
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

  #textOf(message: object): string {
    return JSON.stringify({ version: this.#version, ...message })
  }

  #flush(): void {
    while (!this.#isBlocked && this.#socket !== null) {
      const message = this.#control.shift() ?? this.#takePong()
      if (message !== null) this.#send(this.#socket, message, false)
      else if (!this.#sendState(this.#socket)) return
    }
  }

  #send(socket: Socket, message: string, isCompressible: boolean): void {
    const bytes = Buffer.byteLength(message)
    this.#events.onSent(bytes)
    const isCompressed =
      isCompressible && bytes >= COMPRESSED_BYTES_MIN && this.#compression.isLeft()
    this.#isBlocked = isCompressed
      ? !this.#compression.measure(() => socket.send(message, true))
      : !socket.send(message, false)
  }

  #takePong(): string | null {
    const pong = this.#pong
    this.#pong = null
    return pong
  }

  /**
   * Sends the next state; returns false without one. A source stays first until it is empty: its
   * parts are contiguous.
   */
  #sendState(socket: Socket): boolean {
    for (const source of this.#sources) {
      const message = source.nextMessage()
      if (message !== null) {
        this.#send(socket, message, source.isCompressible)
        return true
      }
      this.#sources.delete(source)
    }
    return false
  }
}
