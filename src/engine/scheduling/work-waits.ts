/** Requests that wait for the end of scheduled work, by its commits: nothing polls. */
import type { ScheduledChange } from '../commits/read-set.ts'
import { isUnfinished } from '../scheduled-work/pending-work.ts'
import type { EndedWork } from '../scheduled-work/scheduled-documents.ts'
import type { Timers } from './timers.ts'

/**
 * Each has a connection. Beyond the bound, the service is answered at once and may ask again.
 * @limit HTTP mounts: deliveries that wait for the end of their handlers; more are answered
 * with 202
 */
export const WORK_WAITS_MAX = 512
/**
 * Milliseconds; services end a request after 10 seconds or later.
 * @limit HTTP mounts: time for which a delivery waits for the end of its handler, then it is
 * answered with 202
 */
export const WORK_WAIT_MILLIS_MAX = 10_000

export interface WorkWaitsOptions {
  readonly timers: Timers
  /** Reads durable work; null if it has not ended, and where there is none. */
  readonly read: (scheduledId: string) => Promise<EndedWork | null>
}

export class WorkWaits {
  readonly #options: WorkWaitsOptions
  /** The functions that end the waits, by the work that they are for. */
  readonly #waits = new Map<string, Set<() => void>>()
  #count = 0
  #expired = 0
  #isStopped = false

  constructor(options: WorkWaitsOptions) {
    this.#options = options
  }

  /** Number of requests that wait. */
  get count(): number {
    return this.#count
  }

  /** Number of waits whose time ended. */
  get expired(): number {
    return this.#expired
  }

  /**
   * Resolves with the work once its end is durable; null after the time, beyond the bound, while
   * the scheduler stops, and for a client that is gone. Rejects where the work cannot be read.
   */
  async whenEnded(scheduledId: string, signal?: AbortSignal): Promise<EndedWork | null> {
    const { timers, read } = this.#options
    if (this.#isStopped || this.#count >= WORK_WAITS_MAX || signal?.aborted) return null
    const { promise, resolve } = Promise.withResolvers<void>()
    const waits = this.#waits.get(scheduledId) ?? new Set()
    this.#waits.set(scheduledId, waits)
    waits.add(resolve)
    this.#count += 1
    const cancelTimer = timers.set(WORK_WAIT_MILLIS_MAX, () => {
      this.#expired += 1
      resolve()
    })
    const leave = () => resolve()
    signal?.addEventListener('abort', leave)
    try {
      // The end may have been committed before the wait began.
      const ended = await read(scheduledId)
      if (ended !== null) return ended
      await promise
      return signal?.aborted ? null : await read(scheduledId)
    } finally {
      signal?.removeEventListener('abort', leave)
      cancelTimer()
      waits.delete(resolve)
      this.#count -= 1
      if (waits.size === 0) this.#waits.delete(scheduledId)
    }
  }

  /** Ends the waits for work whose end is durable. */
  onCommit(changes: readonly ScheduledChange[]): void {
    if (this.#count === 0) return
    for (const { scheduledId, after } of changes) {
      if (after === null || isUnfinished(after)) continue
      for (const end of this.#waits.get(scheduledId) ?? []) end()
    }
  }

  /** Ends all waits, and those that begin later at once. */
  stop(): void {
    this.#isStopped = true
    for (const waits of this.#waits.values()) for (const end of waits) end()
  }
}
