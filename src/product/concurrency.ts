/** Bounds on how much of one kind of work runs or waits at once. */
import { Fault } from '../errors/fault.ts'

/** Lets `limit` pieces of work run at once and refuses the next. */
export class Gate {
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
export class Serial {
  readonly #gate: Gate
  #last: Promise<unknown> = Promise.resolve()

  constructor(limit: number) {
    this.#gate = new Gate(limit)
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

/** Work in the background: what is asked for while it runs makes it run once more. */
export class Background {
  readonly #work: () => Promise<void>
  #running: Promise<void> | null = null
  #again = false

  /** `work` never rejects. */
  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  start(): void {
    this.#again = true
    this.#running ??= this.#run()
  }

  /** Resolves when nothing runs. */
  async settled(): Promise<void> {
    await this.#running
  }

  /** Between the last look at `#again` and the end nothing else has a turn. */
  async #run(): Promise<void> {
    while (this.#again) {
      this.#again = false
      await this.#work()
    }
    this.#running = null
  }
}
