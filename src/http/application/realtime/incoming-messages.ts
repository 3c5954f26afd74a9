/**
 * The received messages of one connection, which are processed one after the other. Waiting
 * messages are charged to the budget for unparsed request bodies: any peer can send more while a
 * token is verified or a target is looked up.
 */
import type { MemoryShare, Reservation } from '../../../system/memory/memory-budget.ts'
import { textBytes } from '../../../system/memory/memory-bytes.ts'
import { REALTIME_SUBSCRIPTIONS_MAX } from '../../../wire/realtime.ts'

/**
 * Bounds on the messages that wait while one is processed, and on their characters. The number is
 * the burst that the rate of messages admits; with messages of 64 KiB it alone would be 128 MiB.
 */
const WAITING_MAX = 2 * REALTIME_SUBSCRIPTIONS_MAX
const WAITING_CHARACTERS_MAX = 4 * 1024 * 1024

interface Received {
  /** The text of the message; null for a binary message. */
  readonly text: string | null
  readonly memory: Reservation
}

/** The bound that a message exceeds. */
export type Exceeded = 'messages of a connection' | 'the memory of messages that wait'

export class IncomingMessages {
  /** Processes one message. Must not reject. */
  readonly #handle: (text: string | null) => Promise<void>
  readonly #memory: MemoryShare
  readonly #waiting: Received[] = []
  #waitingCharacters = 0
  #isProcessing = false

  constructor(memory: MemoryShare, handle: (text: string | null) => Promise<void>) {
    this.#memory = memory
    this.#handle = handle
  }

  /** True if no message is processed or waits. */
  get isIdle(): boolean {
    return !this.#isProcessing
  }

  /** Returns the bound that the message would exceed, otherwise null. */
  add(text: string | null): Exceeded | null {
    if (this.#waiting.length >= WAITING_MAX || this.#waitingCharacters > WAITING_CHARACTERS_MAX) {
      return 'messages of a connection'
    }
    const memory = this.#memory.reserve(text === null ? 0 : textBytes(text))
    if (memory === null) return 'the memory of messages that wait'
    this.#waiting.push({ text, memory })
    this.#waitingCharacters += text?.length ?? 0
    void this.#process()
    return null
  }

  /** Drops all waiting messages. */
  clear(): void {
    for (const { memory } of this.#waiting) memory.release()
    this.#waiting.length = 0
    this.#waitingCharacters = 0
  }

  async #process(): Promise<void> {
    if (this.#isProcessing) return
    this.#isProcessing = true
    while (this.#waiting.length > 0) {
      const { text, memory } = this.#waiting.shift()!
      this.#waitingCharacters -= text?.length ?? 0
      await this.#handle(text)
      memory.release()
    }
    this.#isProcessing = false
  }
}
