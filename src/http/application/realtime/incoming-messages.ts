/** The messages of one connection that were received, which are processed one after the other. */
import { REALTIME_SUBSCRIPTIONS_MAX } from '../../../wire/realtime.ts'

/** Messages that may wait while one is processed, and their characters. */
const WAITING_MAX = 2 * REALTIME_SUBSCRIPTIONS_MAX
const WAITING_CHARACTERS_MAX = 4 * 1024 * 1024

export class IncomingMessages {
  /** Must not reject. */
  readonly #handle: (text: string | null) => Promise<void>
  readonly #waiting: (string | null)[] = []
  #waitingCharacters = 0
  #isProcessing = false

  constructor(handle: (text: string | null) => Promise<void>) {
    this.#handle = handle
  }

  /** Returns false where too many messages wait; `null` stands for a binary message. */
  add(text: string | null): boolean {
    if (this.#waiting.length >= WAITING_MAX || this.#waitingCharacters > WAITING_CHARACTERS_MAX) {
      return false
    }
    this.#waiting.push(text)
    this.#waitingCharacters += text?.length ?? 0
    void this.#process()
    return true
  }

  /** Drops everything that waits. */
  clear(): void {
    this.#waiting.length = 0
    this.#waitingCharacters = 0
  }

  async #process(): Promise<void> {
    if (this.#isProcessing) return
    this.#isProcessing = true
    while (this.#waiting.length > 0) {
      const text = this.#waiting.shift()!
      this.#waitingCharacters -= text?.length ?? 0
      await this.#handle(text)
    }
    this.#isProcessing = false
  }
}
