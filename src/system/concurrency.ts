/** Bounds on how much of one kind of work runs or waits at once. */
import { Fault } from '../errors/fault.ts'

/** Lets `limit` pieces of work run at once and refuses the next. */
export class ConcurrencyLimit {
  readonly #limit: number
  #running = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Throws PRODUCT_UNAVAILABLE at once where the gate is full. */
  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limit) {
      throw new Fault('PRODUCT_UNAVAILABLE', { detail: `${this.#limit} requests of this kind run` })
    }
    this.#running += 1
    try {
      return await work()
    } finally {
      this.#running -= 1
    }
  }
}

/** Runs one piece of work after the other; the gate before it bounds how many wait. */
export class SerialQueue {
  readonly #gate: ConcurrencyLimit
  #last: Promise<unknown> = Promise.resolve()

  constructor(limit: number) {
    this.#gate = new ConcurrencyLimit(limit)
  }

  /** Throws PRODUCT_UNAVAILABLE at once where too many wait. */
  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#gate.pass(() => this.inTurn(work))
  }

  /** Work of the server's own: it waits like all else, and is never refused. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

/** What was made for the newest key, once: who asks while it is made waits for it. */
export class SingleFlight<K, V> {
  #kept: { readonly key: K; readonly made: Promise<V> } | null = null

  /** Rejects as `make` does; whoever asks after that has it made again. */
  of(key: K, make: () => Promise<V>): Promise<V> {
    if (this.#kept?.key === key) return this.#kept.made
    const kept = { key, made: make() }
    this.#kept = kept
    kept.made.catch(() => {
      if (this.#kept === kept) this.#kept = null
    })
    return kept.made
  }
}

/** Work in the background: what is asked for while it runs makes it run once more. */
export class CoalescingTask {
  readonly #work: () => Promise<void>
  readonly #onFailure: (error: unknown) => void
  #running: Promise<void> | null = null
  #again = false
  #isClosed = false

  /** `onFailure` is told why the work failed; the next start tries it again. */
  constructor(work: () => Promise<void>, onFailure: (error: unknown) => void) {
    this.#work = work
    this.#onFailure = onFailure
  }

  /** Work of many steps looks at it between them. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  start(): void {
    if (this.#isClosed) return
    this.#again = true
    this.#running ??= this.#run()
  }

  /** Resolves when nothing runs. */
  async settled(): Promise<void> {
    await this.#running
  }

  /** Nothing starts any more. Resolves when what was asked for before has run. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  /** Between the last look at `#again` and the end nothing else has a turn. */
  async #run(): Promise<void> {
    while (this.#again) {
      this.#again = false
      try {
        await this.#work()
      } catch (error) {
        this.#onFailure(error)
      }
    }
    this.#running = null
  }
}
