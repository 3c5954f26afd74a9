/**
 * The minimum rate of transfers. A transfer that waits for its peer spends its slack, and each byte
 * that is moved adds to it; once none is left the transfer is ended. Time is counted in ticks of
 * the event loop, so a server that stood still blames no peer for what it did not read itself.
 */

export interface PaceLimits {
  readonly bytesPerSecondMin: number
  /** Seconds for which a peer may send or take nothing at all. */
  readonly graceSeconds: number
}

/** The rate that the runtime itself demands of a body, but only over a whole idle timeout. */
const CALL_PACE: PaceLimits = { bytesPerSecondMin: 16 * 1024, graceSeconds: 5 }
/** For uploads, which hold no memory and may come from a train in a tunnel. */
export const UPLOAD_PACE: PaceLimits = { bytesPerSecondMin: 1024, graceSeconds: 60 }
const TICK_SECONDS = 1

export class TransferPace {
  readonly limits: PaceLimits
  readonly #transfers: (Transfer | null)[] = []
  readonly #free: number[] = []
  #timer: ReturnType<typeof setInterval> | null = null

  constructor(limits = CALL_PACE) {
    this.limits = limits
  }

  /**
   * Watches a transfer that waits for its peer. `bytes` are those that the peer has to move before
   * `moved` tells of any: the slack holds the time for them beside the grace.
   */
  begin(onSlow: () => void, bytes = 0): Transfer {
    const at = this.#free.pop() ?? this.#transfers.length
    const transfer = new Transfer(this, at, bytes, onSlow)
    this.#transfers[at] = transfer
    this.#timer ??= this.#start()
    return transfer
  }

  /** Settles as `work` does, or rejects with what `slow` returns once its slack is spent. */
  limit<T>(work: Promise<T>, bytes: number, slow: () => unknown): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const transfer = this.begin(() => reject(slow()), bytes)
    work.then(
      (value) => {
        transfer.end()
        resolve(value)
      },
      (error: unknown) => {
        transfer.end()
        reject(error)
      },
    )
    return promise
  }

  /** Called by a transfer that ends. */
  forget(at: number): void {
    this.#transfers[at] = null
    this.#free.push(at)
  }

  #start(): ReturnType<typeof setInterval> {
    const timer = setInterval(() => this.#tick(), TICK_SECONDS * 1000)
    timer.unref()
    return timer
  }

  /** Stops once nothing is watched; the next transfer starts it again. */
  #tick(): void {
    const watched = this.#transfers.filter((transfer) => transfer !== null)
    for (const transfer of watched) transfer.spend(TICK_SECONDS)
    if (watched.length > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}

export class Transfer {
  readonly #pace: TransferPace
  readonly #at: number
  readonly #slackMax: number
  readonly #bytesPerSecondMin: number
  readonly #onSlow: () => void
  /** Seconds. */
  #slack: number
  #isWaiting = true
  #isSlow = false
  #hasEnded = false

  constructor(pace: TransferPace, at: number, bytes: number, onSlow: () => void) {
    this.#pace = pace
    this.#at = at
    const { bytesPerSecondMin, graceSeconds } = pace.limits
    this.#bytesPerSecondMin = bytesPerSecondMin
    this.#slackMax = graceSeconds + bytes / bytesPerSecondMin
    this.#slack = this.#slackMax
    this.#onSlow = onSlow
  }

  /** Whether the slack was spent. */
  get isSlow(): boolean {
    return this.#isSlow
  }

  /** Spends slack again from now on. */
  wait(): void {
    this.#isWaiting = true
  }

  /** The peer moved `bytes`. Slack is kept until `wait` is called. */
  moved(bytes: number): void {
    this.#isWaiting = false
    this.#slack = Math.min(this.#slack + bytes / this.#bytesPerSecondMin, this.#slackMax)
  }

  /** Stops to watch; a second call does nothing. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#pace.forget(this.#at)
  }

  spend(seconds: number): void {
    if (!this.#isWaiting || this.#isSlow || this.#hasEnded) return
    this.#slack -= seconds
    if (this.#slack >= 0) return
    this.#isSlow = true
    this.#onSlow()
  }
}
