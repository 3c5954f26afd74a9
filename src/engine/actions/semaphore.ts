/** A bounded number of permits for concurrent tasks, granted in the order of the requests. */
import { TransientMap } from '../../value/memory/transient-map.ts'

export class Semaphore {
  #available: number
  /** The functions that grant a permit, by waiter, in the order of the requests. */
  readonly #waiting = new TransientMap<object, () => void>()

  constructor(permits: number) {
    this.#available = permits
  }

  /**
   * Runs the task while it holds a permit. Rejects with the reason of the signal where it is
   * aborted before the task starts.
   */
  async use<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    if (this.#available > 0) this.#available -= 1
    else await this.#acquire(signal)
    try {
      signal.throwIfAborted()
      return await task()
    } finally {
      this.#release()
    }
  }

  /** Removes an aborted waiter at once, to free the memory of its task, such as a request body. */
  #acquire(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter = {}
      const cancel = () => {
        if (this.#waiting.delete(waiter)) reject(signal.reason)
      }
      signal.addEventListener('abort', cancel, { once: true })
      this.#waiting.set(waiter, () => {
        signal.removeEventListener('abort', cancel)
        resolve()
      })
    })
  }

  #release(): void {
    for (const [waiter, grant] of this.#waiting) {
      this.#waiting.delete(waiter)
      grant()
      return
    }
    this.#available += 1
  }
}
