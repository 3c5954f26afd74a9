/** The end of everything that the server has open. */
import type { Logger } from '../telemetry/log.ts'

/** With the drain of the listeners: within the 30 s after which supervisors kill. */
const CLOSE_MILLIS = 25_000

type Close = () => unknown

export class ShutdownStack {
  readonly #log: Logger
  readonly #closers: Close[] = []

  constructor(log: Logger) {
    this.#log = log
  }

  /** Adds a resource. The one that was added last is closed first. */
  add(close: Close): void {
    this.#closers.push(close)
  }

  /**
   * Begins to close each, whatever the others did, and after `millis` waits for none any more: what
   * is durable does not depend on an orderly end. Never rejects.
   */
  async close(millis = CLOSE_MILLIS): Promise<void> {
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      this.#log.warn('server.close_late', { message: 'What does not close in time is left open.' })
      late.resolve()
    }, millis)
    for (const close of this.#closers.splice(0).reverse()) {
      await Promise.race([this.#closed(close), late.promise])
    }
    clearTimeout(timer)
  }

  async #closed(close: Close): Promise<void> {
    try {
      await close()
    } catch (error) {
      this.#log.error('server.close_failed', { error })
    }
  }
}
