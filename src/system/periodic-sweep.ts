/** A background task that removes what is old, once in a while and one run at a time. */

export interface PeriodicSweepOptions {
  readonly periodMillis: number
  /** Removes what is old, in small steps. It ends early once `isStopped`. */
  readonly sweep: (isStopped: () => boolean) => Promise<void>
  /** Receives the failure of a run; the next period runs again. */
  readonly onError: (error: unknown) => void
}

export class PeriodicSweep {
  readonly #options: PeriodicSweepOptions
  #timer: ReturnType<typeof setInterval> | null = null
  #running: Promise<void> | null = null

  constructor(options: PeriodicSweepOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = setInterval(() => this.#run(), this.#options.periodMillis)
    this.#timer.unref()
  }

  /** Runs now, unless a run is in progress or the timer is stopped. */
  wake(): void {
    if (this.#timer !== null) this.#run()
  }

  #run(): void {
    const { sweep, onError } = this.#options
    this.#running ??= sweep(() => this.#timer === null)
      .catch(onError)
      .finally(() => {
        this.#running = null
      })
  }

  /** Stops the timer and waits for the run in progress. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    await this.#running
  }
}
