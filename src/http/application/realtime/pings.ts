/** The pings of one connection. */

import { mayCall } from '../callers.ts'
import type { Gateway } from '../gateway.ts'
import type { ApplicationCaller } from '../incoming.ts'
import { CurrentSequence } from './current-sequence.ts'
import type { OutgoingMessages } from './outgoing-messages.ts'

interface Ping {
  readonly nonce?: string
}

/**
 * Answers pings. As with the pings of a WebSocket (RFC 6455, 5.5.3), only the newest waiting ping
 * gets an answer. A ping waits while its key is over its rate, and its answer waits while the peer
 * does not read.
 */
export class Pings {
  readonly current = new CurrentSequence()
  readonly #gateway: Gateway
  readonly #outgoing: OutgoingMessages
  #waiting: Ping | null = null

  constructor(gateway: Gateway, outgoing: OutgoingMessages) {
    this.#gateway = gateway
    this.#outgoing = outgoing
  }

  received(ping: Ping, caller: ApplicationCaller): void {
    this.#waiting = ping
    this.answer(caller)
  }

  /** Answers the waiting ping, if any. */
  answer(caller: ApplicationCaller): void {
    if (this.#waiting === null || !mayCall(this.#gateway, caller)) return
    const { nonce } = this.#waiting
    this.#waiting = null
    const sequence = this.current.at(this.#gateway.engine.durableSequence())
    this.#outgoing.sendPong({
      type: 'pong',
      ...(nonce !== undefined && { nonce }),
      snapshotSequence: sequence < 0 ? null : String(sequence),
    })
  }
}
