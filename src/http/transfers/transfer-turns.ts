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

export class TransferTurns {
  readonly #system: Pick<System, 'monotonicMillis'>
  #calledAtMillis = Number.NEGATIVE_INFINITY
  /** Time from which the next piece may be transferred while calls arrive. */
  #freeAtMillis = 0

  constructor(system: Pick<System, 'monotonicMillis'>) {
    this.#system = system
  }

  /** Records that a call has arrived; `atMillis` is a monotonic time. */
  called(atMillis: number): void {
    this.#calledAtMillis = atMillis
  }

  /** Returns whether a call has arrived in the last milliseconds; `nowMillis` is monotonic. */
  hasCalls(nowMillis: number, withinMillis: number): boolean {
    return nowMillis - this.#calledAtMillis < withinMillis
  }

  /** Waits for a turn to receive a piece. */
  async take(bytes: number): Promise<void> {
    const now = this.#system.monotonicMillis()
    if (!this.hasCalls(now, CALLS_EXPECTED_MILLIS)) return nextTurn()
    const from = Math.max(now, this.#freeAtMillis)
    this.#freeAtMillis = from + (bytes * 1000) / BYTES_PER_SECOND_BESIDE_CALLS
    return from > now ? this.#waitUntil(from) : nextTurn()
  }

  /** Waits until the time has come, or no further call arrives. */
  async #waitUntil(from: number): Promise<void> {
    for (;;) {
      const now = this.#system.monotonicMillis()
      if (now >= from) return
      if (!this.hasCalls(now, CALLS_EXPECTED_MILLIS)) {
        // The places of the pieces that wait are void: none of them waits longer.
        this.#freeAtMillis = now
        return
      }
      const untilQuiet = this.#calledAtMillis + CALLS_EXPECTED_MILLIS - now
      const millis = Math.ceil(Math.min(from - now, untilQuiet))
      await new Promise((resolve) => setTimeout(resolve, millis))
    }
  }
}
