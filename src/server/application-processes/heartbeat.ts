/**
 * Notices that an application process has hung: it does not answer although it has not ended. While
 * it is hung, what is sent to it stays in the memory of the main process, which this bounds too.
 */

/** Interval of `beat`. */
export const BEAT_MILLIS = 1_000
/**
 * Beats without an answer after which a process has hung. They are counted and not the time, since
 * the main process may have been stopped itself. Only starting blocks a process for seconds.
 */
const READY_BEATS_MAX = 15
const STARTING_BEATS_MAX = 120
/** Keys that are sent before the next beat, after which a further question is sent at once. */
const KEYS_UNASKED_MAX = 100_000
/** Keys without an answer, after which a process has hung: about 100 MiB. */
const KEYS_UNANSWERED_MAX = 1_000_000

export interface HeartbeatOptions {
  /** Asks the process. Resolves with its answer, and rejects when it has ended. */
  readonly ask: () => Promise<void>
  readonly isReady: () => boolean
  /** Called once. */
  readonly onHung: () => void
}

export class Heartbeat {
  readonly #options: HeartbeatOptions
  #isAsked = false
  #isHung = false
  /** Beats since the question that the process has not answered. */
  #missed = 0
  /** Keys that were sent since the last question that was answered. */
  #keys = 0

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  /** Asks the process, or counts that it has not answered. Call it each BEAT_MILLIS. */
  beat(): void {
    if (!this.#isAsked) {
      void this.#ask()
      return
    }
    this.#missed += 1
    if (this.#missed >= (this.#options.isReady() ? READY_BEATS_MAX : STARTING_BEATS_MAX)) {
      this.#hung()
    }
  }

  /** Counts the document IDs and index keys of a message. */
  sent(keys: number): void {
    this.#keys += keys
    if (this.#keys > KEYS_UNANSWERED_MAX) this.#hung()
    else if (this.#keys > KEYS_UNASKED_MAX && !this.#isAsked) void this.#ask()
  }

  async #ask(): Promise<void> {
    this.#isAsked = true
    const keysBefore = this.#keys
    try {
      await this.#options.ask()
    } catch {
      // The process has ended, which is noticed elsewhere.
      return
    }
    this.#isAsked = false
    this.#missed = 0
    this.#keys -= keysBefore
  }

  #hung(): void {
    if (this.#isHung) return
    this.#isHung = true
    this.#options.onHung()
  }
}
