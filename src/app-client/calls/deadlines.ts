/** The deadline of a call, which covers all of its attempts and pauses. */
import { type CallError, clientError } from '../errors.ts'
import type { Platform } from '../platform.ts'

export class Deadline {
  readonly #platform: Platform
  readonly #controller = new AbortController()
  readonly #undo: (() => void)[] = []
  #reason: CallError | null = null

  constructor(platform: Platform, millis: number, signal?: AbortSignal) {
    this.#platform = platform
    const end = (error: CallError) => {
      this.#reason ??= error
      this.#controller.abort()
    }
    const message = `The call did not finish within ${millis} ms.`
    const late = () => end(clientError('DEADLINE_EXCEEDED', message, { retryable: true }))
    this.#undo.push(platform.after(millis, late))
    if (signal === undefined) return
    const stop = () => end(clientError('CLIENT_INTERRUPTED', 'The call was interrupted.'))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    this.#undo.push(() => signal.removeEventListener('abort', stop))
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The error that ended the call; null while time is left. */
  get reason(): CallError | null {
    return this.#reason
  }

  /** Waits for the given time, at most until the deadline. */
  pause(millis: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#reason !== null) return resolve()
      const done = () => {
        cancel()
        this.signal.removeEventListener('abort', done)
        resolve()
      }
      const cancel = this.#platform.after(millis, done)
      this.signal.addEventListener('abort', done)
    })
  }

  close(): void {
    for (const undo of this.#undo.splice(0)) undo()
  }
}
