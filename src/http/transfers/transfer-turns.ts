/**
 * Divides the machine between calls and transfers of files. While calls arrive, the pieces of all
 * uploads follow one another at a bounded rate, and downloads share one (downloads.ts). Without
 * calls a piece waits only for the events that are pending.
 */
import { nextTurn } from '../../system/event-loop.ts'
import type { System } from '../../system/system.ts'

/**
 * A piece takes 0.2 to 1 ms of a core for each MiB to receive, check and write, and as much of
 * another one for the peer. This is more than half of a gigabit link in each direction.
 * @limit Requests: rate of all uploads of files together, and of all downloads, while calls arrive
 */
export const BYTES_PER_SECOND_BESIDE_CALLS = 64 * 1024 * 1024
/** Time after a call in which the next one is expected. */
export const CALLS_EXPECTED_MILLIS = 20

/** The state of calls and transfers of one process, or of all processes of a server. */
export interface TransferState {
  /** Records that a call has arrived; times are monotonic milliseconds of this process. */
  called(atMillis: number): void
  /** Returns the milliseconds since the last call. */
  sinceCall(nowMillis: number): number
  /** Returns the milliseconds until the next piece may be transferred, which takes `millis`. */
  reserve(nowMillis: number, millis: number): number
  /** Makes the places of all pieces that wait void. */
  clear(nowMillis: number): void
  /** Records the downloads of this process. Returns the number of all. */
  downloads(own: number): number
}

/** The state of a server with one process. */
export class OwnTransferState implements TransferState {
  #calledAtMillis = Number.NEGATIVE_INFINITY
  #freeAtMillis = 0

  called(atMillis: number): void {
    this.#calledAtMillis = atMillis
  }

  sinceCall(nowMillis: number): number {
    return nowMillis - this.#calledAtMillis
  }

  reserve(nowMillis: number, millis: number): number {
    const from = Math.max(nowMillis, this.#freeAtMillis)
    this.#freeAtMillis = from + millis
    return from - nowMillis
  }

  clear(nowMillis: number): void {
    this.#freeAtMillis = nowMillis
  }

  downloads(own: number): number {
    return own
  }
}

export class TransferTurns {
  readonly #system: Pick<System, 'monotonicMillis'>
  readonly #state: TransferState

  constructor(
    system: Pick<System, 'monotonicMillis'>,
    state: TransferState = new OwnTransferState(),
  ) {
    this.#system = system
    this.#state = state
  }

  /** Records that a call has arrived; `atMillis` is a monotonic time. */
  called(atMillis: number): void {
    this.#state.called(atMillis)
  }

  /** Returns whether a call has arrived in the last milliseconds; `nowMillis` is monotonic. */
  hasCalls(nowMillis: number, withinMillis: number): boolean {
    return this.#state.sinceCall(nowMillis) < withinMillis
  }

  /** Records the downloads of this process. Returns the number of all processes together. */
  downloads(own: number): number {
    return this.#state.downloads(own)
  }

  /** Waits for a turn to receive a piece. */
  async take(bytes: number): Promise<void> {
    const now = this.#system.monotonicMillis()
    if (!this.hasCalls(now, CALLS_EXPECTED_MILLIS)) return nextTurn()
    const wait = this.#state.reserve(now, (bytes * 1000) / BYTES_PER_SECOND_BESIDE_CALLS)
    return wait > 0 ? this.#waitUntil(now + wait) : nextTurn()
  }

  /** Waits until the time has come, or no further call arrives. */
  async #waitUntil(from: number): Promise<void> {
    for (;;) {
      const now = this.#system.monotonicMillis()
      if (now >= from) return
      const untilQuiet = CALLS_EXPECTED_MILLIS - this.#state.sinceCall(now)
      if (untilQuiet <= 0) {
        // None of the pieces that wait waits longer.
        this.#state.clear(now)
        return
      }
      const millis = Math.ceil(Math.min(from - now, untilQuiet))
      await new Promise((resolve) => setTimeout(resolve, millis))
    }
  }
}
