/**
 * The minimum rate of transfers. A transfer that waits for its peer spends its slack, and each
 * transferred byte adds to it. The transfer ends when its slack is used up. Time is counted in
 * timer ticks, so a stalled event loop does not count against a peer.
 */

export interface PaceLimits {
  readonly bytesPerSecondMin: number
  /** Seconds for which a peer may send or take nothing at all. */
  readonly graceSeconds: number
}

/**
 * The minimum rate of a body or a response. The runtime enforces the same rate for bodies, but only
 * over a whole idle timeout.
 * @limit Requests: pace below which a body or a response is ended
 */
export const BYTES_PER_SECOND_MIN = 16 * 1024
/** @limit Requests: time for which a peer may send or take nothing at all */
export const GRACE_SECONDS = 5
const CALL_PACE: PaceLimits = {
  bytesPerSecondMin: BYTES_PER_SECOND_MIN,
  graceSeconds: GRACE_SECONDS,
}
/**
 * Uploads hold no server memory, so mobile clients may pause for up to a minute.
 * @limit Requests: pace below which the upload of a file is ended
 */
export const UPLOAD_BYTES_PER_SECOND_MIN = 1024
/** @limit Requests: time for which an upload of a file may send nothing at all */
export const UPLOAD_GRACE_SECONDS = 60
export const UPLOAD_PACE: PaceLimits = {
  bytesPerSecondMin: UPLOAD_BYTES_PER_SECOND_MIN,
  graceSeconds: UPLOAD_GRACE_SECONDS,
}
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
   * Watches a transfer that waits for its peer. The peer may transfer `bytes` before the first call
   * of `moved`, so the slack includes the time for them.
   */
  begin(onSlow: () => void, bytes = 0): Transfer {
    const at = this.#free.pop() ?? this.#transfers.length
    const transfer = new Transfer(this, at, bytes, onSlow)
    this.#transfers[at] = transfer
    this.#timer ??= this.#start()
    return transfer
  }

  /**
   * Returns the result of `work`, or rejects with the error of `slow` once the slack is used up.
   */
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

  /** Removes a transfer that has ended. */
  forget(at: number): void {
    this.#transfers[at] = null
    this.#free.push(at)
  }

  #start(): ReturnType<typeof setInterval> {
    const timer = setInterval(() => this.#tick(), TICK_SECONDS * 1000)
    timer.unref()
    return timer
  }

  /** Spends the slack of one tick. The timer stops when no transfer is left. */
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

  /** Returns whether the slack is used up. */
  get isSlow(): boolean {
    return this.#isSlow
  }

  /** Resumes the spending of slack. */
  wait(): void {
    this.#isWaiting = true
  }

  /** Records that the peer transferred `bytes`. No slack is spent until `wait` is called. */
  moved(bytes: number): void {
    this.#isWaiting = false
    this.#slack = Math.min(this.#slack + bytes / this.#bytesPerSecondMin, this.#slackMax)
  }

  /** Stops watching. A second call does nothing. */
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
