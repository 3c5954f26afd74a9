/**
 * Sends the messages of one connection as fast as its peer reads. Control messages come first; of
 * each subscription only the newest state waits, so a slow reader holds no backlog.
 */
import type { Socket } from './sockets.ts'

/** Control messages that may wait for a peer that does not read. */
const WAITING_MAX = 1_024

/** A source of state messages. */
export interface StateSource {
  /** Returns the next message; null where nothing is left to send. */
  nextMessage(): string | null
}

export class OutgoingMessages {
  readonly #onOverflow: () => void
  readonly #control: string[] = []
  /** Sources with unsent states, in the order in which they got them. */
  readonly #sources = new Set<StateSource>()
  #socket: Socket | null = null
  #isBlocked = false

  /** Calls `onOverflow` where too many control messages wait. */
  constructor(onOverflow: () => void) {
    this.#onOverflow = onOverflow
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
    this.#sources.clear()
  }

  send(message: object): void {
    if (this.#control.length >= WAITING_MAX) this.#onOverflow()
    this.#control.push(JSON.stringify({ version: 1, ...message }))
    this.#flush()
  }

  /** Sends what the source has, after the sources that wait. */
  enqueue(source: StateSource): void {
    this.#sources.add(source)
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
      const message = this.#control.shift() ?? this.#nextState()
      if (message === null) return
      this.#isBlocked = !this.#socket.send(message)
    }
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
