/** Closes the resources of the server in reverse order of opening. */
import type { Logger } from '../telemetry/log.ts'

/**
 * Time limit for closing all resources, including the 15 s in which the listeners drain.
 * Supervisors kill a process 30 s after SIGTERM.
 */
const CLOSE_MILLIS = 25_000

type Close = () => unknown

export class ShutdownStack {
  readonly #log: Logger
  readonly #closers: Close[] = []

  constructor(log: Logger) {
    this.#log = log
  }

  /** Adds a resource. The last one that was added is closed first. */
  add(close: Close): void {
    this.#closers.push(close)
  }

  /**
   * Closes all resources, even after a failure. Stops waiting after `millis`: durable data does not
   * depend on an orderly shutdown. Never rejects.
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
