/** Bounds on how many tasks of one kind run or wait at the same time. */
import type { TableCode } from '../errors/codes.ts'
import { Fault } from '../errors/fault.ts'

/** Runs at most `limit` tasks at the same time and rejects every further one with `code`. */
export class ConcurrencyLimit {
  readonly #limit: number
  readonly #code: TableCode
  #running = 0

  constructor(limit: number, code: TableCode) {
    this.#limit = limit
    this.#code = code
  }

  /** Runs the task now; throws a Fault of `code` where `limit` tasks run already. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limit) {
      throw new Fault(this.#code, { detail: `${this.#limit} requests of this kind run` })
    }
    this.#running += 1
    try {
      return await task()
    } finally {
      this.#running -= 1
    }
  }
}

/** Runs one task after the other, in the order of their calls. */
export class SerialQueue {
  readonly #admission: ConcurrencyLimit
  #last: Promise<unknown> = Promise.resolve()

  /** `limit` counts the tasks of `run` that wait or run; a further one is rejected with `code`. */
  constructor(limit: number, code: TableCode) {
    this.#admission = new ConcurrencyLimit(limit, code)
  }

  /** Queues a task of a caller; throws a Fault of `code` at once where the queue is full. */
  run<T>(task: () => Promise<T>): Promise<T> {
    return this.#admission.run(() => this.runUnbounded(task))
  }

  /** Queues a task of the server itself, which the bound neither rejects nor counts. */
  runUnbounded<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => undefined)
    return result
  }
}

/** Shares one load, and then its value, among all callers that name the newest key. */
export class SingleFlight<K, V> {
  #newest: { readonly key: K; readonly loading: Promise<V> } | null = null

  /** Rejects as `load` does; the next call with the same key loads again. */
  get(key: K, load: () => Promise<V>): Promise<V> {
    if (this.#newest?.key === key) return this.#newest.loading
    const entry = { key, loading: load() }
    this.#newest = entry
    entry.loading.catch(() => {
      if (this.#newest === entry) this.#newest = null
    })
    return entry.loading
  }
}

/** A background task: requests that arrive while it runs cause exactly one further run. */
export class CoalescingTask {
  readonly #task: () => Promise<void>
  readonly #onFailure: (error: unknown) => void
  #running: Promise<void> | null = null
  #isRequested = false
  #isClosed = false

  /** `onFailure` receives what a run threw; only the next `start` runs the task again. */
  constructor(task: () => Promise<void>, onFailure: (error: unknown) => void) {
    this.#task = task
    this.#onFailure = onFailure
  }

  /** True once `close` was called: a long task checks it between its steps and returns early. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Requests a run; does nothing once closed. */
  start(): void {
    if (this.#isClosed) return
    this.#isRequested = true
    this.#running ??= this.#run()
  }

  /** Resolves when nothing runs. */
  async whenIdle(): Promise<void> {
    await this.#running
  }

  /** Ignores all further requests. Resolves when the runs requested before have ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  /** No other code runs between the last check of `#isRequested` and the end of the run. */
  async #run(): Promise<void> {
    while (this.#isRequested) {
      this.#isRequested = false
      try {
        await this.#task()
      } catch (error) {
        this.#onFailure(error)
      }
    }
    this.#running = null
  }
}
