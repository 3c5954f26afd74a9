/** The times at which a connection was opened, heard and pinged. Monotonic milliseconds. */

/** Milliseconds within which the first message must arrive (contract/wire.md, Realtime). */
const FIRST_MESSAGE_MILLIS = 5_000
/** Milliseconds between two pings (contract/wire.md, Rules of Realtime connections). */
const PING_MILLIS = 30_000
/** Milliseconds without a frame after which the peer is presumed to be gone: it missed a ping. */
const SILENCE_MILLIS = 60_000

/** An action that is due: a ping, or the end of a silent connection. */
export type Due = 'ping' | 'silent' | 'no-first-message'

export class Heartbeat {
  readonly #openedAt: number
  #heardAt: number
  #pingedAt: number
  #hasMessage = false

  constructor(now: number) {
    this.#openedAt = now
    this.#heardAt = now
    this.#pingedAt = now
  }

  ageMillis(now: number): number {
    return now - this.#openedAt
  }

  /** Records the arrival of a frame. */
  heard(now: number): void {
    this.#heardAt = now
  }

  /** Records the arrival of a message. The first one is on time even if its check takes long. */
  messageHeard(now: number): void {
    this.#heardAt = now
    this.#hasMessage = true
  }

  check(now: number): Due | null {
    if (!this.#hasMessage && now - this.#openedAt > FIRST_MESSAGE_MILLIS) return 'no-first-message'
    const silence = now - this.#heardAt
    if (silence > SILENCE_MILLIS) return 'silent'
    if (silence < PING_MILLIS || now - this.#pingedAt < PING_MILLIS) return null
    this.#pingedAt = now
    return 'ping'
  }
}
